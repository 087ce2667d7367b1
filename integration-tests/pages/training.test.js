import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { layout } from '../../src/server/pages/assets/training/curve.js';
import { followRun } from '../../src/server/pages/assets/training/follow.js';
import { KEPT_CANDIDATES, KEPT_RESULTS, KEPT_WARNINGS, RunState } from '../../src/server/pages/assets/training/state.js';
import * as words from '../../src/server/pages/assets/training/words.js';

const progress = (done) => ({ done, planned: 10, best_score: null });
const record = (status = 'running') => ({ id: 'r', kind: 'training', status, progress: progress(3) });
const result = (index, more = {}) => ({
  type: 'training_progress',
  payload: { case_index: index, case_id: `${index}`, candidate_id: 1, sample: 0, cached: false, evaluations: {}, progress: progress(index), ...more },
});
const candidate = (id) => ({ candidate_id: id, parents: [0], prompts_changed: [], decision: 'accepted', reason: '', n: 4, mean_diff: 0.1 });
const checkpoint = (number, more = {}) => ({ id: `c${number}`, config_version: number, metadata: { run_id: 'r', candidate_id: 1, score: 0.5 }, ...more });

test('a long run keeps only the newest entries', () => {
  const state = new RunState(record());
  for (let at = 0; at < 5000; at += 1) state.apply(result(at));
  assert.equal(state.results.length, KEPT_RESULTS);
  assert.equal(state.results[0].case_index, 4999);
  assert.equal(state.resultsSeen, 5000);
  for (let id = 1; id <= 300; id += 1) state.apply({ type: 'training_candidate', payload: candidate(id) });
  assert.deepEqual([state.candidates.length, state.candidatesSeen, state.candidates[0].candidate_id], [KEPT_CANDIDATES, 300, 300]);
  for (let at = 0; at < 100; at += 1) state.apply({ type: 'training_warning', payload: { code: 'leakage', message: `${at}` } });
  assert.equal(state.warnings.length, KEPT_WARNINGS);
});

test('an event adds no entry that was read from a list', () => {
  const state = new RunState(record());
  state.addCandidates([candidate(1), candidate(2)]);
  state.apply({ type: 'training_candidate', payload: candidate(2) });
  assert.deepEqual(state.candidates.map(({ candidate_id: id }) => id), [2, 1]);
  state.addCheckpoints([checkpoint(3), checkpoint(4, { metadata: { run_id: 'another', candidate_id: 1 } })]);
  state.apply({ type: 'training_checkpoint', payload: checkpoint(3) });
  state.apply({ type: 'training_checkpoint', payload: checkpoint(5) });
  assert.deepEqual(state.checkpoints.map(({ config_version: number }) => number), [5, 3]);
  for (const epoch of [1, 2, 1]) state.apply({ type: 'training_epoch_complete', payload: { epoch, score: epoch / 10 } });
  assert.deepEqual(state.epochs.map(({ epoch }) => epoch), [1, 2]);
});

test('earlier events do not reset the progress', () => {
  const state = new RunState({ ...record(), progress: progress(7) });
  state.apply(result(5));
  assert.equal(state.progress.done, 7);
  state.apply(result(8));
  assert.equal(state.progress.done, 8);
  assert.equal(state.apply(result(9, { cached: true })), 'progress');
  assert.deepEqual([state.resultsSeen, state.progress.done], [2, 9]);
});

test('the record is read again after a change of state, and an unknown event changes nothing', () => {
  const state = new RunState(record());
  for (const type of ['run_started', 'training_paused', 'training_resumed', 'run_completed', 'run_cancelled', 'run_failed']) {
    assert.equal(state.apply({ type, payload: { reason: 'client' } }), 'record', type);
  }
  assert.equal(state.apply({ type: 'something_new', payload: {} }), null);
  assert.equal(new RunState(record('cancelled')).isOver, true);
});

test('the seed score comes from the result, else from its checkpoint, else from its cases', () => {
  const state = new RunState(record());
  assert.equal(state.seed, null);
  state.apply({ type: 'training_started', payload: { splits: { train: [0], val: [1, 2] } } });
  state.setSeedResults([
    { case_index: 0, score: 1 },
    { case_index: 1, score: 0 },
    { case_index: 1, score: 1 },
    { case_index: 2, score: 0 },
    { case_index: 2, score: null },
  ]);
  assert.deepEqual(state.seed, { score: 0.25, n: 2 });
  state.addCheckpoints([checkpoint(1, { metadata: { run_id: 'r', candidate_id: 0, score: 0.4 } })]);
  assert.deepEqual(state.seed, { score: 0.4, n: null });
  state.apply({ type: 'training_result', payload: { seed_vs_best: { val: { seed: 0.3, best: 0.9 } } } });
  assert.deepEqual(state.seed, { score: 0.3, n: null });
});

test('the curve stays inside its drawing for any scores', () => {
  const room = { width: 300, height: 200, last: 3 };
  for (const scores of [[], [0], [1], [0, 1], [0.5, 0.5, 0.5], [0.98, 0.99]]) {
    const epochs = scores.map((score, at) => ({ epoch: at + 1, score }));
    const drawn = layout(epochs, { score: scores[0] ?? 0.5 }, room);
    for (const { x, y } of [...drawn.points, { x: drawn.left, y: drawn.seed }]) {
      assert.ok(x >= drawn.left && x <= drawn.right && y >= 0 && y <= drawn.bottom, JSON.stringify({ scores, x, y }));
    }
    assert.ok(drawn.rows.length >= 2 && drawn.rows.length <= 8, JSON.stringify(drawn.rows));
  }
  const many = layout(Array.from({ length: 50 }, (_, at) => ({ epoch: at + 1, score: at / 50 })), null, { ...room, last: 50 });
  assert.ok(many.columns.length <= 9, 'labels have room');
  assert.ok(many.points[49].y < many.points[0].y, 'better is higher');
});

test('results, times and amounts have plain texts', () => {
  const found = { val: { seed: 0.5, best: 0.75 }, test: null, diff: 0.25, ci95: [0.1, 0.4], z: 3, n: 24 };
  const improved = words.outcome({ outcome: 'improved', stop_reason: 'epochs', seed_vs_best: found });
  assert.deepEqual(improved, {
    title: 'Improved',
    text: 'The best prompts score 0.750 and the first ones 0.500 on 24 cases (+0.250, 95 % interval +0.100 to +0.400). All epochs are done.',
  });
  const none = words.outcome({ outcome: 'no_significant_gain', stop_reason: 'budget', seed_vs_best: { ...found, test: { seed: 0.4, best: 0.5 } } });
  assert.equal(none.title, 'No significant gain');
  assert.match(none.text, /first prompts are returned.*On the test cases: 0\.500 and 0\.400\. The budget was used up\./);
  assert.equal(words.outcome({ outcome: 'no_headroom', stop_reason: 'no_headroom' }).title, 'No headroom');
  assert.equal(words.outcome({ outcome: null, stop_reason: 'cancelled' }).title, 'Cancelled');
  assert.deepEqual([0.25, 4, 125, 7260, null].map(words.duration), ['250 ms', '4 s', '2 min 5 s', '2 h 1 min', '–']);
  assert.deepEqual([0, 0.0125, 3.456].map(words.money), ['$0', '$0.013', '$3.46']);
  assert.deepEqual([0.1, -0.1, 0, null].map(words.difference), ['+0.100', '−0.100', '±0.000', '–']);
  assert.equal(words.plain({ code: 'some.code', message: 'What the service says.' }), 'What the service says.');
  assert.match(words.plain({ code: 'auth.missing_scope', message: 'Missing required scopes: workflows:write' }), /may not.*workflows:write/);
});

const frame = (n, type) => `id: s.${n}\ndata: ${JSON.stringify({ type, n })}\n\n`;

/** A server that sends the next of `answers` on each connection: `[status, body, end]`. */
async function served(answers, use) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.headers['last-event-id'] ?? null);
    const [status, body, end] = answers.shift() ?? [204, ''];
    response.writeHead(status);
    if (body) response.write(body, () => (end === 'cut' ? setTimeout(() => response.destroy(), 20) : end !== 'hang' && response.end()));
    else response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const heard = [];
  const links = [];
  const abort = new AbortController();
  const open = async (after) => {
    const headers = after ? { 'Last-Event-ID': after } : {};
    const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers });
    if (response.status === 204) return null;
    if (!response.ok) throw Object.assign(new Error(`${response.status}`), { passes: response.status >= 500, retryAfter: 0 });
    return response;
  };
  const run = { open, onEvent: ({ n }) => heard.push(n), onLink: ({ up }) => links.push(up), signal: abort.signal, silence: 200, firstPause: 5 };
  try {
    await use(() => followRun(run), { asked, heard, links, abort });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('each event is read once, across cuts, errors and silence', async () => {
  const answers = [
    [200, frame(1, 'run_started') + frame(2, 'training_progress'), 'cut'],
    [503, ''],
    [200, frame(2, 'training_progress') + frame(3, 'training_progress'), 'hang'],
    [200, frame(4, 'run_completed')],
  ];
  await served(answers, async (follow, { asked, heard, links }) => {
    await follow();
    assert.deepEqual(heard, [1, 2, 3, 4]);
    assert.deepEqual(asked, [null, 's.2', 's.2', 's.3']);
    assert.deepEqual(links, [true, false, true, true]);
  });
});

test('a finished run is not requested again, and a rejection is reported', async () => {
  await served([[204, '']], async (follow, { asked }) => {
    await follow();
    assert.deepEqual(asked, [null]);
  });
  await served([[403, '']], async (follow) => assert.rejects(follow(), /403/));
});
