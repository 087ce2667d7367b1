// A generated image: a placeholder with progress, then the image.

import { h, set, setText } from '../../dom.js';
import { imageAddress } from '../widget/address.js';

export class ImageView {
  constructor() {
    this.image = h('img', { alt: 'Generated image', decoding: 'async', referrerpolicy: 'no-referrer', hidden: true });
    this.note = h('p', { class: 'picture-note' });
    this.progress = h('progress', { max: '1', 'aria-label': 'Progress of the image', hidden: true });
    this.element = h('div', { class: 'picture' }, this.image, this.note, this.progress);
    this.image.addEventListener('error', () => this.#load(false));
    this.image.addEventListener('load', () => this.#load(true));
  }

  /**
   * @param {{url: string | null, progress: number | null}} picture
   * @param {boolean} isOpen whether the image is not complete yet
   */
  show({ url, progress }, isOpen) {
    const address = imageAddress(url, { base: document.baseURI, data: false });
    setText(this.note, isOpen && address === null ? 'Generating the image …' : 'The image is not available.');
    set(this.progress, 'hidden', !isOpen);
    // Without a value the element shows that the progress is unknown.
    set(this.progress, 'value', progress);
    set(this.element, 'data-open', isOpen);
    if (address === this.address) return;
    this.address = address;
    set(this.image, 'src', address);
    this.#load(address !== null);
  }

  #load(loads) {
    set(this.image, 'hidden', !loads);
    set(this.note, 'hidden', loads);
  }
}
