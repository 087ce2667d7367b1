// Buttons of widgets.

import { h, set, setText } from '../../../dom.js';
import { oneOf } from '../../widget/values.js';
import { applyLook, textIn } from './apply.js';
import { IconHolder } from './icons.js';
import { controlClasses } from './inputs.js';

const COLORS = ['primary', 'secondary', 'info', 'discovery', 'success', 'caution', 'warning', 'danger'];

export class Button {
  constructor(context) {
    this.context = context;
    this.start = new IconHolder();
    this.end = new IconHolder();
    this.label = h('span', { dir: 'auto' });
    this.element = h('button', { onclick: () => this.#click() }, this.start.element, this.label, this.end.element);
  }

  show({ props }) {
    const label = textIn(props.label);
    setText(this.label, label);
    set(this.label, 'hidden', label === '');
    this.start.show(props.iconStart);
    this.end.show(props.iconEnd);
    const name = textIn(props.iconStart) || textIn(props.iconEnd) || 'Button';
    set(this.element, 'aria-label', label === '' ? name.replace(/^(?:lucide|vendor):/, '').replaceAll('-', ' ') : null);
    this.submits = props.submit === true;
    set(this.element, 'type', this.submits ? 'submit' : 'button');
    const classes = [
      ...oneOf('w-style', props.style, ['primary', 'secondary']),
      ...oneOf('w-color', props.color, COLORS),
      ...oneOf('w-icon', props.iconSize, ['sm', 'md', 'lg', 'xl', '2xl']),
      ...controlClasses(props),
      ...(props.uniform === true || label === '' ? ['w-uniform'] : []),
    ];
    applyLook(this.element, 'w-button', { classes, style: {} });
    this.action = props.onClickAction;
    this.context.enable(this.element, this.submits ? this.context.submitOf(this.element) : this.action, props.disabled);
  }

  #click() {
    if (!this.submits) this.context.act(this.action, 'click', this.element);
  }
}
