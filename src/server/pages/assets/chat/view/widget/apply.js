// Applies looks to elements.

import { set } from '../../../dom.js';

/** The style properties of each element that come from its look. */
const APPLIED = new WeakMap();

/**
 * @param {HTMLElement} element
 * @param {string} base the classes that it always has
 * @param {import('../../widget/look.js').Look} look
 */
export function applyLook(element, base, { classes, style }) {
  set(element, 'class', [base, ...classes].join(' '));
  const old = APPLIED.get(element) ?? {};
  for (const name of Object.keys(old)) if (!Object.hasOwn(style, name)) element.style.removeProperty(name);
  for (const [name, value] of Object.entries(style)) if (old[name] !== value) element.style.setProperty(name, value);
  APPLIED.set(element, style);
}

/** A text of a component; empty if it is neither a string nor a number. */
export function textIn(value) {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
