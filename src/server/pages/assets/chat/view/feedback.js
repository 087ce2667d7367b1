// The two feedback buttons of a reply.

import { iconButton, set } from '../../dom.js';

/**
 * @typedef {object} FeedbackPort
 * @property {(item: string) => import('../feedback.js').Kind | null} kindOf
 * @property {(thread: string, item: string, kind: import('../feedback.js').Kind) => void} give
 */

export class FeedbackView {
  /** @param {FeedbackPort} feedback */
  constructor(feedback) {
    this.feedback = feedback;
    this.positive = this.#button('good', 'Good reply', 'positive');
    this.negative = this.#button('bad', 'Bad reply', 'negative');
    this.elements = [this.positive, this.negative];
  }

  /**
   * @param {string | null} item the buttons are hidden without an item
   * @param {string | null} thread
   */
  show(item, thread) {
    this.item = item;
    this.thread = thread;
    const kind = item === null ? null : this.feedback.kindOf(item);
    for (const button of this.elements) set(button, 'hidden', item === null || thread === null);
    set(this.positive, 'aria-pressed', String(kind === 'positive'));
    set(this.negative, 'aria-pressed', String(kind === 'negative'));
  }

  #button(picture, label, kind) {
    const give = () => this.feedback.give(this.thread, this.item, kind);
    return iconButton(picture, label, give, { 'aria-pressed': 'false', 'data-feedback': kind });
  }
}
