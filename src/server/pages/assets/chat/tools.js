// Client tool calls, which the page around the chat answers.

import { plain } from './words.js';

/**
 * @typedef {object} Call
 * @property {boolean} isPending
 * @property {string} name
 * @property {object} params
 * @property {unknown} output undefined while it is pending
 */

/** @param {object} stored an item of the type `client_tool_call` */
export function callOf({ status, name, arguments: params, output }) {
  return {
    isPending: status !== 'completed',
    name: typeof name === 'string' && name !== '' ? name : 'a tool',
    params: params ?? {},
    output,
  };
}

/** Maximum characters shown; longer texts are truncated. */
const MAX_SHOWN = 20_000;

/** Formats a value as indented JSON. */
export function shownJson(value) {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)} …` : text;
}

/** @typedef {(call: {name: string, params: object}) => unknown} Handler its result, or the result of its promise, is converted to JSON */

/**
 * @typedef {object} Progress of one call
 * @property {'idle' | 'running' | 'sending'} state
 * @property {string | null} error
 * @property {boolean} hasResult whether the handler has returned a result that is not sent yet
 */

/** @type {Progress} */
const WAITING = { state: 'idle', error: null, hasResult: false };

/** Runs the page's handler, at most once per call without the visitor's request. */
export class ToolRunner {
  /** By item: its progress, and its unsent result. */
  #calls = new Map();

  /**
   * @param {object} ports
   * @param {() => Handler | null} ports.handler returns the current handler
   * @param {(thread: string, item: string, result: unknown) => Promise<import('./api.js').ApiError | null>} ports.send resolves to null if the result was sent
   * @param {() => void} ports.onChange after each change
   */
  constructor({ handler, send, onChange }) {
    this.handler = handler;
    this.send = send;
    this.onChange = onChange;
  }

  get canRun() {
    return this.handler() !== null;
  }

  /** @returns {Progress} */
  progressOf(item) {
    const known = this.#calls.get(item);
    return known === undefined ? WAITING : { state: known.state, error: known.error, hasResult: known.result !== undefined };
  }

  /**
   * Handles a call at the end of a turn that this page started. If the handler fails or is missing, the workflow
   * receives the error, so that it does not wait for a page that cannot answer.
   * @param {{thread: string, id: string, call: Call}} about
   */
  async delivered(about) {
    if (this.#calls.has(about.id)) return;
    await this.#run(about, true);
  }

  /** Runs a call at the visitor's request, or sends its unsent result again. */
  async run(about) {
    const known = this.#calls.get(about.id);
    if (known !== undefined && known.state !== 'idle') return;
    if (known?.result === undefined) await this.#run(about, known?.isOwn ?? false);
    else await this.#send(about, known, known.result);
  }

  /** Skips a call at the visitor's request; ignores the result if it is running. */
  async skip(about) {
    const known = this.#calls.get(about.id);
    if (known?.state === 'sending') return;
    const entry = { state: 'sending', error: null, result: known?.result, isOwn: known?.isOwn ?? false };
    this.#calls.set(about.id, entry);
    await this.#send(about, entry, { error: 'skipped' });
  }

  async #run(about, isOwn) {
    const entry = { state: 'running', error: null, result: undefined, isOwn };
    this.#calls.set(about.id, entry);
    this.onChange();
    let result;
    try {
      result = await resultOf(this.handler(), about.call);
    } catch (error) {
      const text = error instanceof Error && error.message ? error.message : String(error);
      if (this.#calls.get(about.id) !== entry) return;
      if (!isOwn) {
        Object.assign(entry, { state: 'idle', error: text });
        this.onChange();
        return;
      }
      result = { error: text };
    }
    // The visitor may have skipped the call meanwhile.
    if (this.#calls.get(about.id) !== entry) return;
    entry.result = result;
    await this.#send(about, entry, result);
  }

  async #send({ thread, id }, entry, result) {
    Object.assign(entry, { state: 'sending', error: null });
    this.onChange();
    const error = await this.send(thread, id, result);
    Object.assign(entry, { state: 'idle', error: error === null ? null : plain(error) });
    if (error === null) entry.result = undefined;
    this.onChange();
  }
}

/** @returns {Promise<unknown>} the handler's result after a round trip through JSON */
async function resultOf(handler, { name, params }) {
  if (handler === null) throw new Error('The page has no handler for client tools.');
  // A handler may change its argument.
  const result = await handler({ name, params: structuredClone(params) });
  const text = JSON.stringify(result === undefined ? {} : result);
  if (text === undefined) throw new Error('The result of the handler is not JSON.');
  return JSON.parse(text);
}
