// The attachments of the next message, in the composer.

import { h, icon, iconButton, set, setText } from '../../../dom.js';
import { canRetry } from '../../attachments/uploads.js';
import { announcement, detailOf, noteOf } from '../../attachments/words.js';
import { Thumbnail } from './list.js';

/** The id of the text that says why the message cannot be sent yet. */
export const NOTE = 'callboard-attachments-note';

export class Tray {
  #shown = new Map();
  #last = [];

  /**
   * @param {{onRemove: (key: string) => void, onRetry: (key: string) => void, onEmptied: () => void}} asked `onEmptied` is
   * called if the removed file had the focus and was the last one
   */
  constructor({ onRemove, onRetry, onEmptied }) {
    this.onRemove = onRemove;
    this.onRetry = onRetry;
    this.onEmptied = onEmptied;
    this.list = h('ul', { class: 'uploads', 'aria-label': 'Files of the message' });
    this.note = h('p', { class: 'uploads-note', id: NOTE, hidden: true });
    this.element = h('div', { class: 'tray', hidden: true }, this.list, this.note);
    /** Must be outside of elements that may be hidden: a live region is announced only if it exists before its text. */
    this.spoken = h('p', { class: 'unseen', 'aria-live': 'polite' });
  }

  /** @param {import('../../attachments/uploads.js').Uploads} uploads */
  show(uploads) {
    const { list } = uploads;
    const kept = new Set(list.map(({ key }) => key));
    const at = this.#focusedAt();
    for (const [key, { element }] of this.#shown) {
      if (kept.has(key)) continue;
      element.remove();
      this.#shown.delete(key);
    }
    for (const upload of list) {
      if (!this.#shown.has(upload.key)) this.#make(upload);
      this.#shown.get(upload.key).show(upload);
    }
    set(this.element, 'hidden', list.length === 0);
    const note = noteOf(uploads);
    set(this.note, 'hidden', note === null);
    setText(this.note, note ?? '');
    if (at >= 0 && !this.list.contains(document.activeElement)) this.#focusNear(at);
    this.#speak(list);
  }

  /** Suppresses the announcement of sent files: the page announces the message. */
  sent() {
    this.#last = [];
  }

  #make(upload) {
    const view = new Chip(upload, { onRemove: () => this.onRemove(upload.key), onRetry: () => this.onRetry(upload.key) });
    this.#shown.set(upload.key, view);
    this.list.append(view.element);
  }

  /** The index of the file with the focus, or -1. */
  #focusedAt() {
    return [...this.list.children].findIndex((element) => element.contains(document.activeElement));
  }

  /** Moves the focus from a removed file to the next one, or to the previous one if it was the last. */
  #focusNear(at) {
    const near = this.list.children[at] ?? this.list.lastElementChild;
    if (near === null) this.onEmptied();
    else near.querySelector('[data-does=remove]').focus();
  }

  #speak(list) {
    const text = announcement(this.#last, list);
    this.#last = list;
    if (text !== '') setText(this.spoken, text);
  }
}

class Chip {
  constructor({ file }, { onRemove, onRetry }) {
    this.image = new Thumbnail(() => this.#choose());
    this.icon = icon('file');
    this.detail = h('span', { class: 'file-detail' });
    this.progress = h('progress', { max: '1', 'aria-label': `Upload of ${file.name}`, hidden: true });
    this.retry = iconButton('again', `Retry “${file.name}”`, () => {
      // This button is about to be removed.
      this.remove.focus();
      onRetry();
    });
    this.remove = iconButton('close', `Remove “${file.name}”`, onRemove, { 'data-does': 'remove' });
    const name = h('bdi', { class: 'file-name', title: file.name }, file.name);
    const words = h('span', { class: 'file-words' }, name, this.detail, this.progress);
    this.element = h('li', { class: 'file-chip' }, this.image.element, this.icon, words, this.retry, this.remove);
  }

  show(upload) {
    const { state, progress, attachment, error } = upload;
    const failed = state === 'failed' && this.element.dataset.state !== state;
    set(this.element, 'data-state', state);
    setText(this.detail, detailOf(upload));
    set(this.progress, 'hidden', state !== 'uploading');
    set(this.progress, 'value', progress);
    set(this.retry, 'hidden', state !== 'failed' || !canRetry(error));
    // The name is shown next to the image, so the image needs no alternative text.
    this.image.show(attachment === null ? { type: 'file', name: '', preview_url: null } : { ...attachment, name: '' });
    this.#choose();
    if (failed) this.element.scrollIntoView({ block: 'nearest' });
  }

  #choose() {
    set(this.image.element, 'hidden', !this.image.loads);
    set(this.icon, 'hidden', this.image.loads);
  }
}
