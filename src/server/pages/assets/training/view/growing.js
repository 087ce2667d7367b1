// A list that grows while the user reads it.

import { h, set, setText } from '../../dom.js';
import { count } from '../words.js';

export class GrowingList {
  #list;
  #newer;
  #rows = new Map();
  #items = [];
  #key;
  #make;

  /**
   * @param {object} parts
   * @param {string} parts.label the label of the list
   * @param {(item: object) => string} parts.key identifies an entry
   * @param {(item: object) => HTMLElement} parts.make creates a list item
   */
  constructor({ label, key, make }) {
    this.#key = key;
    this.#make = make;
    this.#list = h('ul', { class: 'entries', 'aria-label': label });
    this.#newer = h('button', { type: 'button', class: 'button small newer', hidden: true, onclick: () => this.#renew() });
    this.element = h('div', {}, this.#newer, this.#list);
  }

  /**
   * @param {object[]} items all entries, in order
   * @param {{now?: boolean}} [how] `now`: the user requested them
   */
  show(items, { now = false } = {}) {
    this.#items = items;
    const fresh = items.filter((item) => !this.#rows.has(this.#key(item))).length;
    // New entries must not move the text that the user is reading.
    if (fresh > 0 && !now && this.#isRead()) {
      setText(this.#newer, `Show ${count(fresh)} newer`);
      set(this.#newer, 'hidden', false);
      return;
    }
    this.#draw();
  }

  #isRead() {
    return this.#rows.size > 0 && (this.#list.contains(document.activeElement) || this.#list.querySelector('details[open]') !== null);
  }

  #renew() {
    this.#draw();
    // The button is hidden now, so focus the first entry.
    this.#list.querySelector('summary')?.focus();
  }

  #draw() {
    set(this.#newer, 'hidden', true);
    let next = this.#list.firstElementChild;
    const kept = new Map();
    for (const item of this.#items) {
      const key = this.#key(item);
      const row = this.#rows.get(key) ?? this.#make(item);
      kept.set(key, row);
      if (row === next) next = next.nextElementSibling;
      else this.#list.insertBefore(row, next);
    }
    for (const [key, row] of this.#rows) if (!kept.has(key)) row.remove();
    this.#rows = kept;
  }
}
