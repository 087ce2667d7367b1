// What a tab remembers over a reload. A browser may not allow it; then nothing is remembered, and nothing breaks.
//
// A thread's id lets whoever has it into the thread, so it stays in the tab and never gets into an address.

/**
 * @param {string} workflow the workflow's UUID
 * @param {string} [scope] on whose page, and as whom, if it is not the service's own
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
        // Private windows and full storage.
      }
    },
    /** Forgets everything. */
    clear() {
      try {
        for (const known of Object.keys(sessionStorage)) if (known.startsWith(key(''))) sessionStorage.removeItem(known);
      } catch {
        // Then nothing was remembered.
      }
    },
  };
}
