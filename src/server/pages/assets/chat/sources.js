// The sources of a message, from the annotations of its text.

/**
 * @typedef {{title: string, href: string | null, detail: string}} Source
 */

/**
 * Lists the sources of a message in the order of its text, each once.
 * @param {object[]} content parts of an assistant message
 * @returns {Source[]}
 */
export function sourcesOf(content) {
  const found = new Map();
  for (const { annotations } of content) {
    for (const annotation of Array.isArray(annotations) ? annotations : []) {
      const [key, source] = read(annotation?.source ?? {});
      if (key !== null && !found.has(key)) found.set(key, source);
    }
  }
  return [...found.values()];
}

/** Reads a source and its key for deduplication; the key is null if the type is unknown or there is nothing to show. */
function read({ type, title, url, attribution, filename, id, label, description }) {
  switch (type) {
    case 'url': {
      const address = webAddress(url);
      const host = address?.host.replace(/^www\./, '') ?? '';
      const name = text(title) ?? address?.href ?? text(url);
      return [name && `url ${address?.href ?? name}`, { title: name, href: address?.href ?? null, detail: text(attribution) ?? host }];
    }
    case 'file': {
      const name = text(filename) ?? text(title);
      const other = text(title) === name ? null : text(title);
      return [name && `file ${name}`, { title: name, href: null, detail: other ?? text(description) ?? '' }];
    }
    case 'entity': {
      const name = text(label) ?? text(title) ?? text(id);
      return [name && `entity ${text(id) ?? name}`, { title: name, href: null, detail: text(description) ?? '' }];
    }
    default:
      return [null, null];
  }
}

/** @returns {URL | null} null unless it is a web address that a page may link to */
function webAddress(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:'].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

function text(value) {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}
