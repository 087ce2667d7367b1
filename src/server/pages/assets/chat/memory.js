// The values that a tab keeps across a reload. If the browser allows no storage, nothing is kept, and the chat still works.
//
// A thread's id grants access to the thread, so it stays in the tab and never becomes part of an address.

/**
 * @param {string} workflow the workflow's UUID
 * @param {string} [scope] the embedding page and the user; empty on a page of the service
 */
export function memory(workflow, scope = '') {
  const key = (name) => `callboard:${workflow}:${scope === '' ? '' : `${scope}:`}${name}`;
  return {
    /** @returns {string | null} */
    get(name) {
      try {
        return sessionStorage.getItem(key(name));
      } catch {
        return null;
      }
    },
    /** @param {string | null} value null or an empty text removes it */
    set(name, value) {
      try {
        if (value === null || value === '') sessionStorage.removeItem(key(name));
        else sessionStorage.setItem(key(name), value);
      } catch {
        // The window is private, or the storage is full.
      }
    },
    /** Forgets everything. */
    clear() {
      try {
        for (const known of Object.keys(sessionStorage)) if (known.startsWith(key(''))) sessionStorage.removeItem(known);
      } catch {
        // Without storage there is nothing to forget.
      }
    },
  };
}
