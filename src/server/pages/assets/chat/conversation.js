// The state of a conversation, and its change by each event. Pure: each function takes a state and returns the next one.

import { attachmentsOf } from './attachments/files.js';
import { questionsOf } from './questions.js';
import { sourcesOf } from './sources.js';
import { callOf } from './tools.js';
import { applyUpdate } from './updates.js';

/**
 * @typedef {object} Item
 * @property {string} key stays the same while the item is shown
 * @property {string | null} id the service's id; null until the service has assigned it
 * @property {'user' | 'assistant' | 'notice' | 'tasks' | 'widget' | 'image' | 'questions' | 'call'} role
 * @property {string[]} parts texts; shown as one text
 * @property {'sending' | 'unsent' | 'streaming' | 'done' | 'stopped' | 'abandoned' | 'broken'} status
 * @property {import('./attachments/files.js').Attachment[]} [attachments] only in a user message
 * @property {{level: string, title?: string}} [notice]
 * @property {{title: string | null, tasks: {text: string, detail: string, state: 'none' | 'loading' | 'complete'}[]}} [list]
 * @property {import('./sources.js').Source[]} [sources] only in a reply
 * @property {object} [widget] the root of its components
 * @property {string | null} [copyText] the text form of a widget
 * @property {{url: string | null, progress: number | null}} [picture]
 * @property {import('./questions.js').Questions} [questions]
 * @property {import('./tools.js').Call} [call] a client tool call
 * @property {object} [stored] the item as the service sends it; updates apply to it
 */

/**
 * @typedef {object} Conversation
 * @property {{id: string, title?: string, status?: object, domains?: string[] | null} | null} thread null until the service has created it
 * @property {Item[]} items oldest first
 * @property {string | null} before the cursor of the next older page; null after the oldest item is loaded
 * @property {number} notices the number of notices so far
 * @property {'idle' | 'loading' | 'sending' | 'replying' | 'parked' | 'stopping'} phase `parked`: the turn waits for a person or a time, and
 *   other messages can be sent
 * @property {'network' | 'service' | null} trouble why the page is retrying: no connection, or a busy service
 * @property {string | null} progress the progress text of the workflow
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
 * The reason why the thread accepts no messages; null if it accepts them.
 * @returns {{reason: string, forGood: boolean} | null}
 */
export function lockOf({ thread }) {
  const { type = 'active', reason } = thread?.status ?? {};
  if (type === 'active') return null;
  const forGood = type === 'closed';
  return { reason: reason || (forGood ? 'This conversation is closed.' : 'Messages cannot be sent at present.'), forGood };
}

/** Adds a message that is being sent. */
export function say(state, key, text, attachments = []) {
  const item = { key, id: null, role: 'user', parts: [text], attachments, status: 'sending' };
  return { ...state, items: [...state.items, item], phase: 'sending', failure: null, progress: null };
}

/** Marks the message as not accepted. It stays, and can be sent again. */
export function refuse(state, failure) {
  const items = state.items.map((item) => (item.status === 'sending' ? { ...item, status: 'unsent' } : item));
  return { ...over(state), items, failure };
}

/** Replaces an item that changed outside a turn. */
export function withItem(state, stored) {
  const isKnown = state.items.some(({ id }) => id !== null && id === stored?.id);
  return isKnown ? put(state, stored, isOpen(state, stored.id) ? 'streaming' : 'done') : state;
}

/** The last stored item; undefined if there are only notices and unsent messages, which have no id. */
export function lastStored({ items }) {
  return items.findLast(({ id }) => id !== null);
}

/** The pending client tool call at the end of the conversation; null if another item is the last one, or the call has its output. */
export function pendingCall(state) {
  const last = lastStored(state);
  return last?.call?.isPending === true ? last : null;
}

/** Sets the output of a client tool call. The service sends no event for it. */
export function withOutput(state, id, output) {
  const item = state.items.find((known) => known.id === id);
  return item?.call ? withItem(state, { ...item.stored, status: 'completed', output }) : state;
}

/** Removes the message that was not accepted. */
export function withoutUnsent(state) {
  return { ...state, items: state.items.filter(({ status }) => status !== 'unsent') };
}

/** Removes all items after a message, which gets a new reply. */
export function upTo(state, id) {
  const at = state.items.findIndex((item) => item.id === id);
  return { ...state, items: state.items.slice(0, at + 1), progress: null };
}

/** Applies a thread that was read: its newest items, oldest first, and the cursor of the older ones. Unsent messages stay. */
export function withThread(state, thread, stored, before) {
  const known = new Map(state.items.map((item) => [item.id, item]));
  const items = shown(stored).map((item) => {
    const { key = item.key } = known.get(item.id) ?? {};
    return { ...item, key };
  });
  const first = items[0]?.id;
  // Keep the older items that were read before.
  const reached = first === undefined ? -1 : state.items.findIndex(({ id }) => id === first);
  const older = reached > 0 ? state.items.slice(0, reached) : [];
  const waiting = state.items.filter(({ id, role }) => id === null && role === 'user');
  // The service stores no notices; keep the ones at the end, which are about the last turn.
  const notices = state.items.slice(state.items.findLastIndex(({ role }) => role !== 'notice') + 1);
  return {
    ...state,
    thread: headOf(thread),
    items: [...older, ...items, ...waiting, ...notices],
    before: older.length > 0 ? state.before : before,
  };
}

/** Prepends older items, oldest first. */
export function withEarlier(state, stored, before) {
  const known = new Set(state.items.map((item) => item.id));
  return { ...state, items: [...shown(stored).filter(({ id }) => !known.has(id)), ...state.items], before };
}

function shown(stored) {
  return stored.map(fromService).filter((item) => item !== null);
}

/** Ends the turn. */
export function over(state) {
  const items = state.items.map((item) => (item.status === 'streaming' ? { ...item, status: 'broken' } : item));
  return { ...state, items, phase: 'idle', trouble: null, progress: null };
}

/**
 * Applies one stream event.
 * @param {Conversation} state
 * @param {object} event
 * @returns {Conversation} the same state if the event changes nothing
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
  // Only an open item continues to stream; any other item is complete.
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

/** Stores an item: replaces the one with its id or the message that is being sent, or adds it. */
function put(state, stored, status) {
  const item = fromService(stored);
  if (item === null) return state;
  if (item.status === 'done') item.status = status;
  let at = state.items.findIndex((known) => known.id === item.id);
  if (at < 0 && item.role === 'user') at = state.items.findIndex((known) => known.status === 'sending');
  if (at < 0) {
    // Ids grow with time. A turn that was parked may add items that belong before later messages.
    const later = state.items.findIndex(({ id, role }) => id !== null && role !== 'notice' && place(id) > place(item.id));
    return { ...state, items: later < 0 ? [...state.items, item] : state.items.toSpliced(later, 0, item) };
  }
  return { ...state, items: exchange(state.items, at, { ...item, key: state.items[at].key }) };
}

/** The part of an id that grows with time, without the prefix for its kind. */
function place(id) {
  return id.slice(id.indexOf('_') + 1);
}

/** Status of an incomplete message, by reason. */
const INCOMPLETE = { stopped: 'stopped', abandoned: 'abandoned', failed: 'broken' };

/** Converts a stored item; null if its kind is not shown. */
function fromService(stored) {
  const shape = Object.hasOwn(SHAPES, stored.type) ? SHAPES[stored.type](stored) : null;
  if (shape === null) return null;
  const status = stored.status === 'incomplete' ? (INCOMPLETE[stored.reason] ?? 'broken') : 'done';
  return { key: stored.id, id: stored.id, parts: [], status, ...shape, stored };
}

/** The visible fields of an item, by kind; null if the item cannot be shown. */
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

/** An item after an update, with the same status. */
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
