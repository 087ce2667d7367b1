// Reads server-sent events in the format of the service: an id and one line of JSON per event.

/**
 * @typedef {{id: string | null, data: object}} Frame
 * @typedef {{frame: Frame} | {comment: string}} Read
 */

/** Decodes a body in chunks that may end anywhere, and returns the complete events. */
export class SseDecoder {
  #text = new TextDecoder();
  #rest = '';
  #id = null;
  #data = [];

  /**
   * @param {Uint8Array} bytes the next bytes of the body
   * @returns {Read[]} frames and comments, in order; skips frames that cannot be parsed
   */
  push(bytes) {
    const lines = (this.#rest + this.#text.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop();
    const found = [];
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') this.#dispatch(found);
      else if (line.startsWith(':')) found.push({ comment: line.slice(1).trim() });
      else this.#field(line);
    }
    return found;
  }

  #field(line) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'id') this.#id = value;
  }

  #dispatch(found) {
    if (this.#data.length > 0) {
      const data = parse(this.#data.join('\n'));
      if (data) found.push({ frame: { id: this.#id, data } });
    }
    this.#data = [];
    this.#id = null;
  }
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/**
 * The sequence number of an event in its stream.
 * @param {string | null} id `<stream>.<number>`
 * @returns {number} 0 without a number
 */
export function sequence(id) {
  const number = Number((id ?? '').split('.')[1]);
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}
