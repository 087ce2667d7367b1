// Components that arrange other components.

import { h } from '../../../dom.js';
import { color } from '../../widget/color.js';
import { boxLook } from '../../widget/look.js';
import { size, spacing } from '../../widget/values.js';
import { applyLook } from './apply.js';
import { Children } from './children.js';

/** `Box`, `Row`, `Col`, `Basic` and `Transition`. */
export class Box {
  constructor(context, element = h('div')) {
    this.element = element;
    this.children = new Children(element, context);
  }

  show({ type, props, children }) {
    applyLook(this.element, `w-box w-${type.toLowerCase()}`, boxLook(props));
    this.children.show(children);
  }
}

export class Form extends Box {
  constructor(context) {
    super(context, h('form', { 'data-collects': true, onsubmit: (event) => this.#submit(event) }));
    this.context = context;
  }

  show(component) {
    this.action = component.props.onSubmitAction;
    this.context.onSubmit(this.element, this.action);
    super.show(component);
  }

  #submit(event) {
    event.preventDefault();
    // An outer form must not receive the submit event of an inner one.
    event.stopPropagation();
    this.context.act(this.action, 'submit', event.submitter ?? this.element);
  }
}

/** A component of an unknown type; shows only its children. */
export class Unknown {
  constructor(context) {
    this.element = h('div', { class: 'w-unknown' });
    this.children = new Children(this.element, context);
  }

  show({ children }) {
    this.children.show(children);
  }
}

export class Spacer {
  constructor() {
    this.element = h('div');
  }

  show({ props }) {
    const least = size(props.minSize);
    applyLook(this.element, 'w-spacer', { classes: [], style: least === null ? {} : { 'flex-basis': least } });
  }
}

export class Divider {
  constructor() {
    this.element = h('hr');
  }

  show({ props }) {
    const values = { '--w-divider': color(props.color, 'line'), '--w-divider-size': size(props.size), '--w-divider-spacing': spacing(props.spacing) };
    const style = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    applyLook(this.element, 'w-divider', { classes: props.flush === true ? ['w-flush'] : [], style });
  }
}
