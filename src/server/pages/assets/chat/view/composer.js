// The composer, where the visitor writes a message.

import { h, icon, set, setText } from '../../dom.js';
import { spaced } from '../dictation/insert.js';
import { NOTE } from './attachments/tray.js';

/** The text box, the button that sends a message or stops a reply, and the controls for attachments and dictation. */
export class Composer {
  /**
   * @param {{onSend: (text: string) => void, onStop: () => void, onDraft: (text: string) => void, onBlocked: (why: string) => void}} asked
   * `onBlocked` is called if the visitor sends a message whose files are not ready
   * @param {{attach: import('./attachments/attach.js').Attach | null, dictation: import('./dictation.js').DictationView | null}} parts
   * null for parts that this chat does not have
   */
  constructor({ onSend, onStop, onDraft, onBlocked }, { attach, dictation }) {
    this.onSend = onSend;
    this.onStop = onStop;
    this.onDraft = onDraft;
    this.onBlocked = onBlocked;
    this.attach = attach;
    this.dictation = dictation;
    this.busy = false;
    this.text = h('textarea', {
      id: 'callboard-message',
      class: 'text',
      rows: '1',
      dir: 'auto',
      placeholder: 'Write a message …',
      autocomplete: 'off',
      'aria-describedby': 'callboard-hint',
      oninput: () => this.#changed(),
      onkeydown: (event) => this.#key(event),
      onpaste: (event) => attach?.onPaste(event),
    });
    this.button = h('button', { type: 'submit', class: 'send' });
    this.box = h(
      'div',
      { class: 'box', onclick: (event) => event.target === event.currentTarget && this.focus() },
      ...(attach === null ? [] : [attach.tray.element, attach.input]),
      dictation?.element ?? null,
      attach?.button ?? null,
      this.text,
      dictation?.button ?? null,
      this.button,
    );
    this.hint = h('p', { id: 'callboard-hint', class: 'hint' });
    this.locked = h('p', { id: 'callboard-locked', class: 'locked', dir: 'auto', hidden: true });
    this.element = h(
      'form',
      { class: 'composer', onsubmit: (event) => this.#submit(event) },
      h('label', { for: 'callboard-message', class: 'unseen' }, 'Your message'),
      this.locked,
      this.box,
      attach?.tray.spoken ?? null,
      dictation?.spoken ?? null,
      this.hint,
    );
    this.touch = matchMedia('(pointer: coarse)');
    this.touch.addEventListener('change', () => this.#adapt());
    this.#adapt();
    this.show({ busy: false, stopping: false, waiting: false, lock: null });
  }

  /** Labels the Enter key with its action. */
  #adapt() {
    set(this.text, 'enterkeyhint', this.touch.matches ? 'enter' : 'send');
    const keys = this.touch.matches
      ? 'Enter begins a new line, the button sends.'
      : 'Enter sends, Shift+Enter begins a new line.';
    setText(this.hint, `${keys} Replies may be wrong.`);
  }

  /**
   * @param {{busy: boolean, stopping: boolean, waiting: boolean, lock: {reason: string, forGood: boolean} | null}} how `busy`
   * while a reply streams, `waiting` while nothing can be sent yet; `lock` is the reason why the thread accepts no messages
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
    this.attach?.enable(!this.isLocked);
    this.dictation?.enable(!this.isLocked);
    set(this.locked, 'hidden', !this.isLocked);
    setText(this.locked, lock?.reason ?? '');
    // The stop button stays while a reply streams.
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

  /** Inserts a text at the cursor, and moves the cursor after it. */
  insert(text) {
    const { value, selectionStart: start, selectionEnd: end } = this.text;
    this.text.setRangeText(spaced(value, start, end, text), start, end, 'end');
    this.#changed();
    this.focus();
  }

  /** Updates the composer after a change of the files. */
  filesChanged() {
    this.#enable();
  }

  focus() {
    this.text.focus();
  }

  /** Whether there is a message that can be sent. */
  get #isReady() {
    const isEmpty = this.text.value.trim() === '' && (this.attach?.count ?? 0) === 0;
    return !isEmpty && !this.waiting && !this.isLocked && this.#filesNote === null;
  }

  get #filesNote() {
    return this.attach?.note ?? null;
  }

  #enable() {
    // A disabled button would lose the focus, so this one only announces that it is disabled.
    set(this.button, 'aria-disabled', String(this.busy ? this.stopping : !this.#isReady));
    set(this.button, 'aria-describedby', !this.busy && this.#filesNote !== null ? NOTE : null);
  }

  #changed() {
    // Some browsers do not fit the box to its text.
    if (!CSS.supports('field-sizing', 'content')) {
      this.text.style.height = 'auto';
      this.text.style.height = `${this.text.scrollHeight}px`;
    }
    this.#enable();
    this.onDraft(this.text.value);
  }

  #key(event) {
    // While an input method composes a word, Enter selects it. On a touch screen Enter begins a new line.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || this.touch.matches) return;
    event.preventDefault();
    if (!this.busy) this.#send();
  }

  #submit(event) {
    event.preventDefault();
    if (!this.busy) this.#send();
    else if (!this.stopping) this.onStop();
  }

  #send() {
    if (!this.#isReady) {
      if (this.#filesNote !== null) this.onBlocked(this.#filesNote);
      return;
    }
    const text = this.text.value.trim();
    if (this.onSend(text)) this.value = '';
  }
}
