// The visitor's feedback on replies. Kept while the page is open.

/** @typedef {'positive' | 'negative'} Kind */

export class Feedback {
  /** By item: the visitor's choice, the stored choice, and whether a request is pending. */
  #given = new Map();

  /**
   * @param {object} ports
   * @param {(thread: string, item: string, kind: Kind) => Promise<unknown>} ports.send
   * @param {() => void} ports.onChange after each change
   * @param {(error: Error) => void} ports.onError the choice was not stored
   */
  constructor({ send, onChange, onError }) {
    this.send = send;
    this.onChange = onChange;
    this.onError = onError;
  }

  /** @returns {Kind | null} the visitor's choice for an item */
  kindOf(item) {
    return this.#given.get(item)?.chosen ?? null;
  }

  /** Stores a choice. The last one wins, even if several are made before the first is stored. */
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
      // A newer choice is sent next, and reports its own failure.
      if (entry.chosen !== sent) return;
      entry.chosen = entry.stored;
      this.onChange();
      this.onError(error);
    }
  }
}
