// One widget: its components, and its state while one of its actions is pending.

import { h, set } from '../../../dom.js';
import { bounded } from '../../widget/tree.js';
import { Children } from './children.js';
import { Context } from './context.js';
import { connectLabels } from './fields.js';

export class WidgetView {
  #pending = 0;

  /** @param {import('./context.js').Ports} ports */
  constructor(ports) {
    // A fieldset disables all controls at once.
    this.element = h('fieldset', { class: 'w-root' });
    this.context = new Context(ports, (pending) => this.#pend(pending ? 1 : -1));
    this.root = new Children(this.element, this.context);
  }

  /**
   * Shows a state of the widget. Fields keep the entered values, and the focus stays.
   * @param {object} widget its root
   * @param {{itemId: string, domains: string[] | null}} about
   */
  show(widget, { itemId, domains }) {
    const root = bounded(widget);
    this.context.itemId = itemId;
    this.context.domains = domains;
    const { theme } = root?.props ?? {};
    set(this.element, 'data-theme', theme === 'light' || theme === 'dark' ? theme : null);
    const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
    this.root.show(root === null ? [] : [root]);
    connectLabels(this.element);
    // An element that moves among its siblings loses the focus.
    if (focused !== document.activeElement) restore(focused);
  }

  /** Disables the widget while an action is pending. */
  setPending(pending) {
    const focused = document.activeElement;
    if (pending && this.element.contains(focused)) this.focused = focused;
    set(this.element, 'aria-busy', pending ? 'true' : null);
    set(this.element, 'disabled', pending);
    // A disabled element loses the focus.
    if (!pending && (document.activeElement === document.body || document.activeElement === null)) restore(this.focused);
    if (!pending) this.focused = null;
  }

  #pend(change) {
    this.#pending += change;
    this.setPending(this.#pending > 0);
  }
}

function restore(element) {
  if (element?.isConnected) element.focus({ preventScroll: true });
}
