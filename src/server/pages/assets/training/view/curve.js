// The curve of the best score after each epoch, with the seed line, and the same data as a table.

import { h, setText } from '../../dom.js';
import { layout } from '../curve.js';
import * as words from '../words.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 240;
const NARROWEST = 280;

export class Curve {
  #state;
  #figure = h('div', { class: 'curve' });
  #note = h('p', { class: 'quiet small' });
  #rows = h('tbody', {});
  #width = 0;

  constructor(state) {
    this.#state = state;
    const head = ['Epoch', 'Score', 'Best so far', 'Passed', 'Model calls'].map((text) => h('th', { scope: 'col' }, text));
    const table = h('table', {}, h('caption', { class: 'unseen' }, 'Scores by epoch'), h('thead', {}, h('tr', {}, ...head)), this.#rows);
    const scroll = h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Scores by epoch' }, table);
    this.element = h(
      'section',
      { class: 'part', 'aria-labelledby': 'curve-title' },
      h('h3', { id: 'curve-title' }, 'Score by epoch'),
      this.#figure,
      this.#note,
      h('details', { class: 'as-table' }, h('summary', {}, 'The curve as a table'), scroll),
    );
    new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== this.#width) this.render();
    }).observe(this.#figure);
  }

  render() {
    const { epochs, seed, record } = this.#state;
    this.#width = Math.round(this.#figure.clientWidth);
    const width = Math.max(this.#width, NARROWEST);
    const drawn = layout(epochs, seed, { width, height: HEIGHT, last: Number(record.optimizer?.epochs) || 1 });
    this.#figure.replaceChildren(draw(drawn, description(epochs, seed)));
    const first = seed && seed.n !== null ? `The line of the seed is the mean of ${words.plural(seed.n, 'case')} so far.` : '';
    setText(this.#note, epochs.length === 0 ? 'No epoch has ended yet.' : first);
    this.#rows.replaceChildren(...(seed ? [seedRow(seed)] : []), ...epochs.map(epochRow));
  }
}

function seedRow({ score }) {
  return h('tr', {}, h('th', { scope: 'row' }, 'Seed'), h('td', {}, words.score(score)), ...['', '', ''].map(() => h('td', {}, '–')));
}

function epochRow({ epoch, score, best_score: best, pass_rate: passed, usage }) {
  const cells = [words.score(score), words.score(best), `${Math.round(passed * 100)} %`, words.count(usage?.llm_calls)];
  return h('tr', {}, h('th', { scope: 'row' }, String(epoch)), ...cells.map((text) => h('td', {}, text)));
}

function description(epochs, seed) {
  const first = seed ? `The seed scores ${words.score(seed.score)}. ` : '';
  const last = epochs.at(-1);
  return last ? `${first}After epoch ${last.epoch} the best prompts score ${words.score(last.score)}.` : `${first}No epoch has ended yet.`;
}

function draw({ width, height, left, right, bottom, points, path, seed, rows, columns }, text) {
  const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `Score by epoch. ${text}` });
  for (const { score, y } of rows) {
    svg.append(s('line', { class: 'grid', x1: left, x2: right, y1: y, y2: y }), label(left - 8, y + 4, 'end', score.toFixed(1)));
  }
  for (const { epoch, x } of columns) svg.append(label(x, bottom + 18, 'middle', String(epoch)));
  svg.append(s('line', { class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom }));
  if (seed !== null) {
    svg.append(s('line', { class: 'seed', x1: left, x2: right, y1: seed, y2: seed }), label(right, seed > 28 ? seed - 6 : seed + 16, 'end', 'seed'));
  }
  if (path) svg.append(s('path', { class: 'score', d: path }));
  for (const { epoch, score, x, y } of points) {
    const point = s('circle', { class: 'point', cx: x, cy: y, r: 4 });
    const title = s('title', {});
    title.textContent = `Epoch ${epoch}: ${words.score(score)}`;
    point.append(title);
    svg.append(point);
  }
  return svg;
}

function label(x, y, anchor, text) {
  const element = s('text', { x, y, 'text-anchor': anchor });
  element.textContent = text;
  return element;
}

function s(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}
