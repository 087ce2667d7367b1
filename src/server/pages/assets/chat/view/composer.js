// Where a message is written.

import { h, icon, set, setText } from '../../dom.js';

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
    this.box = h('div', { class: 'box', onclick: (event) => event.target === event.currentTarget && this.focus() }, this.text, this.button);
    this.hint = h('p', { id: 'callboard-hint', class: 'hint' }, 'Enter sends, Shift+Enter begins a new line. Replies may be wrong.');
    this.locked = h('p', { id: 'callboard-locked', class: 'locked', dir: 'auto', hidden: true });
    this.element = h(
      'form',
      { class: 'composer', onsubmit: (event) => this.#submit(event) },
      h('label', { for: 'callboard-message', class: 'unseen' }, 'Your message'),
      this.locked,
      this.box,
      this.hint,
    );
    this.show({ busy: false, stopping: false, waiting: false, lock: null });
  }

  /**
   * @param {{busy: boolean, stopping: boolean, waiting: boolean, lock: {reason: string, forGood: boolean} | null}} how `busy`
   * while a reply comes, `waiting` while nothing can be sent yet; `lock` says why the thread accepts no messages
   */
  show({ busy, stopping, waiting, lock }) {
    this.busy = busy;
    this.waiting = waiting;
    this.stopping = stopping;
    this.isLocked = lock !== null;
    const label = busy ? (stopping ? 'Stopping' : 'Stop the reply') : 'Send';
    if (this.label !== label) {
      this.label = label;
      this.button.replaceChildren(icon(busy ? 'stop' : 'send'));
      set(this.button, 'aria-label', label);
      set(this.button, 'title', label);
      set(this.button, 'data-does', busy ? 'stop' : 'send');
    }
    set(this.text, 'disabled', this.isLocked);
    set(this.locked, 'hidden', !this.isLocked);
    setText(this.locked, lock?.reason ?? '');
    // The stop button stays as long as a reply comes.
    set(this.box, 'hidden', lock?.forGood === true && !busy);
    set(this.hint, 'hidden', this.isLocked);
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
    const nothing = this.text.value.trim() === '' || this.waiting || this.isLocked;
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
    if (text === '' || this.waiting || this.isLocked) return;
    this.value = '';
    this.onSend(text);
  }
}
