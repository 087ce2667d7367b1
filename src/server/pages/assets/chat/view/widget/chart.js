// Charts: SVG shapes, HTML labels, and a table of the numbers for screen readers.

import { h, set } from '../../../dom.js';
import { chartOf } from '../../widget/chart.js';
import { blockLook } from '../../widget/look.js';
import { applyLook } from './apply.js';

const SVG = 'http://www.w3.org/2000/svg';
/** Maximum labels on the x axis, and their maximum total characters. */
const MAX_LABELS = 12;
const MAX_CHARACTERS = 60;
const RADIUS = 3;
/** Maximum points of a line with dots; a longer line has none. */
const MAX_DOTS = 16;
const TICK = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 2 });
const EXACT = new Intl.NumberFormat('en', { maximumFractionDigits: 6 });

export class Chart {
  constructor() {
    this.element = h('figure');
  }

  show({ props }) {
    applyLook(this.element, 'w-chart', blockLook(props));
    const { data, series, xAxis, showYAxis, showLegend } = props;
    const source = JSON.stringify([data, series, xAxis, showYAxis, showLegend]);
    if (source === this.source) return;
    this.source = source;
    const chart = chartOf(props);
    this.element.replaceChildren(...(chart === null ? [h('p', { class: 'quiet' }, 'No data.')] : parts(chart, props)));
  }
}

function parts(chart, { xAxis, showYAxis, showLegend }) {
  const isHidden = xAxis !== null && typeof xAxis === 'object' && xAxis.hide === true;
  const hasLegend = showLegend === true || (showLegend !== false && chart.series.length > 1);
  return [
    hasLegend ? legend(chart) : null,
    h(
      'div',
      { class: 'w-plot', 'aria-hidden': 'true', 'data-y': showYAxis === true },
      showYAxis === true ? h('div', { class: 'w-y' }, ...chart.ticks.map(({ value }) => h('span', {}, TICK.format(value)))) : null,
      plot(chart),
      isHidden ? null : labels(chart),
    ),
    table(chart),
  ].filter((part) => part !== null);
}

function legend({ series }) {
  const entries = series.map(({ label, color }) => {
    const mark = h('span', { class: 'w-mark' });
    mark.style.setProperty('background-color', color);
    return h('li', { dir: 'auto' }, mark, label);
  });
  // Hidden from screen readers: the table has the same names.
  return h('ul', { class: 'w-legend', 'aria-hidden': 'true' }, ...entries);
}

/** Labels of the x axis; leaves some out so that each has room. */
function labels({ categories }) {
  const longest = Math.max(...categories.map((label) => label.length));
  const most = Math.min(Math.max(Math.floor(MAX_CHARACTERS / (longest + 1)), 2), MAX_LABELS);
  const step = Math.ceil(categories.length / most);
  const shown = categories.filter((_, at) => at % step === 0).map((label, at) => {
    const room = Math.min(step, categories.length - at * step);
    const element = h('span', { dir: 'auto' }, room === step ? label : '');
    element.style.setProperty('flex-grow', room);
    return element;
  });
  return h('div', { class: 'w-x', 'data-sparse': step > 1 }, ...shown);
}

function plot(chart) {
  const grid = chart.ticks.map(({ value, y }) => shape('line', { x1: '0', x2: '100%', y1: `${y}%`, y2: `${y}%`, class: value === 0 ? 'w-zero' : 'w-grid' }));
  const said = ({ series, category }) => {
    const { label, values } = chart.series[series];
    return shape('title', {}, `${chart.categories[category]}: ${label} ${EXACT.format(values[category])}`);
  };
  const bars = chart.bars.map((bar) => {
    const { x, y, width, height, series } = bar;
    const rect = { x: `${x}%`, y: `${y}%`, width: `${width}%`, height: `${height}%`, rx: RADIUS, class: 'w-bar' };
    return painted(shape('rect', rect, said(bar)), chart.series[series].color);
  });
  const lines = chart.lines.map(({ series, line, area }) => {
    const paths = [area === null ? null : shape('path', { d: area, class: 'w-area' }), shape('path', { d: line, class: 'w-line' })];
    // Stretch only paths to the plot; dots and bars keep their shape.
    const stretched = shape('svg', { viewBox: '0 0 100 100', preserveAspectRatio: 'none', width: '100%', height: '100%' }, ...paths.filter((path) => path !== null));
    return painted(stretched, chart.series[series].color);
  });
  const dotted = chart.categories.length > MAX_DOTS ? [] : chart.lines;
  const dots = dotted.flatMap(({ series, points }) =>
    points.map((point) => {
      const dot = shape('circle', { cx: `${point.x}%`, cy: `${point.y}%`, r: RADIUS, class: 'w-dot' }, said({ series, category: point.category }));
      return painted(dot, chart.series[series].color);
    }),
  );
  return shape('svg', { class: 'w-shapes' }, ...grid, ...bars, ...lines, ...dots);
}

function table({ categories, series }) {
  const head = h('tr', {}, h('th', { scope: 'col' }, 'Category'), ...series.map(({ label }) => h('th', { scope: 'col' }, label)));
  const rows = categories.map((category, at) =>
    h('tr', {}, h('th', { scope: 'row' }, category), ...series.map(({ values }) => h('td', {}, values[at] === null ? '–' : EXACT.format(values[at])))),
  );
  return h('div', { class: 'unseen' }, h('table', {}, h('caption', {}, 'The values of the chart'), h('thead', {}, head), h('tbody', {}, ...rows)));
}

function shape(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children);
  return element;
}

function painted(element, color) {
  element.style.setProperty('color', color);
  return element;
}
