// Downloads and erases the visitor's data in this chat.

/**
 * Reads the service's export of the visitor's data.
 * @param {import('./api.js').Api} api
 * @param {string} name the chat's name
 * @returns {Promise<{name: string, text: string, type: string} | null>} lines of JSON; null if the export was interrupted
 * @throws {import('./api.js').ApiError} if the request failed
 */
export async function exportFile(api, name) {
  const text = await api.exportAll();
  return isComplete(text) ? { name: `${name}.ndjson`, text, type: 'application/x-ndjson' } : null;
}

/** Whether an export is complete: its last line marks the end. */
export function isComplete(text) {
  try {
    return JSON.parse(text.trimEnd().split('\n').at(-1)).type === 'end';
  } catch {
    return false;
  }
}

/**
 * Erases all data with one request: a second request would also erase data written after the first.
 * @param {import('./api.js').Api} api
 * @returns {Promise<boolean>} whether all data is erased; otherwise the service continues to erase it
 * @throws {import('./api.js').ApiError} if the service rejected the request
 */
export async function eraseData(api) {
  const { status } = await api.eraseAll();
  return status !== 'erasing';
}
