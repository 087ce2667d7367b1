// Badges, icons and images.

import { h, set, setText } from '../../../dom.js';
import { color } from '../../widget/color.js';
import { blockLook } from '../../widget/look.js';
import { oneOf } from '../../widget/values.js';
import { applyLook, textIn } from './apply.js';
import { IconHolder } from './icons.js';

const POSITIONS = ['top left', 'top', 'top right', 'left', 'center', 'right', 'bottom left', 'bottom', 'bottom right'];

export class Badge {
  constructor() {
    this.element = h('span', { dir: 'auto' });
  }

  show({ props }) {
    const classes = [
      ...oneOf('w-color', props.color, ['secondary', 'success', 'danger', 'warning', 'info', 'discovery']),
      ...oneOf('w-variant', props.variant, ['solid', 'soft', 'outline']),
      ...oneOf('w-size', props.size, ['sm', 'md', 'lg']),
      ...(props.pill === false ? ['w-square'] : []),
    ];
    applyLook(this.element, 'w-badge', { classes, style: {} });
    setText(this.element, textIn(props.label));
  }
}

export class Icon {
  constructor() {
    this.holder = new IconHolder();
    this.element = this.holder.element;
  }

  show({ props }) {
    const drawnIn = color(props.color, 'text');
    const classes = oneOf('w-size', props.size, ['xs', 'sm', 'md', 'lg', 'xl', '2xl', '3xl']);
    applyLook(this.element, 'w-icon', { classes, style: drawnIn === null ? {} : { color: drawnIn } });
    this.holder.show(textIn(props.name) || 'dot');
  }
}

export class Image {
  constructor(context) {
    this.context = context;
    this.image = h('img', { loading: 'lazy', decoding: 'async', referrerpolicy: 'no-referrer' });
    this.note = h('span', { class: 'w-image-note', dir: 'auto', hidden: true });
    this.element = h('div', {}, this.image, this.note);
    this.image.addEventListener('error', () => this.#fail(true));
    this.image.addEventListener('load', () => this.#fail(false));
  }

  show({ props }) {
    const { classes, style } = blockLook(props);
    const background = color(props.background, 'surface');
    if (background !== null) style['background-color'] = background;
    if (POSITIONS.includes(props.position)) style['--w-position'] = props.position;
    const known = [
      ...classes,
      ...oneOf('w-fit', props.fit, ['cover', 'contain', 'fill', 'scale-down', 'none']),
      ...(style.width ? ['w-has-width'] : []),
      ...(style.height || style['aspect-ratio'] ? ['w-has-height'] : []),
      ...(props.frame === true ? ['w-framed'] : []),
      ...(props.flush === true ? ['w-flush'] : []),
    ];
    applyLook(this.element, 'w-image', { classes: known, style });
    const alt = textIn(props.alt);
    set(this.image, 'alt', alt);
    setText(this.note, alt || 'The image is not available.');
    const address = this.context.image(props.src);
    if (address === this.address) return;
    this.address = address;
    set(this.image, 'src', address);
    this.#fail(address === null);
  }

  #fail(failed) {
    set(this.image, 'hidden', failed);
    set(this.note, 'hidden', !failed);
  }
}
