// Calculates the geometry of a chart. Lengths and positions are in percent of the plot, from its top left corner.

import { color } from './color.js';

/**
 * @typedef {object} Chart
 * @property {string[]} categories x axis labels
 * @property {{label: string, type: 'bar' | 'line' | 'area', color: string, values: (number | null)[]}[]} series
 * @property {{value: number, y: number}[]} ticks y axis ticks, largest first
 * @property {{series: number, category: number, x: number, y: number, width: number, height: number}[]} bars
 * @property {{series: number, line: string, area: string | null, points: {category: number, x: number, y: number}[]}[]} lines
 *   `line` and `area` are path data in a 100 × 100 square
 */

const MAX_SERIES = 12;
const MAX_ROWS = 200;
const TYPES = ['bar', 'line', 'area'];
const PALETTE = ['blue', 'purple', 'orange', 'green', 'red', 'yellow', 'pink'];
/** Share of a category's width that its bars fill. */
const BAR_PART = 0.64;
const BAR_GAP = 0.08;
const TICKS = 4;
/** Maximum absolute value: larger values are not shown, and values below its reciprocal count as zero. The scale needs finite steps. */
const LARGEST = 1e15;

/**
 * @param {object} props of the component
 * @returns {Chart | null} null if there is nothing to draw
 */
export function chartOf({ data, series, xAxis }) {
  const rows = (Array.isArray(data) ? data : []).filter(isObject).slice(0, MAX_ROWS);
  const drawn = (Array.isArray(series) ? series : []).filter((one) => isObject(one) && TYPES.includes(one.type)).slice(0, MAX_SERIES);
  if (rows.length === 0 || drawn.length === 0) return null;
  const all = drawn.map((one, at) => ({
    label: text(one.label) || text(one.dataKey),
    type: one.type,
    color: color(one.color, 'chart') ?? color(PALETTE[at % PALETTE.length], 'chart'),
    values: rows.map((row) => numeric(row[text(one.dataKey)])),
    stack: one.type !== 'line' && typeof one.stack === 'string' ? `${one.type} ${one.stack}` : null,
    curve: curveOf(one.curveType),
  }));
  const spans = stacked(all, rows.length);
  const scale = scaleOf(spans.flat().filter((span) => span !== null));
  return {
    categories: rows.map((row) => categoryOf(row, xAxis)),
    series: all.map(({ label, type, color: drawnIn, values }) => ({ label, type, color: drawnIn, values })),
    ticks: scale.ticks.map((value) => ({ value, y: scale.y(value) })),
    bars: barsOf(all, spans, scale, rows.length),
    lines: linesOf(all, spans, scale, rows.length),
  };
}

function categoryOf(row, xAxis) {
  const { dataKey, labels } = isObject(xAxis) ? xAxis : { dataKey: xAxis };
  const value = text(row[text(dataKey)]);
  return isObject(labels) && Object.hasOwn(labels, value) ? text(labels[value]) : value;
}

/** The start and end of each value; a stacked value starts at the end of the one below it. */
function stacked(all, count) {
  const ends = new Map();
  return all.map(({ values, stack }) =>
    values.map((value, at) => {
      if (value === null) return null;
      if (stack === null) return [0, value];
      const key = `${stack} ${value < 0} ${at}`;
      const from = ends.get(key) ?? 0;
      ends.set(key, from + value);
      return [from, from + value];
    }).slice(0, count),
  );
}

/** A scale between two round numbers that includes zero. */
function scaleOf(spans) {
  const [least, most] = spans.flat().reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
  const step = roundStep((most - least || 1) / TICKS);
  const [first, last] = [Math.floor(least / step), Math.ceil((most === least ? least + step : most) / step)];
  const ticks = [];
  for (let at = last; at >= first; at -= 1) ticks.push(Number((at * step).toPrecision(12)));
  const [low, high] = [first * step, last * step];
  return { ticks, y: (value) => short(((high - value) / (high - low)) * 100) };
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 2.5, 5].find((factor) => factor * power >= rough * 0.999) ?? 10);
}

function barsOf(all, spans, scale, count) {
  const slots = [...new Set(all.map(({ type, stack }, at) => (type === 'bar' ? (stack ?? at) : null)))].filter((slot) => slot !== null);
  const band = 100 / count;
  const width = (band * BAR_PART) / (slots.length || 1);
  const bars = [];
  for (const [series, { type, stack }] of all.entries()) {
    if (type !== 'bar') continue;
    const slot = slots.indexOf(stack ?? series);
    for (const [category, span] of spans[series].entries()) {
      if (span === null) continue;
      const [top, bottom] = span.map(scale.y).sort((a, b) => a - b);
      const x = category * band + (band * (1 - BAR_PART)) / 2 + slot * width + (width * BAR_GAP) / 2;
      bars.push({ series, category, x: short(x), y: top, width: short(width * (1 - BAR_GAP)), height: short(bottom - top) });
    }
  }
  return bars;
}

function linesOf(all, spans, scale, count) {
  const x = (category) => short(((category + 0.5) * 100) / count);
  return all.flatMap(({ type, curve }, series) => {
    if (type === 'bar') return [];
    const runs = [[]];
    for (const [category, span] of spans[series].entries()) {
      if (span === null) runs.push([]);
      else runs.at(-1).push({ category, x: x(category), y: scale.y(span[1]), base: scale.y(span[0]) });
    }
    const filled = runs.filter((run) => run.length > 0);
    const upper = (run) => run.map(({ x: left, y }) => [left, y]);
    const lower = (run) => run.map(({ x: left, base }) => [left, base]).toReversed();
    const area = (run) => `M${path(upper(run), curve)}L${path(lower(run), curve)}Z`;
    return {
      series,
      line: filled.map((run) => `M${path(upper(run), curve)}`).join(''),
      area: type === 'area' ? filled.map(area).join('') : null,
      points: filled.flat().map(({ category, x: left, y }) => ({ category, x: left, y })),
    };
  });
}

function curveOf(type) {
  if (type === 'linear' || type === 'linearClosed') return 'linear';
  return typeof type === 'string' && type.startsWith('step') ? 'step' : 'smooth';
}

/** Path data through points, without the first command. */
function path(points, curve) {
  const slopes = curve === 'smooth' ? slopesOf(points) : [];
  return points
    .map(([x, y], at) => {
      if (at === 0) return `${x} ${y}`;
      const [fromX, fromY] = points[at - 1];
      const third = (x - fromX) / 3;
      if (curve === 'linear') return `L${x} ${y}`;
      if (curve === 'step') return `H${short((fromX + x) / 2)}V${y}H${x}`;
      const [first, second] = [fromY + slopes[at - 1] * third, y - slopes[at] * third];
      return `C${short(fromX + third)} ${short(first)} ${short(x - third)} ${short(second)} ${x} ${y}`;
    })
    .join('');
}

/** Slopes of a curve that does not overshoot its points. Source: Steffen 1990, "A simple method for monotonic interpolation". */
function slopesOf(points) {
  const steps = points.slice(1).map(([x, y], at) => (y - points[at][1]) / (x - points[at][0]));
  return points.map((_, at) => {
    const [before, after] = [steps[at - 1] ?? steps[at] ?? 0, steps[at] ?? steps[at - 1] ?? 0];
    return (Math.sign(before) + Math.sign(after)) * Math.min(Math.abs(before), Math.abs(after), Math.abs(before + after) / 4);
  });
}

function numeric(value) {
  const read = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof read !== 'number' || !(Math.abs(read) < LARGEST)) return null;
  return Math.abs(read) < 1 / LARGEST ? 0 : read;
}

function text(value) {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function short(value) {
  return Number(value.toFixed(3));
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
