// Creates DOM elements. Strings become text nodes, never HTML.

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [props] `class`, `on<event>`, `data-…`, `aria-…` and other attributes; a boolean
 * turns an attribute on or off; null omits it
 * @param {...(Node | string | null)} children
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else set(element, name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Sets or removes an attribute, if that changes it. */
export function set(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else {
    const text = value === true ? '' : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** Sets the text of an element, if that changes it. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = 'http://www.w3.org/2000/svg';
const ICONS = {
  send: 'M12 19V5M5.5 11.5 12 5l6.5 6.5',
  stop: 'M7 7h10v10H7z',
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  again: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4',
  bin: 'M5 7h14M10 7V4.5h4V7M7 7l1 12.5h8L17 7',
  export: 'M12 4v11M7 10.5l5 5 5-5M5 19.5h14',
  down: 'M12 5v14M5.5 12.5 12 19l6.5-6.5',
  next: 'M9 5.5 15.5 12 9 18.5',
  attach: 'm19.5 11.5-7.8 7.8a4.7 4.7 0 0 1-6.7-6.6l8.4-8.4a3.2 3.2 0 0 1 4.5 4.5l-8.2 8.2a1.6 1.6 0 0 1-2.3-2.3l7.5-7.4',
  file: 'M6 3.5h8l4 4v13H6zM14 3.5v4h4',
  mic: 'M12 3.5A2.75 2.75 0 0 0 9.25 6.25v5.5a2.75 2.75 0 0 0 5.5 0v-5.5A2.75 2.75 0 0 0 12 3.5zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3',
  check: 'm5 12.5 4.5 4.5L19 7',
  good: 'M8 10.5V20M4.5 10.5h5L12 4.3a1.7 1.7 0 0 1 2.5 1.8L13.8 10h4.7a2 2 0 0 1 1.9 2.5l-1.6 6a2 2 0 0 1-1.9 1.5H4.5z',
  bad: 'M8 13.5V4M4.5 13.5h5l2.5 6.2a1.7 1.7 0 0 0 2.5-1.8l-.7-3.9h4.7a2 2 0 0 0 1.9-2.5l-1.6-6A2 2 0 0 0 16.9 4H4.5z',
};

/** A decorative icon, hidden from screen readers. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  for (const [key, value] of Object.entries({ viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button with only an icon; its label is also its tooltip. */
export function iconButton(name, label, onclick, props = {}) {
  return h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...props }, icon(name));
}
