// What a conversation looks like, and how each event changes it. Pure: a state goes in, the next one comes out.

import { attachmentsOf } from './attachments/files.js';
import { questionsOf } from './questions.js';
import { sourcesOf } from './sources.js';
import { callOf } from './tools.js';
import { applyUpdate } from './updates.js';

/**
 * @typedef {object} Item
 * @property {string} key stays the same while the item is shown
 * @property {string | null} id the service's id; null until it has one
 * @property {'user' | 'assistant' | 'notice' | 'tasks' | 'widget' | 'image' | 'questions' | 'call'} role
 * @property {string[]} parts texts; shown as one
 * @property {'sending' | 'unsent' | 'streaming' | 'done' | 'stopped' | 'abandoned' | 'broken'} status
 * @property {import('./attachments/files.js').Attachment[]} [attachments] of a message of the visitor
 * @property {{level: string, title?: string}} [notice]
 * @property {{title: string | null, tasks: {text: string, detail: string, state: 'none' | 'loading' | 'complete'}[]}} [list]
 * @property {import('./sources.js').Source[]} [sources] of a reply
 * @property {object} [widget] the root of its components
 * @property {string | null} [copyText] what a widget says as text
 * @property {{url: string | null, progress: number | null}} [picture]
 * @property {import('./questions.js').Questions} [questions]
 * @property {import('./tools.js').Call} [call] of a client tool
 * @property {object} [stored] the item as the service sends it, to which updates apply
 */

/**
 * @typedef {object} Conversation
 * @property {{id: string, title?: string, status?: object, domains?: string[] | null} | null} thread null until the service has made one
 * @property {Item[]} items the oldest first
 * @property {string | null} before where older items begin; null when all are here
 * @property {number} notices how many there were
 * @property {'idle' | 'loading' | 'sending' | 'replying' | 'parked' | 'stopping'} phase `parked`: the turn waits for a person or a time, and
 *   other messages can be sent
 * @property {'network' | 'service' | null} trouble why nothing comes, and tried again: no connection, or a service that is busy
 * @property {string | null} progress what the workflow says it is doing
 * @property {{message?: string, code: string, retry: 'send' | 'answer' | null, requestId?: string | null} | null} failure
 */

/** @returns {Conversation} */
export function empty() {
  return {
    thread: null,
    items: [],
    before: null,
    notices: 0,
    phase: 'idle',
    trouble: null,
    progress: null,
    failure: null,
  };
}

/** The text of an item. */
export function textOf(item) {
  return item.parts.join('');
}

/**
 * Why the thread accepts no messages; null if it does.
 * @returns {{reason: string, forGood: boolean} | null}
 */
export function lockOf({ thread }) {
  const { type = 'active', reason } = thread?.status ?? {};
  if (type === 'active') return null;
  const forGood = type === 'closed';
  return { reason: reason || (forGood ? 'This conversation is closed.' : 'Messages cannot be sent at present.'), forGood };
}

/** A message that is on its way. */
export function say(state, key, text, attachments = []) {
  const item = { key, id: null, role: 'user', parts: [text], attachments, status: 'sending' };
  return { ...state, items: [...state.items, item], phase: 'sending', failure: null, progress: null };
}

/** The message was not taken; it stays, to be sent again. */
export function refuse(state, failure) {
  const items = state.items.map((item) => (item.status === 'sending' ? { ...item, status: 'unsent' } : item));
  return { ...over(state), items, failure };
}

/** An item that changed without a turn. */
export function withItem(state, stored) {
  const isKnown = state.items.some(({ id }) => id !== null && id === stored?.id);
  return isKnown ? put(state, stored, isOpen(state, stored.id) ? 'streaming' : 'done') : state;
}

/** The last item of the service; undefined if there is none. Notices and unsent messages have no id. */
export function lastStored({ items }) {
  return items.findLast(({ id }) => id !== null);
}

/** The client tool call that the conversation ends with; null if another item is the last one, or it has its output. */
export function pendingCall(state) {
  const last = lastStored(state);
  return last?.call?.isPending === true ? last : null;
}

/** A client tool call has its output. The service sends no event for that. */
export function withOutput(state, id, output) {
  const item = state.items.find((known) => known.id === id);
  return item?.call ? withItem(state, { ...item.stored, status: 'completed', output }) : state;
}

/** Without the message that was not taken. */
export function withoutUnsent(state) {
  return { ...state, items: state.items.filter(({ status }) => status !== 'unsent') };
}

/** Everything behind a message goes, because it is answered again. */
export function upTo(state, id) {
  const at = state.items.findIndex((item) => item.id === id);
  return { ...state, items: state.items.slice(0, at + 1), progress: null };
}

/** A thread as it was read: its newest items, oldest first, and where older ones begin. What is not sent stays. */
export function withThread(state, thread, stored, before) {
  const known = new Map(state.items.map((item) => [item.id, item]));
  const items = shown(stored).map((item) => {
    const { key = item.key } = known.get(item.id) ?? {};
    return { ...item, key };
  });
  const first = items[0]?.id;
  // What was read of older ones before is still there.
  const reached = first === undefined ? -1 : state.items.findIndex(({ id }) => id === first);
  const older = reached > 0 ? state.items.slice(0, reached) : [];
  const waiting = state.items.filter(({ id, role }) => id === null && role === 'user');
  // Notices are not stored; the last ones are about what was just seen.
  const notices = state.items.slice(state.items.findLastIndex(({ role }) => role !== 'notice') + 1);
  return {
    ...state,
    thread: headOf(thread),
    items: [...older, ...items, ...waiting, ...notices],
    before: older.length > 0 ? state.before : before,
  };
}

/** Older items, oldest first, in front of what is there. */
export function withEarlier(state, stored, before) {
  const known = new Set(state.items.map((item) => item.id));
  return { ...state, items: [...shown(stored).filter(({ id }) => !known.has(id)), ...state.items], before };
}

function shown(stored) {
  return stored.map(fromService).filter((item) => item !== null);
}

/** The turn has ended. */
export function over(state) {
  const items = state.items.map((item) => (item.status === 'streaming' ? { ...item, status: 'broken' } : item));
  return { ...state, items, phase: 'idle', trouble: null, progress: null };
}

/**
 * One event of a stream.
 * @param {Conversation} state
 * @param {object} event
 * @returns {Conversation} the same one for events that change nothing here
 */
export function apply(state, event) {
  return Object.hasOwn(CHANGES, event.type) ? CHANGES[event.type](state, event) : state;
}

const CHANGES = {
  'thread.created': (state, { thread }) => ({ ...state, thread: headOf(thread) }),
  'thread.updated': (state, { thread }) => ({ ...state, thread: headOf(thread) }),
  'thread.item.added': (state, { item }) => begun({ ...put(state, item, 'streaming'), progress: null }),
  'thread.item.updated': (state, { item_id: id, update }) =>
    begun(edit(state, id, (item) => updated(item, update))),
  // Only an open item continues; another one is complete.
  'thread.item.replaced': (state, { item }) => begun(put(state, item, isOpen(state, item.id) ? 'streaming' : 'done')),
  'thread.item.done': (state, { item }) => {
    const next = { ...put(state, item, 'done'), progress: null };
    return next.thread === null && item.thread_id ? { ...next, thread: { id: item.thread_id } } : next;
  },
  'thread.item.removed': (state, { item_id: id }) => ({
    ...state,
    items: state.items.filter((item) => item.id !== id),
  }),
  progress_update: (state, { text, icon }) => {
    const next = { ...begun(state), progress: text };
    return icon === 'clock' && next.phase === 'replying' ? { ...next, phase: 'parked' } : next;
  },
  notice: (state, { level, title, message }) => {
    const notices = state.notices + 1;
    const item = { key: `notice:${notices}`, id: null, role: 'notice', parts: [message], status: 'done' };
    return { ...state, notices, items: [...state.items, { ...item, notice: { level, title } }] };
  },
  error: (state, { message, error_code: code, code: kind, allow_retry: again }) => ({
    ...state,
    failure: { message, code: code ?? kind, retry: again ? 'answer' : null },
  }),
};

function isOpen({ items }, id) {
  return items.find((item) => item.id === id)?.status === 'streaming';
}

function headOf({ id, title, status, allowed_image_domains: domains }) {
  return { id, title, status, domains: Array.isArray(domains) ? domains : null };
}

function begun(state) {
  return state.phase === 'sending' || state.phase === 'parked' ? { ...state, phase: 'replying' } : state;
}

function edit(state, id, change) {
  const at = state.items.findIndex((item) => item.id === id);
  return at < 0 ? state : { ...state, items: exchange(state.items, at, change(state.items[at])) };
}

function exchange(items, at, item) {
  return items.map((old, index) => (index === at ? item : old));
}

/** Puts an item of the service in its place: that of its id, that of the message on its way, or the end. */
function put(state, stored, status) {
  const item = fromService(stored);
  if (item === null) return state;
  if (item.status === 'done') item.status = status;
  let at = state.items.findIndex((known) => known.id === item.id);
  if (at < 0 && item.role === 'user') at = state.items.findIndex((known) => known.status === 'sending');
  if (at < 0) {
    // Ids grow with time. What a turn said that was parked meanwhile belongs before later messages.
    const later = state.items.findIndex(({ id, role }) => id !== null && role !== 'notice' && place(id) > place(item.id));
    return { ...state, items: later < 0 ? [...state.items, item] : state.items.toSpliced(later, 0, item) };
  }
  return { ...state, items: exchange(state.items, at, { ...item, key: state.items[at].key }) };
}

/** The part of an id that grows with time; before it stands the kind. */
function place(id) {
  return id.slice(id.indexOf('_') + 1);
}

/** How an incomplete message is shown, by its reason. */
const INCOMPLETE = { stopped: 'stopped', abandoned: 'abandoned', failed: 'broken' };

/** Null for kinds that are not shown. */
function fromService(stored) {
  const shape = Object.hasOwn(SHAPES, stored.type) ? SHAPES[stored.type](stored) : null;
  if (shape === null) return null;
  const status = stored.status === 'incomplete' ? (INCOMPLETE[stored.reason] ?? 'broken') : 'done';
  return { key: stored.id, id: stored.id, parts: [], status, ...shape, stored };
}

/** What is shown of an item, by its kind; null if it is unknown. */
const SHAPES = {
  user_message: ({ content, attachments }) => ({ role: 'user', parts: textsOf(content), attachments: attachmentsOf(attachments) }),
  assistant_message: ({ content }) => ({ role: 'assistant', parts: textsOf(content), sources: sourcesOf(content ?? []) }),
  task: ({ task }) => ({ role: 'tasks', list: { title: null, tasks: [task].map(shownTask) } }),
  workflow: ({ workflow }) => ({ role: 'tasks', list: shownList(workflow) }),
  widget: ({ widget, copy_text: text }) => (widget ? { role: 'widget', widget, copyText: text ?? null } : null),
  structured_input: (stored) => ({ role: 'questions', questions: questionsOf(stored) }),
  client_tool_call: (stored) => ({ role: 'call', call: callOf(stored) }),
  generated_image: ({ image, progress }) => ({ role: 'image', picture: { url: image?.url ?? null, progress: progress ?? null } }),
};

function textsOf(content) {
  return (content ?? []).map(({ type, text }) => (type === 'input_tag' ? `@${text}` : (text ?? '')));
}

/** An item after an update; it stays open, or complete. */
function updated(item, update) {
  const stored = item.stored && applyUpdate(item.stored, update);
  return stored === item.stored ? item : { ...fromService(stored), key: item.key, status: item.status };
}

function shownList({ tasks = [], summary }) {
  const title = summary?.title ?? (summary?.duration === undefined ? null : `${summary.duration} s`);
  return { title, tasks: tasks.map(shownTask) };
}

function shownTask({ title, title_query: query, content, queries = [], sources = [], status_indicator: state = 'none' }) {
  const named = sources.map((source) => source.title);
  const text = title ?? query ?? (queries.join(', ') || named.join(', ') || content || 'Task');
  const detail = [content, ...named].filter((part) => part && part !== text).join('\n');
  return { text, detail, state };
}
