import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Feedback } from '../../src/server/pages/assets/chat/feedback.js';

const settled = () => new Promise((resolve) => setImmediate(resolve));

function giving() {
  const sent = [];
  const errors = [];
  const send = (thread, item, kind) => new Promise((resolve, reject) => sent.push({ what: `${thread} ${item} ${kind}`, resolve, reject }));
  const feedback = new Feedback({ send, onChange: () => {}, onError: (error) => errors.push(error.message) });
  return { feedback, sent, errors, whats: () => sent.map(({ what }) => what) };
}

test('a choice is shown at once and stored once', async () => {
  const { feedback, sent, whats } = giving();
  assert.equal(feedback.kindOf('msg_1'), null);
  feedback.give('thr_1', 'msg_1', 'positive');
  assert.equal(feedback.kindOf('msg_1'), 'positive');
  assert.equal(feedback.kindOf('msg_2'), null);
  sent[0].resolve({});
  await settled();
  feedback.give('thr_1', 'msg_1', 'positive');
  assert.deepEqual(whats(), ['thr_1 msg_1 positive']);
});

test('the last choice wins, and is sent after the previous one', async () => {
  const { feedback, sent, whats } = giving();
  feedback.give('thr_1', 'msg_1', 'positive');
  feedback.give('thr_1', 'msg_1', 'negative');
  feedback.give('thr_1', 'msg_1', 'positive');
  feedback.give('thr_1', 'msg_1', 'negative');
  assert.equal(sent.length, 1);
  sent[0].reject(new Error('lost'));
  await settled();
  assert.deepEqual(whats(), ['thr_1 msg_1 positive', 'thr_1 msg_1 negative']);
  sent[1].resolve({});
  await settled();
  assert.equal(feedback.kindOf('msg_1'), 'negative');
  feedback.give('thr_1', 'msg_1', 'positive');
  assert.equal(sent.length, 3);
});

test('a choice is reset if it was not stored', async () => {
  const { feedback, sent, errors } = giving();
  feedback.give('thr_1', 'msg_1', 'positive');
  sent[0].resolve({});
  await settled();
  feedback.give('thr_1', 'msg_1', 'negative');
  sent[1].reject(new Error('no'));
  await settled();
  assert.equal(feedback.kindOf('msg_1'), 'positive');
  assert.deepEqual(errors, ['no']);
  feedback.give('thr_1', 'msg_1', 'negative');
  assert.equal(sent.length, 3, 'it can be tried again');
});
