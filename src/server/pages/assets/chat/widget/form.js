// Adds form values to action payloads.

/** Maximum parts of a dotted name; names with more are ignored. */
const MAX_PARTS = 32;

/**
 * Adds form values to a payload. Dotted names nest: `todo.title` becomes `payload.todo.title`. An existing key of the
 * payload wins, and the first of two fields with the same name.
 * @param {unknown} payload returned unchanged if it is not an object
 * @param {[string, unknown][]} values names and values, in the order of the form
 * @returns {unknown}
 */
export function mergeForm(payload, values) {
  const base = payload ?? (values.length > 0 ? {} : payload);
  if (!isObject(base)) return base;
  const merged = structuredClone(base);
  for (const [name, value] of values) add(merged, name, value);
  return merged;
}

function add(object, name, value) {
  const parts = name.split('.');
  // A key `__proto__` would change the object's prototype.
  if (parts.length > MAX_PARTS || parts.some((part) => part === '' || part === '__proto__')) return;
  const last = parts.pop();
  let at = object;
  for (const part of parts) {
    if (!Object.hasOwn(at, part)) at[part] = {};
    at = at[part];
    if (!isObject(at)) return;
  }
  if (!Object.hasOwn(at, last)) at[last] = value;
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
