// Attaches files to the next message: by a button, by dropping them, and by pasting them.

import { h, iconButton, set } from '../../../dom.js';
import { pastedFiles } from '../../attachments/files.js';
import { Uploads } from '../../attachments/uploads.js';
import { NO_FOLDERS, TOO_MANY, noteOf } from '../../attachments/words.js';
import { DropZone } from './drop.js';
import { Tray } from './tray.js';

export class Attach {
  /**
   * @param {object} ports
   * @param {import('../../api.js').Api} ports.api
   * @param {(text: string) => void} ports.tell says something to the visitor
   * @param {() => void} ports.onChange after each change of the files
   * @param {() => boolean} ports.accepts whether a message can be written now
   */
  constructor({ api, tell, onChange, accepts }) {
    this.tell = tell;
    this.onChange = onChange;
    this.uploads = new Uploads({
      send: (file, how) => api.upload(file, how),
      // The service deletes attachments that are not sent after a day.
      discard: (id) => api.ask('attachments.delete', { attachment_id: id }).catch(() => {}),
      onChange: () => this.#changed(),
    });
    this.tray = new Tray({
      onRemove: (key) => this.uploads.remove(key),
      onRetry: (key) => this.uploads.retry(key),
      onEmptied: () => this.button.focus(),
    });
    this.input = h('input', { type: 'file', multiple: true, hidden: true, onchange: () => this.#picked() });
    this.button = iconButton('attach', 'Attach files', () => this.input.click(), { class: 'icon-button box-button' });
    this.zone = new DropZone({ accepts, onFiles: ({ files, folders }) => this.#add(files, folders) });
  }

  /** @param {AbortSignal} signal ends it */
  listen(signal) {
    this.zone.listen(signal);
    signal.addEventListener('abort', () => this.uploads.end());
  }

  /** How many files the next message has. */
  get count() {
    return this.uploads.list.length;
  }

  /** Why the message cannot be sent yet, in a sentence; null if it can. */
  get note() {
    return noteOf(this.uploads);
  }

  /** The attachments of a message that is sent now. */
  take() {
    this.tray.sent();
    return this.uploads.take();
  }

  /** Removes all files; the service has erased them. */
  clear() {
    this.uploads.end();
    this.#changed();
  }

  #changed() {
    this.tray.show(this.uploads);
    this.onChange();
  }

  enable(enabled) {
    set(this.button, 'disabled', !enabled);
  }

  /** Attaches what is pasted, unless it is text. */
  onPaste(event) {
    const files = event.clipboardData ? pastedFiles(event.clipboardData) : [];
    if (files.length === 0) return;
    event.preventDefault();
    this.#add(files);
  }

  #picked() {
    this.#add([...this.input.files]);
    // So that the same file can be chosen again.
    this.input.value = '';
  }

  #add(files, folders = 0) {
    const refused = this.uploads.add(files);
    const notes = [folders > 0 && NO_FOLDERS, refused > 0 && TOO_MANY].filter(Boolean);
    if (notes.length > 0) this.tell(notes.join(' '));
  }
}
