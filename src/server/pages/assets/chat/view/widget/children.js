// The children of a component. Each keeps its element while it is listed.

import { keysOf } from '../../widget/tree.js';

export class Children {
  #views = new Map();

  /**
   * @param {HTMLElement} element has no other children
   * @param {import('./context.js').Context} context
   */
  constructor(element, context) {
    this.element = element;
    this.context = context;
  }

  /** @param {import('../../widget/tree.js').Component[]} components */
  show(components) {
    const keys = keysOf(components);
    const kept = new Set(keys);
    for (const [key, view] of this.#views) {
      if (!kept.has(key)) {
        view.element.remove();
        this.#views.delete(key);
      }
    }
    let at = this.element.firstElementChild;
    for (const [index, component] of components.entries()) {
      const view = this.#views.get(keys[index]) ?? this.#make(keys[index], component);
      if (view.element !== at) this.element.insertBefore(view.element, at);
      at = view.element.nextElementSibling;
      view.show(component);
    }
  }

  #make(key, component) {
    const view = this.context.view(component);
    this.#views.set(key, view);
    return view;
  }
}
