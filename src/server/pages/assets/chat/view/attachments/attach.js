// Attaches files to the next message: from a button, a drop or a paste.

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
   * @param {(text: string) => void} ports.tell shows a text to the visitor
   * @param {() => void} ports.onChange after each change of the files
   * @param {() => boolean} ports.accepts whether a message can be written now
   */
  constructor({ api, tell, onChange, accepts }) {
    this.tell = tell;
    this.onChange = onChange;
    this.uploads = new Uploads({
      send: (file, how) => api.upload(file, how),
      // The service deletes unsent attachments after a day.
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

  /** @param {AbortSignal} signal removes the listeners */
  listen(signal) {
    this.zone.listen(signal);
    signal.addEventListener('abort', () => this.uploads.end());
  }

  /** Number of files in the next message. */
  get count() {
    return this.uploads.list.length;
  }

  /** The reason why the message cannot be sent yet, as a sentence; null if it can. */
  get note() {
    return noteOf(this.uploads);
  }

  /** Takes the attachments for the message that is being sent. */
  take() {
    this.tray.sent();
    return this.uploads.take();
  }

  /** Removes all files, which the service has erased. */
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

  /** Attaches pasted files, unless the paste is text. */
  onPaste(event) {
    const files = event.clipboardData ? pastedFiles(event.clipboardData) : [];
    if (files.length === 0) return;
    event.preventDefault();
    this.#add(files);
  }

  #picked() {
    this.#add([...this.input.files]);
    // Reset the input, so that the same file can be chosen again.
    this.input.value = '';
  }

  #add(files, folders = 0) {
    const refused = this.uploads.add(files);
    const notes = [folders > 0 && NO_FOLDERS, refused > 0 && TOO_MANY].filter(Boolean);
    if (notes.length > 0) this.tell(notes.join(' '));
  }
}
