// Forms for the questions of a parked turn.

import { h, set } from '../../dom.js';
import { valueOf } from '../run_questions.js';
import { plain } from '../words.js';

/** Poll interval for a question that is not stored yet, in ms, and the maximum number of polls. */
const AGAIN = 300;
const LOOKS = 10;

export class RunQuestionsView {
  /**
   * @param {import('../run_questions.js').RunQuestions} questions
   * @param {(text: string) => void} tell shows a text for a short time
   */
  constructor(questions, tell) {
    this.questions = questions;
    this.tell = tell;
    this.element = h('div', { class: 'run-questions', hidden: true });
    this.shown = null;
    this.search = 0;
  }

  /** @param {import('../conversation.js').Conversation} state */
  show({ phase, thread }) {
    const parked = phase === 'parked' ? (thread?.id ?? null) : null;
    if (parked === this.shown) return;
    this.shown = parked;
    this.#fill([]);
    if (parked !== null) this.#load(parked);
  }

  async #load(thread) {
    const search = ++this.search;
    const isCurrent = () => this.shown === thread && this.search === search;
    for (let look = 0; look < LOOKS && isCurrent(); look++) {
      try {
        const found = await this.questions.open(thread);
        if (!isCurrent()) return;
        if (found.length > 0) {
          this.#fill(found.map((question) => this.#form(question)));
          return;
        }
      } catch (error) {
        this.tell(plain(error));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }

  #fill(forms) {
    this.element.replaceChildren(...forms);
    set(this.element, 'hidden', forms.length === 0);
  }

  #form(question) {
    const { key, message, schema } = question;
    const send = (value) => this.#answer(question, form, value);
    const id = `callboard-answer-${key}`;
    const text = h('textarea', { id, class: 'question-text', rows: '1', dir: 'auto' });
    const choices = [true, false].map((value) =>
      h('button', { type: 'button', class: 'button', onclick: () => send(value) }, value ? 'Yes' : 'No'),
    );
    const onsubmit = (event) => {
      event.preventDefault();
      if (text.value.trim() !== '') send(valueOf(text.value.trim(), schema));
    };
    const isChoice = schema?.type === 'boolean';
    const label = message ?? key;
    const form = h(
      'form',
      { class: 'questions', onsubmit },
      isChoice ? h('p', { dir: 'auto' }, label) : h('label', { for: id, dir: 'auto' }, label),
      ...(isChoice ? choices : [text, h('button', { type: 'submit', class: 'button', 'data-does': 'answer' }, 'Answer')]),
    );
    return form;
  }

  async #answer(question, form, value) {
    set(form, 'inert', '');
    try {
      await this.questions.answer(question, value);
      form.remove();
      // The turn may park at its next question before the page has seen it continue. Other open forms keep what was typed.
      if (this.shown !== null && this.element.childElementCount === 0) this.#load(this.shown);
    } catch (error) {
      set(form, 'inert', null);
      this.tell(plain(error));
    }
  }
}
