// Client tools: calls that the page around the chat answers.

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

/** Longer texts are cut. */
const MAX_SHOWN = 20_000;

/** A value as JSON, for people to read. */
export function shownJson(value) {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)} …` : text;
}

/** @typedef {(call: {name: string, params: object}) => unknown} Handler its result, or a promise of it, becomes JSON */

/**
 * @typedef {object} Progress of one call
 * @property {'idle' | 'running' | 'sending'} state
 * @property {string | null} error
 * @property {boolean} hasResult whether the handler has finished, and its result is not sent
 */

/** @type {Progress} */
const WAITING = { state: 'idle', error: null, hasResult: false };

/** Runs the handler of the page, at most once by itself for each call. */
export class ToolRunner {
  /** By item: its progress, and the result that is not sent. */
  #calls = new Map();

  /**
   * @param {object} ports
   * @param {() => Handler | null} ports.handler the current one
   * @param {(thread: string, item: string, result: unknown) => Promise<import('./api.js').ApiError | null>} ports.send null if it was sent
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
   * A turn that this page started has ended with a call. If the handler fails or is missing, the workflow receives
   * the error, so that it does not wait for a page that cannot answer.
   * @param {{thread: string, id: string, call: Call}} about
   */
  async delivered(about) {
    if (this.#calls.has(about.id)) return;
    await this.#run(about, true);
  }

  /** The visitor wants a call to run; a result that could not be sent is sent again. */
  async run(about) {
    const known = this.#calls.get(about.id);
    if (known !== undefined && known.state !== 'idle') return;
    if (known?.result === undefined) await this.#run(about, known?.isOwn ?? false);
    else await this.#send(about, known, known.result);
  }

  /** The visitor does not want a call to run; the result of one that runs is ignored. */
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
    // The visitor may have skipped it meanwhile.
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

/** @returns {Promise<unknown>} what JSON keeps of the handler's result */
async function resultOf(handler, { name, params }) {
  if (handler === null) throw new Error('The page has no handler for client tools.');
  // A handler may change what it receives.
  const result = await handler({ name, params: structuredClone(params) });
  const text = JSON.stringify(result === undefined ? {} : result);
  if (text === undefined) throw new Error('The result of the handler is not JSON.');
  return JSON.parse(text);
}
