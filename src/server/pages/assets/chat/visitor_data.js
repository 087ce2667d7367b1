// Everything that the visitor has with this chat: downloaded, and erased.

/**
 * Reads the export of the service.
 * @param {import('./api.js').Api} api
 * @param {string} name the chat's
 * @returns {Promise<{name: string, text: string, type: string} | null>} lines of JSON; null if the export was interrupted
 * @throws {import('./api.js').ApiError} if there is none
 */
export async function exportFile(api, name) {
  const text = await api.exportAll();
  return isComplete(text) ? { name: `${name}.ndjson`, text, type: 'application/x-ndjson' } : null;
}

/** The last line of a complete export says so. */
export function isComplete(text) {
  try {
    return JSON.parse(text.trimEnd().split('\n').at(-1)).type === 'end';
  } catch {
    return false;
  }
}

/**
 * Erases everything with one request: a later one would erase what is written after the first.
 * @param {import('./api.js').Api} api
 * @returns {Promise<boolean>} whether nothing is left; the service completes what is left
 * @throws {import('./api.js').ApiError} if it was not accepted
 */
export async function eraseData(api) {
  const { status } = await api.eraseAll();
  return status !== 'erasing';
}
