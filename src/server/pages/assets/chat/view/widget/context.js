// The context that the components of a widget share: its actions and its image rules.

import { set } from '../../../dom.js';
import { actionOf, pendingScope } from '../../widget/action.js';
import { imageAddress } from '../../widget/address.js';
import { mergeForm } from '../../widget/form.js';
import { enteredValues } from './fields.js';
import { KINDS, Unknown } from './kinds.js';

export const UNAVAILABLE = 'This action is not available here.';

/**
 * @typedef {object} Ports functions of the page that a widget calls
 * @property {(action: import('../../widget/action.js').Action) => boolean} isAvailable
 * @property {(action: import('../../widget/action.js').Action, about: {itemId: string, form: object}) => Promise<void> | undefined} onAction
 *   `action.payload` includes the form's values; `form` contains only these values
 */

let ids = 0;

/** The context of one widget. */
export class Context {
  /** Fields and buttons with a pending action. */
  #pending = new Set();
  /** The submit action of each form. */
  #submits = new WeakMap();

  /**
   * @param {Ports} ports
   * @param {(pending: boolean) => void} setPending
   */
  constructor(ports, setPending) {
    this.ports = ports;
    this.setPending = setPending;
    this.itemId = null;
    this.domains = null;
    this.actions = { completed: 0 };
  }

  /** Creates the view of a component. */
  view({ type }) {
    return Object.hasOwn(KINDS, type) ? new KINDS[type](this) : new Unknown(this);
  }

  /** Creates a unique element id. */
  id() {
    ids += 1;
    return `callboard-widget-${ids}`;
  }

  /** The address of an image; null if it must not be loaded. */
  image(source) {
    return imageAddress(source, { base: document.baseURI, domains: this.domains });
  }

  /** Sets the submit action of a form. */
  onSubmit(form, config) {
    this.#submits.set(form, config);
  }

  /** The configuration of the action that a submit button starts. */
  submitOf(button) {
    return this.#submits.get(button.closest('form')) ?? null;
  }

  /** Enables or disables a button or field; its tooltip says if the action is not available. */
  enable(control, config, disabled) {
    const action = actionOf(config);
    const unavailable = action !== null && !this.ports.isAvailable(action);
    set(control, 'title', unavailable ? UNAVAILABLE : null);
    set(control, 'disabled', disabled === true || unavailable || this.#pending.has(control));
  }

  /**
   * Starts an action.
   * @param {unknown} config
   * @param {'click' | 'change' | 'submit'} cause
   * @param {HTMLElement} source the button, field or form
   */
  async act(config, cause, source) {
    const action = actionOf(config);
    if (action === null || !this.ports.isAvailable(action)) return;
    const values = enteredValues(source);
    const about = { itemId: this.itemId, form: mergeForm({}, values) };
    const running = this.ports.onAction({ ...action, payload: mergeForm(action.payload, values) }, about);
    if (!(running instanceof Promise)) return;
    const scope = pendingScope(action, cause);
    this.#mark(source, scope, true);
    try {
      await running;
    } finally {
      this.actions.completed += 1;
      this.#mark(source, scope, false);
    }
  }

  #mark(source, scope, pending) {
    if (scope === 'none') return;
    set(source, 'data-pending', pending);
    if (scope === 'container') this.setPending(pending);
    else if (source instanceof HTMLButtonElement || source.dataset.field !== undefined) {
      if (pending) this.#pending.add(source);
      else this.#pending.delete(source);
      const focused = document.activeElement === source;
      set(source, 'disabled', pending);
      if (!pending && focused) source.focus({ preventScroll: true });
    }
  }
}
