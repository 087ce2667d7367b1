// Fields of forms as elements: their labels and their values.
//
// They have no `name`: a form's own properties would be hidden by fields of the same names. `data-field` has it instead.

import { set } from '../../../dom.js';

/** The form whose values an element's actions contain. A card is one only if it says so. */
const FORM = 'form[data-collects]';

/**
 * The values that the actions of an element contain: those of its form, or its own.
 * @param {HTMLElement} source
 * @returns {[string, unknown][]}
 */
export function enteredValues(source) {
  const form = source.closest(FORM);
  const fields = form === null ? [source] : [...form.querySelectorAll('[data-field]')].filter((field) => field.closest(FORM) === form);
  return fields.flatMap((field) => {
    const { field: name } = field.dataset;
    const value = name && !field.disabled ? valueOf(field) : undefined;
    return value === undefined ? [] : [[name, value]];
  });
}

/** @returns {string | boolean | undefined} undefined if nothing is chosen */
function valueOf(field) {
  if (field instanceof HTMLFieldSetElement) return field.querySelector('input:checked')?.value;
  return field.type === 'checkbox' ? field.checked : field.value;
}

/**
 * Gives each field its label: a `Label` with its name in the same form, else its own words.
 * @param {HTMLElement} root of a widget
 */
export function connectLabels(root) {
  const fields = [...root.querySelectorAll('[data-field]')];
  const byForm = new Map();
  for (const field of fields) {
    const form = field.closest(FORM);
    if (!byForm.has(form)) byForm.set(form, new Map());
    const named = byForm.get(form);
    if (!named.has(field.dataset.field)) named.set(field.dataset.field, field);
  }
  const labels = new Map();
  for (const label of root.querySelectorAll('[data-for]')) {
    const field = byForm.get(label.closest(FORM))?.get(label.dataset.for);
    set(label, 'for', field?.id ?? null);
    if (field && !labels.has(field)) labels.set(field, label);
  }
  for (const field of fields) {
    const label = labels.get(field);
    // A `label` element does not name a group.
    set(field, 'aria-labelledby', field instanceof HTMLFieldSetElement ? (label?.id ?? null) : null);
    set(field, 'aria-label', label ? null : (field.dataset.label ?? null));
  }
}
