// Applies looks to elements.

import { set } from '../../../dom.js';

/** The properties that each element has from its look. */
const APPLIED = new WeakMap();

/**
 * @param {HTMLElement} element
 * @param {string} base its classes whatever its component says
 * @param {import('../../widget/look.js').Look} look
 */
export function applyLook(element, base, { classes, style }) {
  set(element, 'class', [base, ...classes].join(' '));
  const old = APPLIED.get(element) ?? {};
  for (const name of Object.keys(old)) if (!Object.hasOwn(style, name)) element.style.removeProperty(name);
  for (const [name, value] of Object.entries(style)) if (old[name] !== value) element.style.setProperty(name, value);
  APPLIED.set(element, style);
}

/** A text of a component; anything but a text or a number is empty. */
export function textIn(value) {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
