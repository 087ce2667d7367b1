import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, fileName } from '../../src/server/pages/assets/chat/export.js';
import { matching } from '../../src/server/pages/assets/chat/search.js';

const THREADS = [{ title: 'Über Äpfel und Birnen' }, { title: 'Orders of March' }, {}, { title: 'Apples' }];
const found = (text) => matching(THREADS, text).map((thread) => THREADS.indexOf(thread));

test('a search finds titles that contain every word, and ignores case and accents', () => {
  assert.deepEqual(found(' APFEL uber '), [0]);
  assert.deepEqual(found('ap'), [0, 3]);
  assert.deepEqual(found('march orders'), [1]);
  assert.deepEqual(found('untitled'), [2]);
  assert.deepEqual(found('pears'), []);
});

test('an empty search finds everything', () => {
  assert.equal(matching(THREADS, '  '), THREADS);
});

test('an export contains the items from all pages, in order', async () => {
  const asked = [];
  const pages = [{ data: [{ id: 'a' }, { id: 'b' }], has_more: true, after: 'b' }, { data: [], has_more: true, after: 'c' }, { data: [{ id: 'd' }], has_more: false }];
  const api = {
    ask: async (type, params) => {
      asked.push([type, params.order, params.after]);
      return pages.shift();
    },
  };
  const { name, text } = await exported(api, { id: 'thr_1', title: 'Trip' });
  assert.equal(name, 'Trip.json');
  assert.deepEqual(JSON.parse(text), { id: 'thr_1', title: 'Trip', items: [{ id: 'a' }, { id: 'b' }, { id: 'd' }] });
  assert.deepEqual(asked, [['items.list', 'asc', undefined], ['items.list', 'asc', 'b'], ['items.list', 'asc', 'c']]);
});

test('an export ends if a page returns its own cursor', async () => {
  const api = { ask: async () => ({ data: [{ id: 'a' }], has_more: true, after: 'a' }) };
  const { text } = await exported(api, { id: 'thr_1' });
  assert.deepEqual(JSON.parse(text).title, null);
});

test('a file name is valid everywhere', () => {
  assert.equal(fileName('a/b\\c: "d"?\u202e\n<e>'), 'a b c d e.json');
  assert.equal(fileName('..'), 'conversation.json');
  assert.equal(fileName(undefined), 'conversation.json');
  assert.equal([...fileName('🙂'.repeat(300))].length, 105);
});
