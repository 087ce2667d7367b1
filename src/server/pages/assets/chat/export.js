// A conversation as a file.

/** The limit of the service. */
const PAGE = 100;
const MAX_NAME = 100;

/**
 * Reads all items of a thread.
 * @param {import('./api.js').Api} api
 * @param {{id: string, title?: string}} thread
 * @returns {Promise<{name: string, text: string}>} the file's name, and JSON with the items in the order of the conversation
 * @throws {import('./api.js').ApiError} if a page cannot be read
 */
export async function exported(api, { id, title }) {
  const items = [];
  let after = null;
  do {
    const params = { thread_id: id, limit: PAGE, order: 'asc', ...(after === null ? {} : { after }) };
    const page = await api.ask('items.list', params);
    items.push(...page.data);
    const next = page.has_more ? (page.after ?? page.data.at(-1)?.id ?? null) : null;
    // A page that ends where it began would be read forever.
    after = next === after ? null : next;
  } while (after !== null);
  return { name: fileName(title), text: `${JSON.stringify({ id, title: title ?? null, items }, null, 2)}\n` };
}

/** A title as the name of a JSON file that every system accepts. */
export function fileName(title) {
  const plain = (title ?? '').replace(/[\p{C}\\/:*?"<>|]+/gu, ' ').replace(/\s+/g, ' ');
  const cut = [...plain].slice(0, MAX_NAME).join('').replace(/^[. ]+|[. ]+$/g, '');
  return `${cut === '' ? 'conversation' : cut}.json`;
}
