// Elements. Text is always text, never HTML.

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** A new element with properties, and children that are elements or texts. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** The address that opens the page with a question. */
export const addressOf = (question) => `/?${new URLSearchParams({ q: question })}`;
