import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Drafts, questionsOf, skippedAll, submission, valuesOf } from '../../src/server/pages/assets/chat/questions.js';
import { valueOf } from '../../src/server/pages/assets/chat/run_questions.js';

const ITEM = {
  type: 'structured_input',
  id: 'msg_1',
  status: 'pending',
  inputs: [
    { id: 'size', question: 'Which size?', type: 'multiple_choice', options: [{ value: 'S' }, { value: 'M' }, { value: 'M' }] },
    { id: 'extras', question: 'Which extras?', type: 'multiple_choice', options: [{ value: 'milk' }, { value: 'sugar' }], multiple: true },
    { id: 'note', question: 'A note?', type: 'freeform', description: 'For the kitchen' },
  ],
};
const { list: LIST } = questionsOf(ITEM);
const [SIZE, EXTRAS, NOTE] = LIST;
const entry = (chosen = [], text = '', isOther = false) => ({ chosen, text, isOther });

test('pending questions have options or a text, and no answer', () => {
  assert.deepEqual(LIST.map(({ id, options, multiple, answer }) => [id, options, multiple, answer]), [
    ['size', ['S', 'M'], false, null],
    ['extras', ['milk', 'sugar'], true, null],
    ['note', null, false, null],
  ]);
  assert.equal(NOTE.description, 'For the kitchen');
});

test('an answered item has its values; skipped and empty answers have none', () => {
  const inputs = [
    { ...ITEM.inputs[0], answer: { values: ['M'], skipped: false } },
    { ...ITEM.inputs[1], answer: { values: [], skipped: true } },
    { ...ITEM.inputs[2], answer: { values: ['old'], skipped: true } },
  ];
  const { status, list } = questionsOf({ ...ITEM, status: 'answered', inputs });
  assert.equal(status, 'answered');
  assert.deepEqual(list.map(({ answer }) => answer), [['M'], null, null]);
});

test('an invalid item has no questions', () => {
  assert.deepEqual(questionsOf({ status: 'odd', inputs: null }), { status: 'pending', list: [] });
  const { list } = questionsOf({ inputs: [null, 3, { id: 4 }, { id: 'x', question: {}, type: 'multiple_choice', options: ['a', null, { value: 5 }] }] });
  assert.deepEqual(list.map(({ id, text, options }) => [id, text, options]), [['x', 'Question', []]]);
});

test('values are in the order of the options, with another answer at the end', () => {
  assert.deepEqual(valuesOf(EXTRAS, entry(['sugar', 'milk'], ' honey ', true)), ['milk', 'sugar', 'honey']);
  assert.deepEqual(valuesOf(EXTRAS, entry(['sugar'], 'honey', false)), ['sugar'], 'the text is not chosen');
  assert.deepEqual(valuesOf(EXTRAS, entry([], 'milk', true)), ['milk'], 'the text is an option');
  assert.deepEqual(valuesOf(SIZE, entry(['gone'], '', true)), [], 'an option that is no longer there');
  assert.deepEqual(valuesOf(SIZE, entry(['S'], 'XL', true)), ['S'], 'one value at most');
  assert.deepEqual(valuesOf(NOTE, entry([], ' no salt\n')), ['no salt']);
  assert.deepEqual(valuesOf(NOTE), []);
});

test('an empty question is skipped', () => {
  assert.deepEqual(submission(LIST, { size: entry(['M']), note: entry([], '  ') }), {
    status: 'answered',
    answers: { size: { values: ['M'], skipped: false }, extras: { values: [], skipped: true }, note: { values: [], skipped: true } },
  });
});

test('a form without any answer is not sent, and all questions may be skipped', () => {
  assert.equal(submission(LIST, {}), null);
  const answers = { size: { values: [], skipped: true }, extras: { values: [], skipped: true }, note: { values: [], skipped: true } };
  assert.deepEqual(skippedAll(LIST), { status: 'skipped', answers });
});

test('ids may be names of object members', () => {
  const [odd] = questionsOf({ inputs: [{ id: 'constructor', question: 'Who?', type: 'freeform' }] }).list;
  assert.equal(submission([odd], {}), null);
  assert.deepEqual(submission([odd], { constructor: entry([], 'me') }).answers.constructor, { values: ['me'], skipped: false });
});

test('drafts are kept by item until they are removed', () => {
  const saved = new Map();
  const memory = { get: (name) => saved.get(name) ?? null, set: (name, value) => (value === null ? saved.delete(name) : saved.set(name, value)) };
  const drafts = new Drafts(memory);
  drafts.keep('msg_1', { size: entry(['M']), note: entry() });
  drafts.keep('msg_2', { note: entry([], 'other') });
  assert.deepEqual(new Drafts(memory).read('msg_1'), { size: entry(['M']) });
  drafts.keep('msg_1', { size: entry() });
  assert.deepEqual([...saved.keys()], ['answers:msg_2'], 'nothing is entered any more');
  drafts.remove('msg_2');
  assert.equal(saved.size, 0);
  saved.set('answers:msg_3', '{"a": {"chosen": [1, "x"], "text": 4}, "b": null}');
  assert.deepEqual(drafts.read('msg_3'), { a: entry(['x']), b: entry() });
  saved.set('answers:msg_3', 'no JSON');
  assert.deepEqual(drafts.read('msg_3'), {});
});

test('an answer is parsed as JSON unless the schema requires a string', () => {
  assert.equal(valueOf('42', null), '42');
  assert.equal(valueOf('42', { type: 'string' }), '42');
  assert.equal(valueOf('42', { type: 'number' }), 42);
  assert.deepEqual(valueOf('{"approved": true}', { type: 'object' }), { approved: true });
  assert.equal(valueOf('not JSON', { type: 'object' }), 'not JSON');
});
