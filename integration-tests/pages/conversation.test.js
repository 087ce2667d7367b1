import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as conversation from '../../src/server/pages/assets/chat/conversation.js';

const { apply, empty, lastStored, lockOf, pendingCall, withItem, withOutput, over, refuse, say, textOf, upTo, withEarlier, withThread, withoutUnsent } = conversation;
const AT = '2026-01-01T12:00:00.000Z';
const THREAD = { id: 'thr_1', created_at: AT, status: { type: 'active' }, items: { data: [], has_more: false } };
const user = (id, text) => ({ type: 'user_message', id, thread_id: 'thr_1', created_at: AT, content: [{ type: 'input_text', text }] });
const reply = (id, ...texts) => ({
  type: 'assistant_message',
  id,
  thread_id: 'thr_1',
  created_at: AT,
  content: texts.map((text) => ({ type: 'output_text', text, annotations: [] })),
});
const update = (id, change) => ({ type: 'thread.item.updated', item_id: id, update: change });
const piece = (id, text) => update(id, { type: 'content_part_added', part: { type: 'output_text', text } });
const delta = (id, text, index = 0) => update(id, { type: 'assistant_message.content_part.text_delta', content_index: index, delta: text });

const play = (state, ...events) => events.reduce(apply, state);
const shown = ({ items }) => items.map((item) => `${item.role}(${item.status}): ${textOf(item)}`);

test('a turn is shown from the interface dialect', () => {
  let state = say(empty(), 'k', 'Hi');
  assert.deepEqual(shown(state), ['user(sending): Hi']);
  state = play(state, { type: 'thread.created', thread: THREAD }, { type: 'thread.item.done', item: user('u', 'Hi') });
  assert.equal(state.items[0].key, 'k', 'it stays the same on the page');
  state = play(state, { type: 'thread.item.added', item: reply('v') }, piece('v', 'It '), piece('v', 'is'));
  assert.deepEqual(shown(state), ['user(done): Hi', 'assistant(streaming): It is']);
  assert.equal(state.phase, 'replying');
  state = over(play(state, { type: 'thread.item.done', item: reply('v', 'It is.') }));
  assert.deepEqual(shown(state), ['user(done): Hi', 'assistant(done): It is.']);
  assert.equal(state.phase, 'idle');
});

test('a turn is shown from the chatkit dialect, with two parts and a replaced text', () => {
  const part = (index, text, type) => update('a', { type: `assistant_message.content_part.${type}`, content_index: index, content: { type: 'output_text', text } });
  let state = play(empty(), { type: 'thread.item.added', item: reply('a') }, part(0, '', 'added'), delta('a', 'One '), delta('a', 'two', 1));
  assert.deepEqual(shown(state), ['assistant(streaming): One two']);
  state = play(state, { type: 'thread.item.replaced', item: reply('a', 'Other') }, delta('a', ' end'), part(0, 'Other end.', 'done'));
  assert.deepEqual(shown(state), ['assistant(streaming): Other end.']);
});

test('a replayed stream shows no item twice', () => {
  const events = [
    { type: 'thread.item.done', item: user('u', 'Hi') },
    { type: 'thread.item.added', item: reply('v') },
    piece('v', 'It '),
    piece('v', 'is'),
    { type: 'thread.item.done', item: reply('v', 'It is') },
  ];
  for (let seen = 0; seen <= events.length; seen += 1) {
    const state = play(play(empty(), ...events.slice(0, seen)), ...events);
    assert.deepEqual(shown(state), ['user(done): Hi', 'assistant(done): It is'], `after ${seen}`);
  }
});

test('a reply of a parked turn is placed before later messages', () => {
  const state = play(empty(), { type: 'thread.item.done', item: user('m1', 'Hi') }, { type: 'thread.item.done', item: user('m3', 'More') });
  const late = play(state, { type: 'thread.item.done', item: reply('m2', 'It is') });
  assert.deepEqual(shown(late), ['user(done): Hi', 'assistant(done): It is', 'user(done): More']);
});

test('unknown events change nothing', () => {
  const state = say(empty(), 'k', 'Hi');
  for (const event of [{ type: 'client_effect', name: 'x' }, { type: 'stream_options' }, { type: 'constructor' }, { type: '__proto__' }, {}, piece('nobody', 'x')]) {
    assert.deepEqual(play(state, event).items, state.items, JSON.stringify(event));
  }
  assert.equal(play(state, { type: 'thread.item.done', item: { type: 'widget', id: 'w' } }).items.length, 1);
});

test('progress, notices and failures are part of the state', () => {
  let state = play(say(empty(), 'k', 'Hi'), { type: 'progress_update', text: 'Looking' });
  assert.equal(state.progress, 'Looking');
  state = play(state, { type: 'notice', level: 'info', message: 'a' }, { type: 'notice', level: 'info', message: 'a' });
  assert.equal(new Set(state.items.map(({ key }) => key)).size, 3);
  state = play(state, { type: 'thread.item.added', item: reply('a') }, piece('a', 'Half'));
  assert.equal(state.progress, null);
  state = over(play(state, { type: 'error', code: 'custom', message: 'No.', allow_retry: true, error_code: 'node.failed' }));
  assert.deepEqual(state.failure, { message: 'No.', code: 'node.failed', retry: 'answer' });
  assert.equal(shown(state).at(-1), 'assistant(broken): Half');
  assert.equal(play(state, { type: 'error', code: 'stream.error', allow_retry: false }).failure.retry, null);
});

test('an incomplete reply has the same status live and after a reload', () => {
  for (const [reason, status] of [['stopped', 'stopped'], ['abandoned', 'abandoned'], ['failed', 'broken'], ['later', 'broken']]) {
    const item = { ...reply('a', 'Half'), status: 'incomplete', reason };
    const live = over(play(say(empty(), 'k', 'Hi'), { type: 'thread.item.added', item: reply('a') }, { type: 'thread.item.done', item }));
    assert.equal(shown(live).at(-1), `assistant(${status}): Half`);
    assert.equal(shown(withThread(empty(), THREAD, [user('u', 'Hi'), item], null)).at(-1), `assistant(${status}): Half`);
  }
});

test('a rejected message stays until it is sent again', () => {
  const refused = refuse(say(empty(), 'k', 'Hi'), { code: 'network', retry: 'send' });
  assert.deepEqual(shown(refused), ['user(unsent): Hi']);
  assert.deepEqual(shown(withoutUnsent(refused)), []);
});

test('reading a thread again keeps the older, unsent and notice items on the page', () => {
  const pages = withThread(empty(), THREAD, [user('u1', '1'), reply('a1', 'one'), user('u2', '2')], 'u1');
  assert.equal(pages.before, 'u1');
  const earlier = withEarlier(pages, [user('u0', '0'), reply('a0', 'zero'), user('u1', '1')], null);
  assert.deepEqual(earlier.items.map(({ id }) => id), ['u0', 'a0', 'u1', 'a1', 'u2']);
  const again = withThread(say(earlier, 'k', 'next'), THREAD, [user('u1', '1'), user('u2', '2'), reply('a2', 'two')], 'u1');
  assert.deepEqual(again.items.map(({ id }) => id), ['u0', 'a0', 'u1', 'u2', 'a2', null], 'a1 was taken out elsewhere');
  assert.equal(again.before, null, 'all older ones are here already');
  const noticed = withThread(play(earlier, { type: 'notice', level: 'info', message: 'Stopped.' }), THREAD, [user('u2', '2')], 'u1');
  assert.deepEqual(noticed.items.map(({ id, role }) => id ?? role), ['u0', 'a0', 'u1', 'a1', 'u2', 'notice']);
  assert.deepEqual(upTo(earlier, 'u1').items.map(({ id }) => id), ['u0', 'a0', 'u1']);
});

test('tasks are placed by time, and a later state replaces them', () => {
  const list = (id, tasks, summary) => ({ type: 'workflow', id, thread_id: 'thr_1', created_at: AT, workflow: { type: 'custom', tasks, summary } });
  const named = (title, state) => ({ type: 'custom', title, status_indicator: state });
  let state = play(
    empty(),
    { type: 'thread.item.done', item: user('msg_1', 'Hi') },
    { type: 'thread.item.done', item: list('wf_2', [named('Read', 'loading')], { title: 'Order' }) },
    { type: 'thread.item.done', item: reply('msg_3', 'Done.') },
  );
  assert.deepEqual(shown(state), ['user(done): Hi', 'tasks(done): ', 'assistant(done): Done.']);
  assert.deepEqual(state.items[1].list, { title: 'Order', tasks: [{ text: 'Read', detail: '', state: 'loading' }] });
  state = play(state, { type: 'thread.item.replaced', item: list('wf_2', [named('Read', 'complete')], { duration: 3 }) });
  assert.deepEqual(state.items[1].list, { title: '3 s', tasks: [{ text: 'Read', detail: '', state: 'complete' }] });
  const thought = { type: 'task', id: 'tsk_1', thread_id: 'thr_1', created_at: AT, task: { type: 'thought', content: 'Why?' } };
  state = play(state, { type: 'thread.item.done', item: { ...thought, id: 'tsk_2b' } });
  assert.deepEqual(state.items.map(({ id }) => id), ['msg_1', 'wf_2', 'tsk_2b', 'msg_3'], 'by time, whatever the kind');
  const found = { type: 'web_search', queries: ['a', 'b'], sources: [{ type: 'url', title: 'Page', url: 'https://example.org' }] };
  state = play(state, { type: 'thread.item.replaced', item: { ...thought, id: 'tsk_2b', task: found } });
  assert.deepEqual(state.items[2].list.tasks, [{ text: 'a, b', detail: 'Page', state: 'none' }]);
  state = play(state, { type: 'thread.item.removed', item_id: 'wf_2' }, { type: 'thread.item.done', item: { type: 'end_of_turn', id: 'eot_9' } });
  assert.deepEqual(state.items.map(({ id }) => id), ['msg_1', 'tsk_2b', 'msg_3'], 'what is not known is not shown');
});

test('a replaced complete reply stays complete', () => {
  let state = play(empty(), { type: 'thread.item.done', item: reply('msg_1', 'One') });
  state = over(play(state, { type: 'thread.item.replaced', item: reply('msg_1', 'Two') }));
  assert.deepEqual(shown(state), ['assistant(done): Two']);
});

test('a locked thread has a reason, and a closed one is locked for good', () => {
  const updated = (status) => ({ type: 'thread.updated', thread: { ...THREAD, status } });
  assert.equal(lockOf(empty()), null);
  assert.equal(lockOf(play(empty(), { type: 'thread.created', thread: THREAD })), null);
  const locked = play(empty(), updated({ type: 'locked', reason: 'Wait.' }));
  assert.deepEqual(lockOf(locked), { reason: 'Wait.', forGood: false });
  assert.deepEqual(lockOf(play(locked, updated({ type: 'locked' }))).reason, 'Messages cannot be sent at present.');
  assert.deepEqual(lockOf(play(locked, updated({ type: 'closed' }))), { reason: 'This conversation is closed.', forGood: true });
  assert.equal(lockOf(play(locked, updated({ type: 'active' }))), null);
});

test('every kind of item is open until it is done', () => {
  const item = (type, id, more) => ({ type, id, thread_id: 'thr_1', created_at: AT, ...more });
  const text = (value, streaming) => ({ type: 'Card', children: [{ type: 'Text', id: 't', value, streaming }] });
  let state = play(
    say(empty(), 'k', 'Hi'),
    { type: 'thread.item.added', item: item('widget', 'msg_2', { widget: text('He', true) }) },
    update('msg_2', { type: 'widget.streaming_text.value_delta', component_id: 't', delta: 'llo', done: false }),
    { type: 'thread.item.added', item: item('workflow', 'wf_3', { workflow: { type: 'custom', tasks: [], expanded: true } }) },
    update('wf_3', { type: 'workflow.task.added', task_index: 0, task: { type: 'custom', title: 'Read' } }),
    { type: 'thread.item.added', item: item('generated_image', 'msg_4') },
    update('msg_4', { type: 'generated_image.updated', image: { id: 'i', url: '/i.png' }, progress: 0.5 }),
  );
  assert.equal(state.phase, 'replying');
  assert.deepEqual(state.items.slice(1).map(({ role, status }) => [role, status]), [['widget', 'streaming'], ['tasks', 'streaming'], ['image', 'streaming']]);
  assert.equal(state.items[1].widget.children[0].value, 'Hello');
  assert.deepEqual(state.items[2].list.tasks, [{ text: 'Read', detail: '', state: 'none' }]);
  assert.deepEqual(state.items[3].picture, { url: '/i.png', progress: 0.5 });
  const before = state.items[1];
  state = play(state, update('msg_2', { type: 'unknown' }));
  assert.equal(state.items[1], before, 'an unknown update changes nothing');
  state = play(state, { type: 'thread.item.done', item: item('widget', 'msg_2', { widget: text('Hello.', false), copy_text: 'Hello.' }) }, { type: 'thread.item.removed', item_id: 'msg_4' });
  assert.deepEqual(state.items.map(({ role, status }) => [role, status]), [['user', 'sending'], ['widget', 'done'], ['tasks', 'streaming']]);
  assert.equal(state.items[1].copyText, 'Hello.');
  assert.equal(state.items[1].widget.children[0].value, 'Hello.');
});

test('the sources of a reply are listed once, and only web pages are linked', () => {
  const of = (source, index) => ({ type: 'annotation', source, index });
  const page = of({ type: 'url', title: 'A page', url: 'https://www.example.org/a' }, 3);
  const annotations = [
    page,
    page,
    of({ type: 'file', title: 'Plan', filename: 'plan.pdf' }),
    of({ type: 'entity', id: 'e', title: 'Entity', label: 'Label' }),
    of({ type: 'url', title: 'Bad', url: 'javascript:alert(1)' }),
    of({ type: 'url', title: '', url: 'http://example.org/b', attribution: 'Ada' }),
    of({ type: 'other', title: 'x' }),
    { type: 'annotation' },
    null,
  ];
  const message = reply('msg_1', 'It is.');
  message.content[0].annotations = annotations.slice(0, 2);
  let state = play(empty(), { type: 'thread.item.added', item: message });
  for (const [at, annotation] of annotations.entries()) {
    if (at >= 2) state = play(state, update('msg_1', { type: 'assistant_message.content_part.annotation_added', content_index: 0, annotation_index: at, annotation }));
  }
  assert.deepEqual(state.items[0].sources, [
    { title: 'A page', href: 'https://www.example.org/a', detail: 'example.org' },
    { title: 'plan.pdf', href: null, detail: 'Plan' },
    { title: 'Label', href: null, detail: '' },
    { title: 'Bad', href: null, detail: '' },
    { title: 'http://example.org/b', href: 'http://example.org/b', detail: 'Ada' },
  ]);
});

test('a thread limits the hosts of images', () => {
  const domains = (more) => play(empty(), { type: 'thread.created', thread: { ...THREAD, ...more } }).thread.domains;
  assert.equal(domains({}), null);
  assert.deepEqual(domains({ allowed_image_domains: ['e.org'] }), ['e.org']);
});

test('attachments of a message are shown at once, and then replaced by the stored ones', () => {
  const sent = { id: 'atc_1', name: 'a.png', mime_type: 'image/png', type: 'image', preview_url: 'https://e.org/old' };
  const stored = { ...sent, preview_url: 'https://e.org/new', thread_id: 'thr_1' };
  const { thread_id: _, ...shownAs } = stored;
  const item = { ...user('msg_1', ''), content: [], attachments: [stored] };
  let state = say(empty(), 'k', '', [sent]);
  assert.deepEqual(state.items[0].attachments, [sent]);
  state = refuse(state, { code: 'x', retry: 'send' });
  assert.deepEqual([state.items[0].status, state.items[0].attachments], ['unsent', [sent]]);
  const joined = withThread(state, THREAD, [], null);
  assert.deepEqual(joined.items[0].attachments, [sent], 'what is not sent keeps them while the thread is read');
  state = play(say(empty(), 'k', '', [sent]), { type: 'thread.item.done', item });
  assert.deepEqual([state.items.length, state.items[0].key, state.items[0].attachments], [1, 'k', [shownAs]]);
  assert.deepEqual(withThread(state, THREAD, [item], null).items[0].attachments, [shownAs]);
  assert.deepEqual(play(empty(), { type: 'thread.item.done', item: user('msg_2', 'Hi') }).items[0].attachments, []);
});

const asked = (id, status) => ({ type: 'structured_input', id, status, inputs: [{ id: 'q', question: 'Why?', type: 'freeform' }] });
const call = (id, status = 'pending') => ({ type: 'client_tool_call', id, status, call_id: 'c', name: 'locate', arguments: { near: 1 } });

test('a question and its answers are one item, live and when the thread is read', () => {
  const state = play(empty(), { type: 'thread.item.done', item: asked('m1', 'pending') });
  assert.deepEqual([state.items[0].role, state.items[0].questions.status], ['questions', 'pending']);
  const live = play(state, { type: 'thread.item.replaced', item: asked('m1', 'answered') });
  const read = withThread(state, THREAD, [asked('m1', 'answered')], null);
  for (const { items } of [live, read]) assert.deepEqual(items.map(({ key, questions }) => [key, questions.status]), [['m1', 'answered']]);
});

test('a client tool call is pending while it is the last stored item', () => {
  let state = play(empty(), { type: 'thread.item.done', item: call('m1') }, { type: 'notice', level: 'info', message: 'x' });
  assert.equal(pendingCall(state).id, 'm1');
  state = refuse(say(state, 'k', 'Hi'), { code: 'x' });
  assert.equal(pendingCall(state).id, 'm1', 'the message was not taken');
  assert.equal(pendingCall(withOutput(state, 'm1', { at: 1 })), null);
  assert.deepEqual(withOutput(state, 'm1', { at: 1 }).items[0].call, { isPending: false, name: 'locate', params: { near: 1 }, output: { at: 1 } });
  state = play(state, { type: 'thread.item.done', item: reply('m2', 'It is') });
  assert.deepEqual([lastStored(state).id, pendingCall(state), pendingCall(empty())], ['m2', null, null]);
});

test('an item change outside a turn keeps the phase', () => {
  const widget = (value) => ({ type: 'widget', id: 'm1', widget: { type: 'Card', value } });
  const state = { ...play(empty(), { type: 'thread.item.done', item: widget(1) }), phase: 'parked' };
  const next = withItem(state, widget(2));
  assert.deepEqual([next.phase, next.items[0].widget.value], ['parked', 2]);
  assert.equal(withItem(state, { ...widget(2), id: 'm9' }), state, 'it was removed meanwhile');
  assert.equal(withOutput(state, 'm1', {}), state, 'not a call');
});
