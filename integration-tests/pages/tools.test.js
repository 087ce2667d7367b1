import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/server/pages/assets/chat/api.js';
import { ToolRunner, callOf, shownJson } from '../../src/server/pages/assets/chat/tools.js';

const STORED = { type: 'client_tool_call', id: 'tc_1', status: 'pending', call_id: 'call_1', name: 'locate', arguments: { near: ['x'] } };
const ABOUT = { thread: 'thr_1', id: 'tc_1', call: callOf(STORED) };

/** A runner with a handler; `sent` has the results, and each send returns the next of `errors`. */
function runner(handler, errors = []) {
  const sent = [];
  const states = [];
  const made = new ToolRunner({
    handler: () => handler,
    send: async (thread, item, result) => {
      sent.push({ thread, item, result });
      return errors.shift() ?? null;
    },
    onChange: () => states.push(made.progressOf('tc_1').state),
  });
  return { runner: made, sent, states };
}

test('a delivered call runs once, with a copy of its arguments', async () => {
  const calls = [];
  const made = runner(async ({ name, params }) => {
    calls.push([name, structuredClone(params)]);
    params.near.push('y');
    return { at: 1 };
  });
  await Promise.all([made.runner.delivered(ABOUT), made.runner.delivered(ABOUT)]);
  await made.runner.delivered(ABOUT);
  assert.deepEqual(calls, [['locate', { near: ['x'] }]]);
  assert.deepEqual(made.sent, [{ thread: 'thr_1', item: 'tc_1', result: { at: 1 } }]);
  assert.deepEqual(made.states, ['running', 'sending', 'idle']);
  assert.deepEqual(ABOUT.call.params, { near: ['x'] });
});

test('a delivered call returns an error if its handler fails or is missing', async () => {
  const failed = runner(() => Promise.reject(new Error('No signal.')));
  await failed.runner.delivered(ABOUT);
  assert.deepEqual(failed.sent.map(({ result }) => result), [{ error: 'No signal.' }]);
  const missing = runner(null);
  assert.equal(missing.runner.canRun, false);
  await missing.runner.delivered(ABOUT);
  assert.deepEqual(missing.sent.map(({ result }) => result), [{ error: 'The page has no handler for client tools.' }]);
  const circular = {};
  circular.self = circular;
  const odd = runner(() => circular);
  await odd.runner.delivered(ABOUT);
  assert.match(odd.sent[0].result.error, /circular/i);
});

test('a handler error is not sent for a call that the page found pending', async () => {
  const made = runner(() => {
    throw new Error('No signal.');
  });
  await made.runner.run(ABOUT);
  assert.deepEqual(made.sent, []);
  assert.deepEqual(made.runner.progressOf('tc_1'), { state: 'idle', error: 'No signal.', hasResult: false });
});

test('a handler without a result returns an empty object, and null stays null', async () => {
  const empty = runner(() => undefined);
  await empty.runner.run(ABOUT);
  const none = runner(() => null);
  await none.runner.run(ABOUT);
  assert.deepEqual([empty.sent[0].result, none.sent[0].result], [{}, null]);
});

test('an unsent result is sent again without a second run', async () => {
  let runs = 0;
  const made = runner(() => ({ run: (runs += 1) }), [new ApiError({ status: 0, code: 'network' })]);
  await made.runner.delivered(ABOUT);
  assert.deepEqual(made.runner.progressOf('tc_1'), { state: 'idle', error: 'The service cannot be reached.', hasResult: true });
  await made.runner.run(ABOUT);
  assert.equal(runs, 1);
  assert.deepEqual(made.sent.map(({ result }) => result), [{ run: 1 }, { run: 1 }]);
  assert.equal(made.runner.progressOf('tc_1').hasResult, false);
});

test('the handler result of a skipped call is ignored', async () => {
  let finish;
  const made = runner(() => new Promise((resolve) => (finish = resolve)));
  const running = made.runner.delivered(ABOUT);
  await made.runner.skip(ABOUT);
  finish({ late: true });
  await running;
  assert.deepEqual(made.sent.map(({ result }) => result), [{ error: 'skipped' }]);
});

test('a call can still run after a failed skip', async () => {
  const made = runner(() => ({ ok: true }), [new ApiError({ status: 0, code: 'network' })]);
  await made.runner.skip(ABOUT);
  await made.runner.run(ABOUT);
  assert.deepEqual(made.sent.map(({ result }) => result), [{ error: 'skipped' }, { ok: true }]);
});

test('values are shown as JSON, and long ones are truncated', () => {
  assert.equal(shownJson({ a: '<b>' }), '{\n  "a": "<b>"\n}');
  assert.equal(shownJson(undefined), '');
  assert.ok(shownJson('x'.repeat(100_000)).length < 30_000);
});
