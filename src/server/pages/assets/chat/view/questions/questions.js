// Questions of the workflow: a form while they are pending, then a list of the answers.

import { h, set, setText } from '../../../dom.js';
import { skippedAll, submission } from '../../questions.js';
import { plain } from '../../words.js';
import { QuestionField } from './field.js';

/**
 * @typedef {object} QuestionsPort
 * @property {import('../../questions.js').Drafts} drafts
 * @property {(item: string, input: object) => Promise<import('../../api.js').ApiError | null>} send resolves to null if the service accepted the answers
 * @property {(text: string) => void} tell shows a text to the visitor
 * @property {() => void} onSent called if the form had the focus when it was sent
 */

export class QuestionsView {
  #fields = [];
  #entries = {};
  #isSending = false;

  /** @param {QuestionsPort} port */
  constructor(port) {
    this.port = port;
    this.list = h('div', { class: 'questions-list' });
    this.submit = h('button', { type: 'submit', class: 'button primary small', 'data-does': 'send' }, 'Send');
    this.skip = h('button', { type: 'button', class: 'button small', 'data-does': 'skip', onclick: () => this.#send(skippedAll(this.questions)) }, 'Skip all');
    this.controls = h('fieldset', { class: 'questions-controls' }, this.list, h('div', { class: 'ways' }, this.submit, this.skip));
    this.error = h('p', { class: 'questions-error', 'aria-live': 'polite', dir: 'auto' });
    this.state = h('p', { class: 'state', dir: 'auto' });
    this.form = h('form', { class: 'questions', 'aria-label': 'Questions', novalidate: true, onsubmit: (event) => this.#submit(event) }, this.controls, this.state);
    this.answers = h('dl', { class: 'questions questions-answers', hidden: true });
    this.element = h('div', { class: 'questions-holder' }, this.form, this.answers, this.error);
  }

  /**
   * @param {import('../../conversation.js').Item} item
   * @param {{reason: string, forGood: boolean} | null} lock
   */
  show(item, lock) {
    const { status, list } = item.questions;
    const isPending = status === 'pending';
    if (item.stored !== this.stored) {
      this.stored = item.stored;
      this.id = item.id;
      if (isPending) this.#build(list);
      else this.#answered(list, status);
    }
    set(this.form, 'hidden', !isPending);
    set(this.answers, 'hidden', isPending);
    if (!isPending) return;
    this.closed = lock?.forGood === true ? lock.reason : null;
    this.#showState();
  }

  /** Moves the focus to the first field. */
  focus() {
    this.#fields[0]?.focus();
  }

  #build(list) {
    this.questions = list;
    // Entries survive updates of the conversation.
    const source = JSON.stringify(list);
    if (source === this.source) return;
    this.source = source;
    this.#entries = { ...this.port.drafts.read(this.id), ...this.#entries };
    this.#fields = list.map((question) => {
      const entry = Object.hasOwn(this.#entries, question.id) ? this.#entries[question.id] : undefined;
      return new QuestionField(question, entry, (next) => this.#changed(question.id, next));
    });
    this.list.replaceChildren(...this.#fields.map(({ element }) => element));
  }

  #changed(id, entry) {
    this.#entries = { ...this.#entries, [id]: entry };
    setText(this.error, '');
    this.port.drafts.keep(this.id, this.#entries);
  }

  #answered(list, status) {
    this.port.drafts.remove(this.id);
    setText(this.error, '');
    const rows = list.map(({ text, answer }) =>
      h(
        'div',
        {},
        h('dt', { dir: 'auto' }, text),
        ...(answer === null ? [h('dd', { class: 'quiet' }, status === 'skipped' ? 'Skipped' : 'No answer')] : answer.map((value) => h('dd', { dir: 'auto' }, value))),
      ),
    );
    const hadFocus = this.form.contains(document.activeElement);
    this.answers.replaceChildren(...rows);
    if (hadFocus) this.port.onSent();
  }

  #submit(event) {
    event.preventDefault();
    const input = submission(this.questions, this.#entries);
    if (input !== null) {
      this.#send(input);
      return;
    }
    setText(this.error, 'Answer at least one question, or choose “Skip all”.');
    this.focus();
  }

  async #send(input) {
    if (this.#isSending) return;
    const { id } = this;
    const focused = this.form.contains(document.activeElement) ? document.activeElement : null;
    this.#isSending = true;
    setText(this.error, '');
    this.#showState();
    const error = await this.port.send(id, input);
    this.#isSending = false;
    // The answers count as being sent until the service confirms them.
    this.sentFor = error === null ? this.stored : null;
    this.#showState();
    if (error === null || error.code === 'item.not_pending') this.port.drafts.remove(id);
    if (error === null) {
      if (focused !== null && isFree(this.form)) this.port.onSent();
    } else if (error.code === 'item.not_pending') {
      this.port.tell(plain(error));
    } else {
      setText(this.error, plain(error));
      if (isFree(this.form)) focused?.focus();
    }
  }

  #showState() {
    const isOnItsWay = this.#isSending || this.sentFor === this.stored;
    set(this.controls, 'disabled', isOnItsWay || this.closed !== null);
    setText(this.state, isOnItsWay ? 'Sending …' : (this.closed ?? ''));
  }
}

/** Whether the focus has not moved elsewhere: a disabled element loses it. */
function isFree(form) {
  const { activeElement } = document;
  return activeElement === null || activeElement === document.body || form.contains(activeElement);
}
