// Labels and values of form fields.
//
// The name of a field is in `data-field`, not in `name`: a field named like a form property would hide that property.

import { set } from '../../../dom.js';

/** Selects the forms whose values are added to actions. A card is a form only if it is marked as one. */
const FORM = 'form[data-collects]';

/**
 * The values for an element's actions: the values of its form, or its own value.
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
 * Gives each field its label: the `Label` for its name in the same form, or the field's own label text.
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
    // A `label` element cannot name a group.
    set(field, 'aria-labelledby', field instanceof HTMLFieldSetElement ? (label?.id ?? null) : null);
    set(field, 'aria-label', label ? null : (field.dataset.label ?? null));
  }
}
