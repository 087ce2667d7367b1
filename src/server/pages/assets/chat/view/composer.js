// Where a message is written.

import { h, icon, set } from '../../dom.js';

/** The box with the text and its one button: send, or stop while a reply comes. */
export class Composer {
  /**
   * @param {{onSend: (text: string) => void, onStop: () => void, onDraft: (text: string) => void}} asked
   */
  constructor({ onSend, onStop, onDraft }) {
    this.onSend = onSend;
    this.onStop = onStop;
    this.onDraft = onDraft;
    this.busy = false;
    this.text = h('textarea', {
      id: 'callboard-message',
      class: 'text',
      rows: '1',
      dir: 'auto',
      placeholder: 'Write a message …',
      autocomplete: 'off',
      'aria-describedby': 'callboard-hint',
      enterkeyhint: 'send',
      oninput: () => this.#changed(),
      onkeydown: (event) => this.#key(event),
    });
    this.button = h('button', { type: 'submit', class: 'send' });
    this.element = h(
      'form',
      { class: 'composer', onsubmit: (event) => this.#submit(event) },
      h('label', { for: 'callboard-message', class: 'unseen' }, 'Your message'),
      h('div', { class: 'box', onclick: (event) => event.target === event.currentTarget && this.focus() }, this.text, this.button),
      h('p', { id: 'callboard-hint', class: 'hint' }, 'Enter sends, Shift+Enter begins a new line. Replies may be wrong.'),
    );
    this.show({ busy: false, stopping: false, waiting: false, closed: null });
  }

  /**
   * @param {{busy: boolean, stopping: boolean, waiting: boolean, closed: string | null}} how `busy` while a reply comes,
   * `waiting` while nothing can be sent yet; `closed` says why nothing can be said
   */
  show({ busy, stopping, waiting, closed }) {
    this.busy = busy;
    this.waiting = waiting;
    this.stopping = stopping;
    this.closed = closed;
    const label = busy ? (stopping ? 'Stopping' : 'Stop the reply') : 'Send';
    if (this.label !== label) {
      this.label = label;
      this.button.replaceChildren(icon(busy ? 'stop' : 'send'));
      set(this.button, 'aria-label', label);
      set(this.button, 'title', label);
      set(this.button, 'data-does', busy ? 'stop' : 'send');
    }
    set(this.text, 'disabled', closed !== null);
    set(this.text, 'placeholder', closed ?? 'Write a message …');
    this.#enable();
  }

  get value() {
    return this.text.value;
  }

  set value(text) {
    this.text.value = text;
    this.#changed();
  }

  focus() {
    this.text.focus();
  }

  #enable() {
    const nothing = this.text.value.trim() === '' || this.waiting || this.closed !== null;
    // A disabled button would lose the focus; this one says that it does nothing.
    set(this.button, 'aria-disabled', String(this.busy ? this.stopping : nothing));
  }

  #changed() {
    // Where the browser does not fit the box to its text by itself.
    if (!CSS.supports('field-sizing', 'content')) {
      this.text.style.height = 'auto';
      this.text.style.height = `${this.text.scrollHeight}px`;
    }
    this.#enable();
    this.onDraft(this.text.value);
  }

  #key(event) {
    // While an input method composes a word, Enter chooses it. On a phone it begins a new line.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || matchMedia('(pointer: coarse)').matches) return;
    event.preventDefault();
    if (!this.busy) this.#send();
  }

  #submit(event) {
    event.preventDefault();
    if (this.button.getAttribute('aria-disabled') === 'true') return;
    if (this.busy) this.onStop();
    else this.#send();
  }

  #send() {
    const text = this.text.value.trim();
    if (text === '' || this.waiting || this.closed !== null) return;
    this.value = '';
    this.onSend(text);
  }
}
