// Exports a conversation as a file.

/** Items per page: the limit of the service. */
const PAGE = 100;
const MAX_NAME = 100;

/**
 * Reads all items of a thread.
 * @param {import('./api.js').Api} api
 * @param {{id: string, title?: string}} thread
 * @returns {Promise<{name: string, text: string}>} the file name, and JSON with the items in conversation order
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
    // A page that returns its own cursor would be read forever.
    after = next === after ? null : next;
  } while (after !== null);
  return { name: fileName(title), text: `${JSON.stringify({ id, title: title ?? null, items }, null, 2)}\n` };
}

/** Turns a title into a JSON file name that every operating system accepts. */
export function fileName(title) {
  const plain = (title ?? '').replace(/[\p{C}\\/:*?"<>|]+/gu, ' ').replace(/\s+/g, ' ');
  const cut = [...plain].slice(0, MAX_NAME).join('').replace(/^[. ]+|[. ]+$/g, '');
  return `${cut === '' ? 'conversation' : cut}.json`;
}
