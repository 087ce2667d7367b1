// Lists of items, each of which may be clicked.

import { h, icon, set, setText } from '../../../dom.js';
import { boxLook } from '../../widget/look.js';
import { whole } from '../../widget/values.js';
import { applyLook } from './apply.js';
import { Children } from './children.js';
import { StatusLine } from './status.js';

/** Number of items shown with `limit: "auto"`. */
const AUTO = 5;
const MAX_LIMIT = 1000;

export class ListView {
  constructor(context) {
    this.status = new StatusLine(context);
    this.items = h('ul', { class: 'w-items' });
    this.children = new Children(this.items, context);
    this.more = h('button', { type: 'button', class: 'w-more', onclick: () => this.#showAll() });
    this.element = h('div', { class: 'w-list' }, this.status.element, this.items, this.more);
  }

  show({ props, children }) {
    this.status.show(props.status);
    this.children.show(children.map(asItem));
    this.limit = this.isWhole ? Infinity : props.limit === 'auto' ? AUTO : (whole(props.limit, 1, MAX_LIMIT) ?? Infinity);
    this.#limit();
  }

  #limit() {
    const items = [...this.items.children];
    for (const [at, item] of items.entries()) set(item, 'hidden', at >= this.limit);
    const left = items.length - this.limit;
    set(this.more, 'hidden', !(left > 0));
    setText(this.more, left > 0 ? `Show ${left} more` : '');
  }

  #showAll() {
    const first = this.items.children[this.limit];
    this.isWhole = true;
    this.limit = Infinity;
    this.#limit();
    // The button that had the focus is hidden now, so focus the first new item.
    (first?.querySelector('button, input, select, textarea, a') ?? first)?.focus();
  }
}

/** Wraps other components in a list item. */
function asItem(component) {
  return component.type === 'ListViewItem' ? component : { type: 'ListViewItem', props: {}, children: [component] };
}

export class ListItem {
  constructor(context) {
    this.context = context;
    const id = context.id();
    this.body = h('div', { id });
    this.children = new Children(this.body, context);
    // The button covers the item, below the item's controls: a button must not contain other controls.
    this.go = h(
      'button',
      { type: 'button', class: 'w-item-go', 'aria-labelledby': id, onclick: () => context.act(this.action, 'click', this.go) },
      icon('next'),
    );
    this.element = h('li', { class: 'w-item', tabindex: '-1' }, this.body, this.go);
  }

  show({ props, children }) {
    applyLook(this.body, 'w-box w-row w-item-body', boxLook({ gap: props.gap, align: props.align }));
    this.action = props.onClickAction;
    set(this.go, 'hidden', !this.action);
    this.context.enable(this.go, this.action, false);
    this.children.show(children);
  }
}
