// One question of a form.

import { h, set } from '../../../dom.js';
import { emptyEntry } from '../../questions.js';

const MAX_LENGTH = 10_000;
let ids = 0;

function nextId() {
  ids += 1;
  return `callboard-question-${ids}`;
}

export class QuestionField {
  /**
   * @param {import('../../questions.js').Question} question
   * @param {import('../../questions.js').Entry} [entry]
   * @param {(entry: import('../../questions.js').Entry) => void} onChange
   */
  constructor(question, entry = emptyEntry(), onChange) {
    this.onChange = onChange;
    this.options = [];
    const [title, about] = [nextId(), nextId()];
    const hint = question.description || (question.multiple && question.options !== null ? 'Choose one or more.' : '');
    const description = hint === '' ? null : h('p', { id: about, class: 'quiet', dir: 'auto' }, hint);
    const describedBy = description === null ? null : about;
    const fields = question.options === null ? [this.#text(title, describedBy)] : this.#choices(question);
    this.element = h(
      'fieldset',
      { class: 'question', 'aria-describedby': question.options === null ? null : describedBy, oninput: (event) => this.#entered(event) },
      h('legend', { id: title, dir: 'auto' }, question.text),
      description,
      ...fields,
    );
    this.#fill(entry);
  }

  /** Moves the focus to the chosen option, or to the first field. */
  focus() {
    (this.options.find(({ input }) => input.checked)?.input ?? this.options[0]?.input ?? this.text).focus();
  }

  #text(title, describedBy) {
    this.text = h('textarea', { class: 'question-text', rows: '2', dir: 'auto', maxlength: MAX_LENGTH, 'aria-labelledby': title, 'aria-describedby': describedBy });
    return this.text;
  }

  #choices({ options, multiple }) {
    const [type, name] = [multiple ? 'checkbox' : 'radio', nextId()];
    const choice = (label) => {
      const input = h('input', { type, name });
      return { input, element: h('label', { class: 'question-choice' }, input, h('span', { dir: 'auto' }, label)) };
    };
    this.options = options.map((value) => ({ value, ...choice(value) }));
    this.other = choice('Other');
    this.text = h('input', { type: 'text', class: 'question-text', dir: 'auto', maxlength: MAX_LENGTH, autocomplete: 'off', 'aria-label': 'Other answer' });
    // A radio button alone cannot be turned off.
    this.clear = multiple ? null : h('button', { type: 'button', class: 'question-clear', onclick: () => this.#clear() }, 'Clear the choice');
    return [...this.options.map(({ element }) => element), h('div', { class: 'question-other' }, this.other.element, this.text), this.clear];
  }

  #fill({ chosen, isOther, text }) {
    for (const { value, input } of this.options) input.checked = chosen.includes(value);
    if (this.other) this.other.input.checked = isOther;
    this.text.value = text;
    this.#showClear();
  }

  #entered({ target }) {
    // Entering another answer also selects it.
    if (this.other && target === this.text && this.text.value !== '') this.other.input.checked = true;
    this.#changed();
  }

  #clear() {
    this.#fill({ ...emptyEntry(), text: this.text.value });
    this.#changed();
    this.focus();
  }

  #changed() {
    const chosen = this.options.filter(({ input }) => input.checked).map(({ value }) => value);
    this.#showClear();
    this.onChange({ chosen, isOther: this.other?.input.checked ?? false, text: this.text.value });
  }

  #showClear() {
    if (!this.clear) return;
    set(this.clear, 'hidden', ![...this.options, this.other].some(({ input }) => input.checked));
  }
}
