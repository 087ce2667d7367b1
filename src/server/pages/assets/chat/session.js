// The live session of one conversation: sends the visitor's actions to the service, and applies its events to the state.

import { ApiError } from './api.js';
import * as conversation from './conversation.js';
import { follow } from './follow.js';

/** Items per page. */
const PAGE = 40;
/** Retry delay of a failed stop request, in ms. */
const STOP_AGAIN = 500;

/** The message that continues a reply. */
const CONTINUE = 'Continue.';

/**
 * @typedef {object} Turn a stream that is being read, or is about to be read
 * @property {'said' | 'again' | 'joined' | 'action' | 'answer' | 'output'} kind
 * @property {AbortController} abort
 * @property {string | null} stream its id, once it is known
 * @property {boolean} stopped the visitor wants it to end
 * @property {boolean} quiet started without an action of the visitor; its failure is not shown
 * @property {string | null} call the last client tool call in it
 * @property {(error: ApiError | null) => void} settle resolves the caller's promise; later calls have no effect
 */

/** These requests are complete when the service has accepted them; an action is complete when its turn ends. */
const ACCEPTED_AT_ONCE = ['answer', 'output'];
/** Error codes that mean that the page shows an old state of the thread. */
const STALE = ['thread.locked', 'thread.closed', 'item.not_found', 'item.not_pending'];

export class Session {
  /** Requests that wait for the current turn to end, in order. */
  #waiting = [];
  /** The streams of the turns that this page started. */
  #own = new Set();

  /**
   * @param {import('./api.js').Api} api
   * @param {(state: conversation.Conversation) => void} onChange after each change
   * @param {(item: conversation.Item) => void} [onCall] called when a turn that this page started ends with a client tool call
   * @param {(effect: {name: string, data: object}) => void} [onEffect] called for a client effect in a turn
   */
  constructor(api, onChange, onCall = () => {}, onEffect = () => {}) {
    this.api = api;
    this.onChange = onChange;
    this.onCall = onCall;
    this.onEffect = onEffect;
    this.state = conversation.empty();
    /** @type {Turn | null} */
    this.turn = null;
    this.ended = false;
    /** The last message, until the service has accepted it. */
    this.unsent = null;
    /** Whether the current request was sent while another turn was parked. */
    this.parked = false;
  }

  /** Ends the session; the state does not change any more. */
  end() {
    this.ended = true;
    this.turn?.abort.abort();
    for (const { resolve } of this.#waiting.splice(0)) resolve(dropped());
  }

  /** Sends a message; the first message creates the thread. */
  async say(text, attachments = []) {
    if (!this.isFree) return;
    this.parked = this.state.phase === 'parked';
    await this.#send({ key: crypto.randomUUID(), text, attachments });
  }

  /** Sends the unsent message again, or requests another reply to the last message. */
  async again() {
    if (!this.isFree) return;
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

  /**
   * Runs a widget's action: in a turn, or at once if it does not stream. A failure becomes part of the state.
   * @param {import('./widget/action.js').Action} action
   * @param {{itemId: string}} about the widget's item
   * @returns {Promise<ApiError | null>} when it is complete; never rejects
   */
  action({ type, payload, streaming }, { itemId }) {
    const params = { item_id: itemId, action: { type, payload } };
    return streaming ? this.#request({ kind: 'action', type: 'threads.custom_action', params }) : this.#actAtOnce(params);
  }

  /**
   * Answers questions.
   * @param {{status: 'answered' | 'skipped', answers: object}} input
   * @returns {Promise<ApiError | null>} when the service has accepted the answers; never rejects
   */
  answer(itemId, input) {
    return this.#request({ kind: 'answer', type: 'threads.add_structured_input', params: { item_id: itemId, input } });
  }

  /**
   * Sends the output of the client tool call that the conversation ends with.
   * @returns {Promise<ApiError | null>} when the service has accepted it; never rejects
   */
  output(itemId, result) {
    // The request does not name the call; the service takes the last item.
    const isValid = () => conversation.pendingCall(this.state)?.id === itemId;
    return this.#request({ kind: 'output', type: 'threads.add_client_tool_output', params: { result }, item: itemId, isValid });
  }

  /** Whether another message can be sent. */
  get isFree() {
    return this.state.phase === 'idle' || this.state.phase === 'parked';
  }

  /** Continues a reply that ended early. */
  async goOn() {
    await this.say(CONTINUE);
  }

  /** Stops the reply. The text so far stays. */
  async stop() {
    const { turn } = this;
    if (turn === null || turn.stopped) return;
    turn.stopped = true;
    if (turn.stream === null && this.state.trouble !== null) {
      // The service has not confirmed the turn, so there is no stream to stop.
      turn.abort.abort();
      return;
    }
    this.#set({ ...this.state, phase: 'stopping' });
    if (turn.stream !== null) await this.#stop(turn);
  }

  /** Opens a thread: reads its items and its running turn. */
  async open(id) {
    this.parked = false;
    this.#set({ ...conversation.empty(), thread: { id }, phase: 'loading' });
    await this.#join(this.#turn('joined'));
  }

  /** Checks the thread for changes from other tabs and devices. */
  async refresh() {
    const { phase, thread } = this.state;
    if (phase === 'idle' && thread !== null && this.turn === null) await this.#join(this.#turn('joined', true));
  }

  /** Reads the next older page. */
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

  /** Sets the new title of the thread. */
  renamed(title) {
    if (this.state.thread !== null) this.#set({ ...this.state, thread: { ...this.state.thread, title } });
  }

  #turn(kind, quiet = false) {
    this.turn?.abort.abort();
    this.turn = { kind, abort: new AbortController(), stream: null, stopped: false, quiet, call: null, settle: () => {} };
    return this.turn;
  }

  /** Starts a turn after the current one has ended. */
  #request(request) {
    if (this.ended) return Promise.resolve(dropped());
    return new Promise((resolve) => {
      this.#waiting.push({ ...request, resolve });
      this.#next();
    });
  }

  /** Starts the next waiting turn. */
  #next() {
    while (this.isFree && this.#waiting.length > 0) {
      const { kind, type, params, item, isValid = () => true, resolve } = this.#waiting.shift();
      const { thread } = this.state;
      const code = thread === null ? 'thread.not_found' : isValid() ? null : 'item.not_pending';
      if (code !== null) {
        resolve(new ApiError({ status: 0, code }));
        continue;
      }
      this.parked = this.state.phase === 'parked';
      this.#set({ ...this.state, phase: 'sending', failure: null, progress: null });
      const [turn, key] = [this.#turn(kind), crypto.randomUUID()];
      Object.assign(turn, { item, result: params.result, settle: resolve });
      this.#follow(turn, (signal) => this.api.begin(type, { thread_id: thread.id, ...params }, key, signal));
    }
  }

  async #actAtOnce(params) {
    const { thread } = this.state;
    try {
      const { updated_item: item } = await this.api.ask('threads.sync_custom_action', { thread_id: thread?.id, ...params });
      const failure = this.state.failure?.isOfAction ? null : this.state.failure;
      this.#set({ ...(item ? conversation.withItem(this.state, item) : this.state), failure });
      return null;
    } catch (error) {
      const known = this.#known(error);
      const { code, message, status, requestId } = known;
      const failure = { code, message, requestId: status >= 500 ? requestId : null, retry: null, isOfAction: true };
      this.#set({ ...this.state, failure });
      // A turn that is being read also ends with a new state.
      if (STALE.includes(code)) await this.refresh();
      return known;
    }
  }

  async #send(unsent) {
    this.unsent = unsent;
    const { key, text, attachments } = unsent;
    const { thread } = this.state;
    this.#set(conversation.say(this.state, key, text, attachments));
    const content = text === '' ? [] : [{ type: 'input_text', text }];
    const input = { content, attachments: attachments.map(({ id }) => id), quoted_text: null, inference_options: {} };
    const [type, params] =
      thread === null ? ['threads.create', { input }] : ['threads.add_user_message', { thread_id: thread.id, input }];
    await this.#follow(this.#turn('said'), (signal) => this.api.begin(type, params, key, signal));
  }

  /**
   * Opens the stream before it reads the items: if the turn ends in between, the items include its messages.
   * @param {string | null} stream the stream to read first; null for the running turn's stream
   */
  async #join(turn, stream = null) {
    const { id } = this.state.thread;
    await this.#follow(turn, async (signal) => {
      const running = (stream !== null && (await this.#stream(stream, signal))) || (await this.api.running(id, signal));
      const [thread, page] = await Promise.all([
        this.api.ask('threads.get_by_id', { thread_id: id }, signal),
        this.#page(id, null, signal),
      ]);
      this.#set(conversation.withThread(this.state, thread, page.items, page.before));
      return running;
    });
  }

  async #stream(id, signal) {
    try {
      return await this.api.stream(id, null, signal);
    } catch (error) {
      // Its events have expired.
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  async #page(thread, after, signal) {
    const params = { thread_id: thread, limit: PAGE, order: 'desc', ...(after ? { after } : {}) };
    const page = await this.api.ask('items.list', params, signal);
    return { items: page.data.toReversed(), before: page.has_more ? (page.after ?? null) : null };
  }

  /** Reads one turn to its end, then joins the next running turn of the thread. */
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
      turn.settle(null);
      if (this.turn !== turn) return;
      this.turn = null;
      this.#set(conversation.over(this.state));
      this.#called(turn);
      this.#next();
      // Another device may have started a turn or stopped this one.
      if (read && this.turn === null && (turn.kind !== 'said' || this.parked)) await this.#join(this.#turn('joined', true));
    } catch (error) {
      if (this.turn === turn) {
        this.turn = null;
        if (!this.ended) await this.#broke(turn, error);
      }
      turn.settle(this.ended && turn.stream === null ? dropped() : null);
    }
  }

  /** Delivers the client tool call at the end of a turn that this page started. */
  #called(turn) {
    const item = conversation.pendingCall(this.state);
    if (item !== null && item.id === turn.call && this.#own.has(turn.stream) && !this.ended) this.onCall(item);
  }

  #heard(turn, event) {
    // The thread record in a joined stream may be older than the one that was read.
    const old = turn.kind === 'joined' && (event.type === 'thread.created' || event.type === 'thread.updated');
    if (old || this.turn !== turn) return;
    if (event.type === 'thread.item.done') turn.call = event.item.type === 'client_tool_call' ? event.item.id : null;
    // A retry would answer the last message again, not repeat the action.
    const cannotRepeat = turn.kind === 'action' && event.type === 'error';
    // A joined stream begins with events that another tab, or this one before a reload, has received.
    if (event.type === 'client_effect' && turn.kind !== 'joined') this.onEffect({ name: event.name, data: event.data ?? {} });
    this.#set(conversation.apply(this.state, cannotRepeat ? { ...event, allow_retry: false } : event));
    if (this.state.phase !== 'parked') return;
    turn.settle(null);
    this.#next();
  }

  #troubled(turn, error) {
    const trouble = error ? (error.status === 0 ? 'network' : 'service') : null;
    if (this.turn === turn && trouble !== this.state.trouble) this.#set({ ...this.state, trouble });
  }

  #began(turn, id) {
    const first = turn.stream === null;
    turn.stream = id;
    if (turn.kind !== 'joined') this.#own.add(id);
    if (ACCEPTED_AT_ONCE.includes(turn.kind)) turn.settle(null);
    if (!first) return;
    if (turn.kind === 'said') this.unsent = null;
    const state = this.#accepted(turn);
    const phase = turn.stopped ? 'stopping' : turn.kind === 'joined' ? 'replying' : state.phase;
    this.#set({ ...state, phase });
    if (turn.stopped) this.#stop(turn);
  }

  /** The state after the service has accepted a turn. */
  #accepted({ kind, item, result }) {
    // Remove the later items only now: until here the service could reject the retry.
    if (kind === 'again') return conversation.upTo(this.state, item);
    return kind === 'output' ? conversation.withOutput(this.state, item, result) : this.state;
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

  /** Converts an error to an `ApiError`; other errors are bugs of the page. */
  #known(error) {
    if (error instanceof ApiError) return error;
    console.error(error);
    return new ApiError({ status: 0, code: 'page.failed' });
  }

  async #broke(turn, error) {
    const known = turn.abort.signal.aborted && !(error instanceof ApiError) ? new ApiError({ status: 0, code: 'network' }) : this.#known(error);
    const { code, message, status, requestId } = known;
    turn.settle(known);
    const { thread } = this.state;
    // The service keeps the events of a turn for a day, and its messages as long as the thread.
    if (code === 'stream.not_found' && thread !== null) {
      await this.#join(this.#turn('joined', true));
      return;
    }
    if (turn.quiet) {
      this.#set(conversation.over(this.state));
      this.#next();
      return;
    }
    if (code === 'thread.not_found') {
      // The unsent message may start another thread.
      this.#set({ ...this.state, thread: null });
      if (this.unsent !== null) this.unsent = { ...this.unsent, key: crypto.randomUUID() };
    }
    // The form or the call shows the error if its answer was not accepted.
    const isShownElsewhere = ACCEPTED_AT_ONCE.includes(turn.kind) && turn.stream === null;
    const retry = this.unsent !== null ? 'send' : turn.kind === 'again' && this.state.thread !== null ? 'answer' : null;
    const failure = isShownElsewhere ? null : { code, message, requestId: status >= 500 ? requestId : null, retry };
    this.#set(conversation.refuse(this.state, failure));
    this.#next();
    // Read the thread again if it was changed elsewhere, or if the message was rejected while another turn is parked.
    const isStale = STALE.includes(code) || this.parked;
    if (isStale && this.turn === null && this.state.thread !== null && turn.kind !== 'joined') await this.#join(this.#turn('joined', true), known.stream);
  }

  #set(state) {
    if (this.ended) return;
    this.state = state;
    this.onChange(state);
  }
}

/** The error of a request that was dropped because the visitor left its conversation. */
function dropped() {
  return new ApiError({ status: 0, code: 'request.dropped' });
}
