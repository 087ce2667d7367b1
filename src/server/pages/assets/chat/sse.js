// Reads server-sent events as the service writes them: an id and one line of JSON for each.

/**
 * @typedef {{id: string | null, data: object}} Frame
 * @typedef {{frame: Frame} | {comment: string}} Read
 */

/** Takes a body piece by piece, cut anywhere, and gives what is complete. */
export class SseDecoder {
  #text = new TextDecoder();
  #rest = '';
  #id = null;
  #data = [];

  /**
   * @param {Uint8Array} bytes the next bytes of the body
   * @returns {Read[]} frames and comments, in order; what cannot be read is left out
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
 * The number of an event in its stream.
 * @param {string | null} id `<stream>.<number>`
 * @returns {number} 0 where there is none
 */
export function sequence(id) {
  const number = Number((id ?? '').split('.')[1]);
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}
