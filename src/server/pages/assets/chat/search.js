// Finds conversations by their titles.

/** Title of a conversation that has none. */
export const UNTITLED = 'Untitled';

/**
 * The threads whose titles contain every word of a text; ignores case and accents.
 * @template {{title?: string}} T
 * @param {T[]} threads
 * @param {string} text
 * @returns {T[]} in the same order; all threads if the text has no words
 */
export function matching(threads, text) {
  const words = folded(text).split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return threads;
  return threads.filter(({ title }) => {
    const name = folded(title || UNTITLED);
    return words.every((word) => name.includes(word));
  });
}

function folded(text) {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}
