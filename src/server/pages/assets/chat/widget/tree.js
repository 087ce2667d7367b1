// A widget's component tree. A model may have written it, so depth and count are limited.

/**
 * @typedef {{type: string, props: object, children: Component[]}} Component `props` is the component as it was sent
 */

/** Maximum depth; deeper components are not shown. */
export const MAX_DEPTH = 32;
/** Maximum components; later ones are not shown. */
export const MAX_COMPONENTS = 2000;
/** Valid root types of a widget. */
const ROOTS = ['Card', 'ListView', 'Basic'];

/**
 * The components to show, in the order of the tree.
 * @param {unknown} root
 * @returns {Component | null} null if it is not a valid root
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
 * @returns {object} the unchanged root if no component has the id
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

/** Appends text to a component's `value`; `done` marks the text as complete. */
export function withText(root, id, delta, done) {
  return withComponent(root, id, (component) => ({
    ...component,
    ...(typeof component.value === 'string' ? { value: component.value + (delta ?? '') } : {}),
    streaming: !done,
  }));
}

/**
 * Unique keys for sibling components. A component keeps its key, and with it its element, focus and entered value, when
 * siblings are added or removed: its `key`, `id` or `name`, or else its index among the siblings with the same type.
 * @param {Component[]} siblings
 * @returns {string[]} in the order of the siblings
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

/** The children as a list; some components have a single child instead of a list. */
function childrenOf({ children }) {
  if (Array.isArray(children)) return children;
  return children === undefined || children === null ? [] : [children];
}

function isComponent(raw) {
  return raw !== null && typeof raw === 'object' && typeof raw.type === 'string';
}
