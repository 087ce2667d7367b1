// The attachments of a message: images, and chips for other files.

import { h, icon, set, setText } from '../../../dom.js';
import { typeName } from '../../attachments/files.js';
import { imageAddress } from '../../widget/address.js';

/** Shows attachments. Each keeps its element while it is listed. */
export class AttachmentsView {
  #shown = new Map();

  constructor() {
    this.element = h('ul', { class: 'attachments', 'aria-label': 'Attached files', hidden: true });
  }

  /** @param {import('../../attachments/files.js').Attachment[]} attachments */
  show(attachments) {
    if (attachments === this.last) return;
    this.last = attachments;
    set(this.element, 'hidden', attachments.length === 0);
    const views = attachments.map((attachment) => {
      const view = this.#shown.get(attachment.id) ?? new Entry();
      view.show(attachment);
      return [attachment.id, view];
    });
    this.#shown = new Map(views);
    const elements = views.map(([, { element }]) => element);
    if (elements.some((element, at) => this.element.children[at] !== element) || elements.length !== this.element.children.length) {
      this.element.replaceChildren(...elements);
    }
  }
}

class Entry {
  constructor() {
    this.image = new Thumbnail(() => this.#choose());
    this.name = h('bdi', { class: 'file-name' });
    this.type = h('span', { class: 'file-detail' });
    this.chip = h('span', { class: 'file-chip' }, icon('file'), h('span', { class: 'file-words' }, this.name, this.type));
    this.element = h('li', {}, this.image.element, this.chip);
  }

  show(attachment) {
    const { name, mime_type: mime } = attachment;
    setText(this.name, name);
    set(this.name, 'title', name);
    setText(this.type, typeName(mime, name));
    this.image.show(attachment);
    this.#choose();
  }

  /** Shows a chip instead of an image that does not load. */
  #choose() {
    set(this.image.element, 'hidden', !this.image.loads);
    set(this.chip, 'hidden', this.image.loads);
  }
}

/** The preview of an image. */
export class Thumbnail {
  /** @param {() => void} onChange called after the image has loaded or failed to load */
  constructor(onChange) {
    this.loads = false;
    this.isLoaded = false;
    this.element = h('img', { class: 'thumbnail', loading: 'lazy', decoding: 'async', referrerpolicy: 'no-referrer', hidden: true });
    this.element.addEventListener('error', () => this.#turn(false, onChange));
    this.element.addEventListener('load', () => this.#turn(true, onChange));
  }

  /** @param {import('../../attachments/files.js').Attachment} attachment */
  show({ type, name, preview_url: preview }) {
    set(this.element, 'alt', name);
    const address = type === 'image' ? imageAddress(preview, { base: document.baseURI, data: false }) : null;
    // The address has a new signature each time. Do not load an image again that is already shown.
    if (address === this.address || (this.isLoaded && address !== null)) return;
    this.address = address;
    this.isLoaded = false;
    this.loads = address !== null;
    set(this.element, 'src', address);
  }

  #turn(loads, onChange) {
    this.isLoaded = loads;
    this.loads = loads;
    onChange();
  }
}
