// The tree of a widget's components. Its author may be a model, so depth and count are limited.

/**
 * @typedef {{type: string, props: object, children: Component[]}} Component `props` is the component as it was sent
 */

/** Deeper components are not shown. */
export const MAX_DEPTH = 32;
/** Components after these are not shown. */
export const MAX_COMPONENTS = 2000;
/** The types that a widget may begin with. */
const ROOTS = ['Card', 'ListView', 'Basic'];

/**
 * The components to show, in the order of the tree.
 * @param {unknown} root
 * @returns {Component | null} null if it is not the root of a widget
 */
export function bounded(root) {
  let left = MAX_COMPONENTS;
  const walk = (raw, depth) => {
    if (!isComponent(raw) || left === 0) return null;
    left -= 1;
    const children = depth < MAX_DEPTH ? childrenOf(raw).map((child) => walk(child, depth + 1)) : [];
    return { type: raw.type, props: raw, children: children.filter((child) => child !== null) };
  };
  return isComponent(root) && ROOTS.includes(root.type) ? walk(root, 1) : null;
}

/**
 * Replaces the first component with an id.
 * @param {object} root
 * @param {string} id
 * @param {(component: object) => object} change
 * @returns {object} the same root if no component has the id
 */
export function withComponent(root, id, change) {
  const walk = (raw, depth) => {
    if (raw === null || typeof raw !== 'object' || depth > MAX_DEPTH) return raw;
    if (raw.id === id) return change(raw) ?? raw;
    const children = childrenOf(raw);
    for (const [at, child] of children.entries()) {
      const next = walk(child, depth + 1);
      if (next !== child) return { ...raw, children: Array.isArray(raw.children) ? children.with(at, next) : next };
    }
    return raw;
  };
  return typeof id === 'string' ? walk(root, 1) : root;
}

/** Appends text to the `value` of the component with an id; `done` says that the text is complete. */
export function withText(root, id, delta, done) {
  return withComponent(root, id, (component) => ({
    ...component,
    ...(typeof component.value === 'string' ? { value: component.value + (delta ?? '') } : {}),
    streaming: !done,
  }));
}

/**
 * A key for each of some siblings. A component keeps its key, and with it its element, focus and entered value, when
 * other components are added or removed around it: its own `key`, `id` or `name`, else its number among those of its type.
 * @param {Component[]} siblings
 * @returns {string[]} all of them different
 */
export function keysOf(siblings) {
  const seen = new Map();
  return siblings.map(({ type, props }) => {
    const own = ['key', 'id', 'name'].find((name) => typeof props[name] === 'string' && props[name] !== '');
    const key = own === undefined ? type : `${type} ${own}=${props[own]}`;
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    return `${key}#${count}`;
  });
}

/** `children` is a list, or for some components a single one. */
function childrenOf({ children }) {
  if (Array.isArray(children)) return children;
  return children === undefined || children === null ? [] : [children];
}

function isComponent(raw) {
  return raw !== null && typeof raw === 'object' && typeof raw.type === 'string';
}
