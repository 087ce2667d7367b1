// Elements. Text is always text, never HTML.

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** A new element with properties, and children that are elements or texts. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A button that does something when it is pressed. */
export function button(className, label, pressed) {
  const made = element('button', { type: 'button', className }, label);
  made.addEventListener('click', pressed);
  return made;
}
