// Cards: a frame with a status line, and buttons to confirm or cancel.

import { h, set, setText } from '../../../dom.js';
import { boxLook } from '../../widget/look.js';
import { oneOf } from '../../widget/values.js';
import { applyLook, textIn } from './apply.js';
import { Children } from './children.js';
import { StatusLine } from './status.js';

export class Card {
  constructor(context) {
    this.context = context;
    this.status = new StatusLine(context);
    const id = context.id();
    this.toggle = h('button', { type: 'button', class: 'w-toggle', 'aria-controls': id, onclick: () => this.#collapse(!this.isCollapsed) });
    this.head = h('div', { class: 'w-card-head' }, this.status.element, this.toggle);
    this.body = h('div', { id });
    this.children = new Children(this.body, context);
    this.cancel = h('button', { type: 'button', class: 'w-button w-variant-ghost', dir: 'auto', onclick: () => this.#act('cancel', this.cancel) });
    this.confirm = h('button', { class: 'w-button w-style-primary', dir: 'auto', onclick: () => this.isForm || this.#act('confirm', this.confirm) });
    this.foot = h('div', { class: 'w-card-foot' }, this.cancel, this.confirm);
    this.element = h('form', { onsubmit: (event) => this.#submit(event) }, this.head, this.body, this.foot);
  }

  show({ props, children }) {
    const { border, background, padding } = props;
    this.props = props;
    this.isForm = props.asForm === true;
    const frame = boxLook({ border, background });
    applyLook(this.element, 'w-card', { ...frame, classes: oneOf('w-size', props.size, ['sm', 'md', 'lg', 'full']) });
    applyLook(this.body, 'w-card-body', boxLook({ padding }));
    // Only a form collects the values of its fields.
    set(this.element, 'data-collects', this.isForm);
    this.context.onSubmit(this.element, this.isForm ? props.confirm?.action : null);
    this.status.show(props.status);
    if (props.collapsed !== this.collapsed) {
      this.collapsed = props.collapsed;
      this.#collapse(props.collapsed === true);
    }
    set(this.toggle, 'hidden', props.collapsed !== true);
    set(this.head, 'hidden', props.collapsed !== true && !this.status.isShown);
    this.#button(this.confirm, props.confirm);
    set(this.confirm, 'type', this.isForm ? 'submit' : 'button');
    this.#button(this.cancel, props.cancel);
    this.#foot();
    this.children.show(children);
  }

  #button(button, config) {
    const label = textIn(config?.label);
    set(button, 'hidden', label === '');
    setText(button, label);
    this.context.enable(button, config?.action, false);
  }

  #collapse(isCollapsed) {
    this.isCollapsed = isCollapsed;
    set(this.body, 'hidden', isCollapsed);
    set(this.toggle, 'aria-expanded', String(!isCollapsed));
    setText(this.toggle, isCollapsed ? 'Show details' : 'Hide details');
    this.#foot();
  }

  #foot() {
    set(this.foot, 'hidden', this.isCollapsed || (this.confirm.hidden && this.cancel.hidden));
  }

  #submit(event) {
    event.preventDefault();
    event.stopPropagation();
    if (this.isForm) this.#act('confirm', this.confirm, 'submit');
  }

  #act(name, button, cause = 'click') {
    this.context.act(this.props[name]?.action, cause, button);
  }
}
