import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartOf } from '../../src/server/pages/assets/chat/widget/chart.js';

const data = [{ x: 'a', n: 10, m: 5 }, { x: 'b', n: '20', m: null }, { x: 'c', n: 40, m: -5 }];
const chart = (series, more = {}) => chartOf({ data, series, xAxis: 'x', ...more });

test('bars start at zero and do not overlap', () => {
  const { bars, ticks, series, categories } = chart([{ type: 'bar', dataKey: 'n', label: 'N' }, { type: 'bar', dataKey: 'm' }]);
  assert.deepEqual(categories, ['a', 'b', 'c']);
  assert.deepEqual(series.map(({ label, values }) => [label, values]), [['N', [10, 20, 40]], ['m', [5, null, -5]]]);
  assert.equal(bars.length, 5, 'a missing value has no bar');
  const zero = ticks.find(({ value }) => value === 0).y;
  for (const bar of bars) {
    const isNegative = bar.series === 1 && bar.category === 2;
    assert.ok(Math.abs((isNegative ? bar.y : bar.y + bar.height) - zero) < 0.01);
    assert.ok(bar.x >= 0 && bar.x + bar.width <= 100 && bar.y >= 0 && bar.y + bar.height <= 100.01);
  }
  assert.ok(bars[0].x + bars[0].width <= bars[3].x);
});

test('the scale has round numbers and contains all values', () => {
  assert.deepEqual(chart([{ type: 'line', dataKey: 'n' }]).ticks.map(({ value, y }) => [value, y]), [[40, 0], [30, 25], [20, 50], [10, 75], [0, 100]]);
  assert.deepEqual(chart([{ type: 'line', dataKey: 'none' }]).ticks.map(({ value }) => value).at(-1), 0);
});

test('a stacked bar starts at the end of the one below it', () => {
  const rows = [{ x: 'a', p: 10, q: 30 }];
  const { bars } = chartOf({ data: rows, xAxis: 'x', series: ['p', 'q'].map((dataKey) => ({ type: 'bar', dataKey, stack: 's' })) });
  assert.deepEqual(bars.map(({ y, height }) => [y, height]), [[75, 25], [0, 75]]);
  assert.equal(bars[0].x, bars[1].x);
});

test('a missing value interrupts a line', () => {
  const rows = [1, 2, null, 3, 4].map((n, at) => ({ x: at, n }));
  for (const [curveType, path] of [['linear', /^M10 75L30 50M70 25L90 0$/], ['step', /^M10 75H20V50H30M70 25H80V0H90$/], [undefined, /^M10 75C.* 30 50M70 25C.* 90 0$/]]) {
    const { lines } = chartOf({ data: rows, xAxis: 'x', series: [{ type: 'area', dataKey: 'n', curveType }] });
    assert.match(lines[0].line, path);
    assert.equal(lines[0].points.length, 4);
    assert.match(lines[0].area, /^M10 75.*Z.*Z$/);
  }
});

test('a smooth line does not overshoot its points', () => {
  const rows = [0, 100, 100, 0, 50].map((n, at) => ({ x: at, n }));
  const [{ line }] = chartOf({ data: rows, xAxis: 'x', series: [{ type: 'line', dataKey: 'n' }] }).lines;
  const numbers = line.match(/-?\d+(\.\d+)?/g).map(Number);
  assert.ok(numbers.every((number) => number >= 0 && number <= 100), line);
});

test('x axis labels replace category values', () => {
  assert.deepEqual(chart([{ type: 'bar', dataKey: 'n' }], { xAxis: { dataKey: 'x', labels: { a: 'Alpha' } } }).categories, ['Alpha', 'b', 'c']);
});

test('invalid values are left out, and data is limited', () => {
  for (const props of [{}, { data: [], series: [{ type: 'bar' }] }, { data, series: [] }, { data: 'x', series: 'y' }, { data, series: [{ type: 'pie' }, null] }]) {
    assert.equal(chartOf(props), null);
  }
  const values = [5e-324, 1e308, 1e15, -1e14, NaN, Infinity, {}, [], 'x', '', true, 0];
  const { bars, ticks } = chartOf({ data: values.map((n) => ({ n })), xAxis: null, series: [{ type: 'bar', dataKey: 'n', color: 'url(x)' }] });
  assert.equal(bars.length, 3, 'tiny, large and zero');
  assert.ok(ticks.length < 20);
  const huge = { data: Array.from({ length: 9999 }, () => ({ n: 1 })), series: Array.from({ length: 99 }, () => ({ type: 'bar', dataKey: 'n' })), xAxis: 'x' };
  assert.equal(chartOf(huge).bars.length, 200 * 12);
});
