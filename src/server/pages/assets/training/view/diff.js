// The changed lines of a prompt.

import { h } from '../../dom.js';
import { box } from './value.js';

const KINDS = { '+': ['added', 'Added: '], '-': ['removed', 'Removed: '] };

/** Maximum diff lines shown. */
const SHOWN = 400;

/** @param {{name: string, diff: string}} prompt each line of `diff` begins with `-`, `+` or a space */
export function diff({ name, diff: text }) {
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = lines.slice(0, SHOWN).map((line) => {
    const [kind, spoken] = KINDS[line[0]] ?? ['same', ''];
    const mark = h('span', { class: 'mark', 'aria-hidden': 'true' }, kind === 'same' ? ' ' : line[0] === '+' ? '+' : '−');
    const said = spoken ? h('span', { class: 'unseen' }, spoken) : null;
    return h('span', { class: 'line', 'data-kind': kind }, mark, said, `${line.slice(1)}\n`);
  });
  const rest = lines.length > SHOWN ? h('p', { class: 'quiet small' }, `${lines.length - SHOWN} more lines.`) : null;
  return h('div', { class: 'diff' }, h('h4', {}, 'Prompt ', h('code', { dir: 'auto' }, name)), box(`Changes of the prompt ${name}`, ...shown), rest);
}
