// Shows workflow values and model texts as text.

import { h } from '../../dom.js';
import { count } from '../words.js';

/** Maximum characters shown of a value. */
const SHOWN = 20_000;

/**
 * @param {string} label
 * @param {unknown} value strings are shown unchanged, other values as JSON
 */
export function value(label, value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? 'null';
  const cut = text.length > SHOWN ? h('p', { class: 'quiet small' }, `The first ${count(SHOWN)} of ${count(text.length)} characters.`) : null;
  return h('div', { class: 'value' }, h('h4', {}, label), box(label, text.slice(0, SHOWN)), cut);
}

/** A box for long texts, which also scrolls with the keyboard. */
export function box(label, ...text) {
  return h('pre', { class: 'text-box', tabindex: '0', role: 'group', 'aria-label': label, dir: 'auto' }, ...text);
}

/** Whether a value has nothing to show. */
export function isEmpty(value) {
  return value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0);
}
