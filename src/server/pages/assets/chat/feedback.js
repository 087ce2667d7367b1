// What the visitor thinks of replies. Kept while the page is open.

/** @typedef {'positive' | 'negative'} Kind */

export class Feedback {
  /** By item: what the visitor chose, what the service stored, and whether a request is on its way. */
  #given = new Map();

  /**
   * @param {object} ports
   * @param {(thread: string, item: string, kind: Kind) => Promise<unknown>} ports.send
   * @param {() => void} ports.onChange after each change
   * @param {(error: Error) => void} ports.onError what was chosen is not stored
   */
  constructor({ send, onChange, onError }) {
    this.send = send;
    this.onChange = onChange;
    this.onError = onError;
  }

  /** @returns {Kind | null} what the visitor chose for an item */
  kindOf(item) {
    return this.#given.get(item)?.chosen ?? null;
  }

  /** Stores a choice. The last one counts, however fast they follow each other. */
  async give(thread, item, kind) {
    const entry = this.#given.get(item) ?? { chosen: null, stored: null, sending: false };
    if (entry.chosen === kind) return;
    entry.chosen = kind;
    this.#given.set(item, entry);
    this.onChange();
    if (entry.sending) return;
    entry.sending = true;
    while (entry.chosen !== entry.stored) await this.#store(thread, item, entry);
    entry.sending = false;
  }

  async #store(thread, item, entry) {
    const sent = entry.chosen;
    try {
      await this.send(thread, item, sent);
      entry.stored = sent;
    } catch (error) {
      // A newer choice is sent next, and says itself whether it failed.
      if (entry.chosen !== sent) return;
      entry.chosen = entry.stored;
      this.onChange();
      this.onError(error);
    }
  }
}
