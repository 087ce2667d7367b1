import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/server/pages/assets/chat/api.js';
import { Session } from '../../src/server/pages/assets/chat/session.js';

const AT = '2026-01-01T12:00:00.000Z';
const THREAD = { id: 'thr_1', created_at: AT, status: { type: 'active' }, items: { data: [], has_more: false } };
const of = (type, id, rest) => ({ type, id, thread_id: 'thr_1', created_at: AT, ...rest });
const user = (id) => of('user_message', id, { content: [{ type: 'input_text', text: 'Hi' }] });
const reply = (id, text = 'It is.') => of('assistant_message', id, { content: [{ type: 'output_text', text, annotations: [] }] });
const widget = (id, value = 'A') => of('widget', id, { widget: { type: 'Card', children: [{ type: 'Text', value }] } });
const asked = (id, status = 'pending') => of('structured_input', id, { status, inputs: [{ id: 'q', question: 'Why?', type: 'freeform' }] });
const call = (id, status = 'pending', output) => of('client_tool_call', id, { status, call_id: 'c', name: 'locate', arguments: {}, output });
const done = (item) => ({ type: 'thread.item.done', item });
const replaced = (item) => ({ type: 'thread.item.replaced', item });
const created = { type: 'thread.created', thread: THREAD };
const options = { type: 'stream_options', stream_options: { allow_cancel: true } };
const ACTION = { type: 'order.cancel', payload: { id: 7 }, handler: 'server', loadingBehavior: 'auto', streaming: true };
const INPUT = { status: 'answered', answers: { q: { values: ['so'], skipped: false } } };

/** The body of a stream; `push` adds events, and `end` ends it. */
function stream(id, events = []) {
  let control;
  let n = 0;
  const body = new ReadableStream({ start: (made) => (control = made) });
  const push = (...more) => {
    for (const event of more) control.enqueue(new TextEncoder().encode(`id: ${id}.${(n += 1)}\ndata: ${JSON.stringify(event)}\n\n`));
  };
  push(...events);
  return { response: new Response(body, { headers: { 'X-Chat-Stream-Id': id } }), push, end: () => control.close() };
}

/** A stream that has ended. */
function ended(id, ...events) {
  const made = stream(id, events);
  made.end();
  return made.response;
}

/**
 * A session with one sent message. Each later request returns the next of `answers`: a response, an error, or a promise.
 * `stored` has the items of the service.
 */
async function begun(answers, { stored = [], running = [], items = [created, done(user('msg_1')), done(widget('msg_2')), done(reply('msg_3'))] } = {}) {
  const sent = [];
  const calls = [];
  const store = { items: stored.length > 0 ? stored : items.map(({ item }) => item).filter(Boolean) };
  const taken = async (list) => {
    const answer = await list.shift();
    if (answer instanceof Error) throw answer;
    return answer ?? null;
  };
  const api = {
    begin: (type, params) => {
      sent.push({ type, params });
      return sent.length === 1 ? Promise.resolve(ended('s1', ...items)) : taken(answers);
    },
    ask: async (type, params) => {
      if (type === 'threads.get_by_id') return THREAD;
      if (type === 'items.list') return { data: store.items.toReversed(), has_more: false };
      sent.push({ type, params });
      return taken(answers);
    },
    running: async () => taken(running),
    stream: async (id, after) => {
      // The stream has no events after the last one.
      if (after !== null) return null;
      sent.push({ stream: id });
      return taken(running);
    },
    stop: async () => ({}),
  };
  const session = new Session(api, () => {}, (item) => calls.push(item.id));
  await session.say('Hi');
  return { session, sent, calls, store };
}

const item = (session, id) => session.state.items.find((known) => known.id === id);
const roles = ({ state }) => state.items.map(({ role }) => role);
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));

test('an action is a turn without a message, and replaces its widget', async () => {
  const events = [options, replaced(widget('msg_2', 'B')), done(reply('msg_4', 'Cancelled.'))];
  const { session, sent, store } = await begun([ended('s2', ...events)]);
  store.items = [user('msg_1'), widget('msg_2', 'B'), reply('msg_3'), reply('msg_4', 'Cancelled.')];
  assert.equal(await session.action(ACTION, { itemId: 'msg_2' }), null);
  assert.deepEqual(sent[1], { type: 'threads.custom_action', params: { thread_id: 'thr_1', item_id: 'msg_2', action: { type: 'order.cancel', payload: { id: 7 } } } });
  assert.deepEqual(roles(session), ['user', 'widget', 'assistant', 'assistant']);
  assert.equal(item(session, 'msg_2').widget.children[0].value, 'B');
  assert.equal(session.state.phase, 'idle');
});

test('a rejected action sets the failure and resolves', async () => {
  const { session } = await begun([new ApiError({ status: 404, code: 'item.not_found' })]);
  assert.equal((await session.action(ACTION, { itemId: 'msg_9' })).code, 'item.not_found');
  assert.deepEqual([session.state.failure.code, session.state.failure.retry, session.state.phase], ['item.not_found', null, 'idle']);
});

test('an error in an action’s turn offers no retry of the last message', async () => {
  const { session } = await begun([ended('s2', options, { type: 'error', code: 'custom', error_code: 'chat.action_unhandled', allow_retry: true })]);
  await session.action(ACTION, { itemId: 'msg_2' });
  assert.deepEqual([session.state.failure.code, session.state.failure.retry], ['chat.action_unhandled', null]);
});

test('actions wait for the current turn, and run in order', async () => {
  const first = stream('s2', [done(user('msg_4'))]);
  const { session, sent, store } = await begun([first.response, ended('s3', done(reply('msg_6'))), ended('s4', done(reply('msg_7')))]);
  session.say('More');
  await pause();
  const results = [session.action(ACTION, { itemId: 'msg_2' }), session.action({ ...ACTION, type: 'second' }, { itemId: 'msg_2' })];
  await pause();
  assert.equal(sent.length, 2, 'the reply is still read');
  first.push(done(reply('msg_5')));
  first.end();
  store.items = ['msg_1', 'msg_4'].map(user);
  assert.deepEqual(await Promise.all(results), [null, null]);
  assert.deepEqual(sent.slice(2).map(({ params }) => params.action.type), ['order.cancel', 'second']);
});

test('a waiting action is reported as dropped when the visitor leaves the conversation', async () => {
  const { session } = await begun([new Promise(() => {})]);
  session.say('More');
  const waiting = session.action(ACTION, { itemId: 'msg_2' });
  session.end();
  assert.equal((await waiting).code, 'request.dropped');
  assert.equal((await session.action(ACTION, { itemId: 'msg_2' })).code, 'request.dropped');
});

test('an action is complete for its widget when its turn parks', async () => {
  const parked = stream('s2', [options, { type: 'progress_update', text: 'Waiting …', icon: 'clock' }]);
  const { session } = await begun([parked.response]);
  assert.equal(await session.action(ACTION, { itemId: 'msg_2' }), null);
  assert.equal(session.state.phase, 'parked');
  session.end();
});

test('an action that does not stream replaces its item during a turn', async () => {
  const first = stream('s2', [done(user('msg_4'))]);
  const { session, sent } = await begun([first.response, { updated_item: widget('msg_2', 'C') }, {}, new ApiError({ status: 502, code: 'chat.action_failed' })]);
  session.say('More');
  await pause();
  const { phase } = session.state;
  assert.equal(await session.action({ ...ACTION, streaming: false }, { itemId: 'msg_2' }), null);
  assert.equal(sent[2].type, 'threads.sync_custom_action');
  assert.equal(item(session, 'msg_2').widget.children[0].value, 'C');
  assert.equal(await session.action({ ...ACTION, streaming: false }, { itemId: 'msg_2' }), null);
  assert.equal((await session.action({ ...ACTION, streaming: false }, { itemId: 'msg_2' })).code, 'chat.action_failed');
  assert.deepEqual([session.state.failure.code, session.state.phase], ['chat.action_failed', phase]);
  session.end();
});

const WITH_QUESTION = { items: [created, done(user('msg_1')), done(asked('msg_2'))] };

test('a turn that ends with a question frees the page, and the answer continues it', async () => {
  const turn = stream('s2', [options, replaced(asked('msg_2', 'answered'))]);
  const { session, sent, store } = await begun([turn.response], WITH_QUESTION);
  assert.deepEqual([session.state.phase, item(session, 'msg_2').questions.status], ['idle', 'pending']);
  assert.equal(await session.answer('msg_2', INPUT), null, 'accepted before the turn has ended');
  await pause();
  assert.equal(item(session, 'msg_2').questions.status, 'answered');
  store.items = [user('msg_1'), asked('msg_2', 'answered'), reply('msg_3')];
  turn.push(done(reply('msg_3')));
  turn.end();
  await pause();
  assert.deepEqual(sent[1], { type: 'threads.add_structured_input', params: { thread_id: 'thr_1', item_id: 'msg_2', input: INPUT } });
  assert.deepEqual([roles(session), session.state.phase], [['user', 'questions', 'assistant'], 'idle']);
});

test('a question answered elsewhere is read again, with the turn that continues it', async () => {
  const running = [ended('s9', options, replaced(asked('msg_2', 'answered')), done(reply('msg_3')))];
  const stored = [user('msg_1'), asked('msg_2', 'answered'), reply('msg_3')];
  const { session, sent } = await begun([new ApiError({ status: 409, code: 'item.not_pending', stream: 's9' })], { ...WITH_QUESTION, stored, running });
  assert.equal((await session.answer('msg_2', INPUT)).code, 'item.not_pending');
  await pause();
  assert.deepEqual(sent[2], { stream: 's9' });
  assert.deepEqual([roles(session), item(session, 'msg_2').questions.status], [['user', 'questions', 'assistant'], 'answered']);
  assert.equal(session.state.failure, null, 'it is said at the question');
});

test('a rejected answer is shown only at the question', async () => {
  const { session } = await begun([new ApiError({ status: 422, code: 'chat.invalid_request', message: 'No.' })], WITH_QUESTION);
  assert.equal((await session.answer('msg_2', INPUT)).code, 'chat.invalid_request');
  assert.deepEqual([session.state.failure, session.state.phase], [null, 'idle']);
});

const WITH_CALL = { items: [created, done(user('msg_1')), done(call('tc_2'))] };

test('a call at the end of this page’s turn is delivered, and its output continues the turn', async () => {
  const turn = stream('s2', [options]);
  const { session, sent, calls, store } = await begun([turn.response], WITH_CALL);
  assert.deepEqual(calls, ['tc_2']);
  assert.equal(await session.output('tc_2', { at: 1 }), null);
  assert.deepEqual(sent[1], { type: 'threads.add_client_tool_output', params: { thread_id: 'thr_1', result: { at: 1 } } });
  assert.deepEqual([item(session, 'tc_2').call.isPending, item(session, 'tc_2').call.output], [false, { at: 1 }], 'no event says so');
  store.items = [user('msg_1'), call('tc_2', 'completed', { at: 1 }), call('tc_3')];
  turn.push(done(call('tc_3')));
  turn.end();
  await pause();
  await pause();
  for (let n = 0; n < 100 && calls.length < 2; n += 1) await pause();
  assert.deepEqual(calls, ['tc_2', 'tc_3'], 'the next one');
});

test('a call is not delivered if it was found pending or comes from a joined turn', async () => {
  const calls = [];
  const api = {
    running: async () => (calls.asked === undefined ? ((calls.asked = 1), ended('s5', done(user('msg_1')), done(call('tc_2')))) : null),
    ask: async (type) => (type === 'items.list' ? { data: [call('tc_2'), user('msg_1')], has_more: false } : THREAD),
    stream: async () => null,
  };
  const session = new Session(api, () => {}, ({ id }) => calls.push(id));
  await session.open('thr_1');
  assert.deepEqual(roles(session), ['user', 'call']);
  assert.equal(calls.length, 0);
});

test('an effect is reported only in a turn that this page started, not in a joined one', async () => {
  const effects = [];
  const effect = { type: 'client_effect', name: 'light', data: { on: true } };
  const of = (events) => {
    const api = {
      begin: async () => ended('s1', created, done(user('msg_1')), ...events, done(reply('msg_2'))),
      running: async () => (events.joined === undefined ? ((events.joined = 1), ended('s5', done(user('msg_1')), ...events)) : null),
      ask: async (type) => (type === 'items.list' ? { data: [user('msg_1')], has_more: false } : THREAD),
      stream: async () => null,
    };
    return new Session(api, () => {}, () => {}, ({ name }) => effects.push(name));
  };
  await of([effect]).open('thr_1');
  assert.deepEqual(effects, []);
  await of([effect]).say('Hi');
  for (let n = 0; n < 100 && effects.length < 1; n += 1) await pause();
  assert.deepEqual(effects, ['light']);
});

test('the output of a call that is not the last item is not sent', async () => {
  const { session, sent } = await begun([ended('s2', done(user('msg_3')), done(reply('msg_4')))], WITH_CALL);
  await session.say('Never mind');
  assert.equal((await session.output('tc_2', {})).code, 'item.not_pending');
  assert.equal(sent.length, 2);
});
