// One conversation as it goes on: what the visitor does, and what the service says to it.

import { ApiError } from './api.js';
import * as conversation from './conversation.js';
import { follow } from './follow.js';

/** Messages that are read at once. */
const PAGE = 40;
/** Between two requests to stop that did not get through, in ms. */
const STOP_AGAIN = 500;

/** What is said to have a reply continued. */
const CONTINUE = 'Continue.';

/**
 * @typedef {object} Turn a stream that is read, or about to be
 * @property {'said' | 'again' | 'joined'} kind
 * @property {AbortController} abort
 * @property {string | null} stream its id, once it is known
 * @property {boolean} stopped the visitor wants it to end
 * @property {boolean} quiet nobody asked for it, so that its failure is not told
 */

export class Session {
  /**
   * @param {import('./api.js').Api} api
   * @param {(state: conversation.Conversation) => void} onChange after each change
   */
  constructor(api, onChange) {
    this.api = api;
    this.onChange = onChange;
    this.state = conversation.empty();
    /** @type {Turn | null} */
    this.turn = null;
    this.ended = false;
    /** What was said last, until the service has taken it. */
    this.unsent = null;
    /** Whether a parked turn is left alone while another message is answered. */
    this.parked = false;
  }

  /** Nothing more changes. */
  end() {
    this.ended = true;
    this.turn?.abort.abort();
  }

  /** Says something; the first thing makes the thread. */
  async say(text) {
    if (!this.#free()) return;
    this.parked = this.state.phase === 'parked';
    await this.#send({ key: crypto.randomUUID(), text });
  }

  /** Sends what was not sent, or has what was said last answered again. */
  async again() {
    if (!this.#free()) return;
    this.parked = this.state.phase === 'parked';
    if (this.unsent !== null) {
      this.#set(conversation.withoutUnsent(this.state));
      await this.#send(this.unsent);
      return;
    }
    const said = this.state.items.findLast(({ role, id }) => role === 'user' && id !== null);
    if (!said || this.state.thread === null) return;
    this.#set({ ...this.state, phase: 'sending', failure: null });
    const [params, key] = [{ thread_id: this.state.thread.id, item_id: said.id }, crypto.randomUUID()];
    const turn = this.#turn('again');
    turn.item = said.id;
    await this.#follow(turn, (signal) => this.api.begin('threads.retry_after_item', params, key, signal));
  }

  /** Whether another message can be sent. */
  #free() {
    return this.state.phase === 'idle' || this.state.phase === 'parked';
  }

  /** Has a reply that ended early continued. */
  async goOn() {
    await this.say(CONTINUE);
  }

  /** Stops the reply. What was said so far stays. */
  async stop() {
    const { turn } = this;
    if (turn === null || turn.stopped) return;
    turn.stopped = true;
    if (turn.stream === null && this.state.trouble !== null) {
      // It was never taken, as far as anybody knows here.
      turn.abort.abort();
      return;
    }
    this.#set({ ...this.state, phase: 'stopping' });
    if (turn.stream !== null) await this.#stop(turn);
  }

  /** Goes on with a thread: what was said in it, and the turn that runs in it. */
  async open(id) {
    this.parked = false;
    this.#set({ ...conversation.empty(), thread: { id }, phase: 'loading' });
    await this.#join(this.#turn('joined'));
  }

  /** Looks whether something happened in the thread elsewhere. */
  async refresh() {
    const { phase, thread } = this.state;
    if (phase === 'idle' && thread !== null && this.turn === null) await this.#join(this.#turn('joined', true));
  }

  /** Reads what was said before that. */
  async earlier() {
    const { thread, before } = this.state;
    if (thread === null || before === null) return;
    try {
      const page = await this.#page(thread.id, before);
      this.#set(conversation.withEarlier(this.state, page.items, page.before));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#set({ ...this.state, failure: { code: error.code, message: error.message, retry: null } });
    }
  }

  /** The thread has a new title. */
  renamed(title) {
    if (this.state.thread !== null) this.#set({ ...this.state, thread: { ...this.state.thread, title } });
  }

  #turn(kind, quiet = false) {
    this.turn?.abort.abort();
    this.turn = { kind, abort: new AbortController(), stream: null, stopped: false, quiet };
    return this.turn;
  }

  async #send(unsent) {
    this.unsent = unsent;
    const { key, text } = unsent;
    const { thread } = this.state;
    this.#set(conversation.say(this.state, key, text));
    const input = { content: [{ type: 'input_text', text }], attachments: [], quoted_text: null, inference_options: {} };
    const [type, params] =
      thread === null ? ['threads.create', { input }] : ['threads.add_user_message', { thread_id: thread.id, input }];
    await this.#follow(this.#turn('said'), (signal) => this.api.begin(type, params, key, signal));
  }

  /** The stream first: a turn that ends between the two is then among the messages. */
  async #join(turn) {
    const { id } = this.state.thread;
    await this.#follow(turn, async (signal) => {
      const running = await this.api.running(id, signal);
      const [thread, page] = await Promise.all([
        this.api.ask('threads.get_by_id', { thread_id: id }, signal),
        this.#page(id, null, signal),
      ]);
      this.#set(conversation.withThread(this.state, thread, page.items, page.before));
      return running;
    });
  }

  async #page(thread, after, signal) {
    const params = { thread_id: thread, limit: PAGE, order: 'desc', ...(after ? { after } : {}) };
    const page = await this.api.ask('items.list', params, signal);
    return { items: page.data.toReversed(), before: page.has_more ? (page.after ?? null) : null };
  }

  /** Reads one turn to its end, and after it whatever else runs in the thread. */
  async #follow(turn, open) {
    const { signal } = turn.abort;
    try {
      const read = await follow({
        open: () => open(signal),
        resume: (id, after) => this.api.stream(id, after, signal),
        onStream: (id) => this.#began(turn, id),
        onEvent: (event) => this.#heard(turn, event),
        onLink: ({ error }) => this.#troubled(turn, error),
        signal,
      });
      if (this.turn !== turn) return;
      this.turn = null;
      // Another device may have said more, or seen less of it go.
      this.#set(conversation.over(this.state));
      if (read && (turn.kind !== 'said' || this.parked)) await this.#join(this.#turn('joined', true));
    } catch (error) {
      if (this.turn !== turn) return;
      this.turn = null;
      if (!this.ended) await this.#broke(turn, error);
    }
  }

  #heard(turn, event) {
    // What a joined stream tells of the thread may be older than what was read.
    const old = turn.kind === 'joined' && (event.type === 'thread.created' || event.type === 'thread.updated');
    if (!old && this.turn === turn) this.#set(conversation.apply(this.state, event));
  }

  #troubled(turn, error) {
    const trouble = error ? (error.status === 0 ? 'network' : 'service') : null;
    if (this.turn === turn && trouble !== this.state.trouble) this.#set({ ...this.state, trouble });
  }

  #began(turn, id) {
    const first = turn.stream === null;
    turn.stream = id;
    if (!first) return;
    this.unsent = null;
    // Only now is it sure that what stands behind the message is out.
    const state = turn.kind === 'again' ? conversation.upTo(this.state, turn.item) : this.state;
    const phase = turn.stopped ? 'stopping' : turn.kind === 'joined' ? 'replying' : state.phase;
    this.#set({ ...state, phase });
    if (turn.stopped) this.#stop(turn);
  }

  async #stop(turn) {
    while (this.turn === turn) {
      try {
        await this.api.stop(turn.stream);
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || !error.passes) return;
        await new Promise((resolve) => setTimeout(resolve, STOP_AGAIN));
      }
    }
  }

  async #broke(turn, error) {
    const known = error instanceof ApiError;
    if (!known && !turn.abort.signal.aborted) console.error(error);
    const { code, message, status, requestId } = known ? error : new ApiError({ status: 0, code: turn.abort.signal.aborted ? 'network' : 'page.failed' });
    const { thread } = this.state;
    // The events of a turn are kept for a day, its messages as long as the thread.
    if (code === 'stream.not_found' && thread !== null) {
      await this.#join(this.#turn('joined', true));
      return;
    }
    if (turn.quiet) {
      this.#set(conversation.over(this.state));
      return;
    }
    if (code === 'thread.not_found') {
      // What was not sent may begin another one.
      this.#set({ ...this.state, thread: null });
      if (this.unsent !== null) this.unsent = { ...this.unsent, key: crypto.randomUUID() };
    }
    const retry = this.unsent !== null ? 'send' : turn.kind === 'again' && this.state.thread !== null ? 'answer' : null;
    this.#set(conversation.refuse(this.state, { code, message, requestId: status >= 500 ? requestId : null, retry }));
    // The thread was locked elsewhere: its status is read. Or the message was refused, and the reply that is parked continues.
    const isLocked = code === 'thread.locked' || code === 'thread.closed';
    if ((isLocked || this.parked) && this.state.thread !== null && turn.kind !== 'joined') await this.#join(this.#turn('joined', true));
  }

  #set(state) {
    if (this.ended) return;
    this.state = state;
    this.onChange(state);
  }
}
