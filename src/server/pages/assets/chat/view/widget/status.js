// The status line above a card or a list.

import { h, set, setText } from '../../../dom.js';
import { textIn } from './apply.js';
import { IconHolder } from './icons.js';

export class StatusLine {
  constructor(context) {
    this.context = context;
    this.icon = new IconHolder();
    this.favicon = h('img', { alt: '', width: 16, height: 16, referrerpolicy: 'no-referrer', decoding: 'async' });
    this.text = h('span', { dir: 'auto' });
    this.element = h('p', { class: 'w-status' }, this.favicon, this.icon.element, this.text);
    this.favicon.addEventListener('error', () => set(this.favicon, 'hidden', true));
  }

  show(status) {
    const text = textIn(status?.text);
    this.isShown = text !== '';
    set(this.element, 'hidden', !this.isShown);
    setText(this.text, text);
    this.icon.show(status?.icon);
    const address = this.context.image(status?.favicon);
    set(this.favicon, 'class', status?.frame === true ? 'w-framed' : null);
    if (address === this.address) return;
    this.address = address;
    set(this.favicon, 'hidden', address === null);
    set(this.favicon, 'src', address);
  }
}
