// Inserts a text into another one.

/**
 * The text to insert between two positions, with the spaces that separate it from its neighbours.
 * @param {string} value
 * @param {number} start
 * @param {number} end the text from `start` to `end` is replaced
 * @param {string} text
 */
export function spaced(value, start, end, text) {
  const before = value.slice(0, start);
  const after = value.slice(end);
  const left = before !== '' && !/\s$/.test(before) ? ' ' : '';
  const right = after !== '' && !/^[\s.,;:!?)]/.test(after) ? ' ' : '';
  return `${left}${text}${right}`;
}
