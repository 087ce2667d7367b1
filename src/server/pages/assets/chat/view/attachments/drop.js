// The drop zone for files that are dragged over the window.

import { h, icon, set } from '../../../dom.js';
import { droppedFiles } from '../../attachments/files.js';

/** Time after the last `dragover` event, in ms, until the zone is hidden; the event repeats while files are over the window. */
const GONE = 1000;

export class DropZone {
  /**
   * @param {{accepts: () => boolean, onFiles: (dropped: {files: File[], folders: number}) => void}} asked `accepts` says
   * whether files can be attached now
   */
  constructor({ accepts, onFiles }) {
    this.accepts = accepts;
    this.onFiles = onFiles;
    const text = h('span', { class: 'drop-text' }, icon('attach'), 'Drop the files to attach them');
    this.element = h('div', { class: 'drop-zone', 'aria-hidden': 'true', hidden: true }, text);
  }

  /** @param {AbortSignal} signal removes the listeners */
  listen(signal) {
    for (const type of ['dragenter', 'dragover']) document.addEventListener(type, (event) => this.#over(event), { signal });
    document.addEventListener('dragleave', (event) => event.relatedTarget === null && this.#show(false), { signal });
    document.addEventListener('drop', (event) => this.#drop(event), { signal });
    signal.addEventListener('abort', () => this.#show(false));
  }

  #over(event) {
    if (!hasFiles(event)) return;
    // By default the browser leaves the page and opens the file.
    event.preventDefault();
    const accepts = this.accepts();
    event.dataTransfer.dropEffect = accepts ? 'copy' : 'none';
    this.#show(accepts);
  }

  #drop(event) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.#show(false);
    if (this.accepts()) this.onFiles(droppedFiles(event.dataTransfer));
  }

  #show(over) {
    set(this.element, 'hidden', !over);
    clearTimeout(this.gone);
    if (over) this.gone = setTimeout(() => this.#show(false), GONE);
  }
}

function hasFiles({ dataTransfer }) {
  return dataTransfer?.types.includes('Files') === true;
}
