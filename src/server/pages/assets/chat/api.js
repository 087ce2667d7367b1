// What the page asks of the service. Paths begin where this file was loaded from, so that the service may stand below
// a path of its own.

import { postFile } from './attachments/transport.js';

const BASE = new URL('../../', import.meta.url);

/** The service did not do what was asked, or could not be reached. */
export class ApiError extends Error {
  /**
   * @param {{status: number, code: string, message?: string, retryAfter?: number, requestId?: string | null, stream?: string | null}} what
   * `status` is 0 when there was no answer at all; `retryAfter` is in seconds; `stream` is the id of the stream that has
   * what was asked for
   */
  constructor({ status, code, message, retryAfter, requestId, stream }) {
    super(message ?? code);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter ?? 0;
    this.requestId = requestId ?? null;
    this.stream = stream ?? null;
  }

  /** Whether the same request may succeed in a moment, without anybody changing anything. */
  get passes() {
    return this.status === 0 || [429, 502, 503, 504].includes(this.status);
  }
}

/** One workflow's chat, as this visitor. */
export class Api {
  /**
   * @param {string} workflow the workflow's UUID
   * @param {{tokens?: import('./tokens.js').Tokens | null, credentials?: 'same-origin' | 'omit'}} [access] how the service knows the
   * visitor: by session tokens, or by cookies unless they are omitted
   */
  constructor(workflow, { tokens = null, credentials = 'same-origin' } = {}) {
    this.workflow = workflow;
    this.tokens = tokens;
    this.credentials = credentials;
  }

  /** What anyone who may chat may know of the workflow. */
  async record() {
    return read(await this.#request(this.#own('api/chat/workflow'), { headers: { Accept: 'application/json' } }));
  }

  /** Everything that the visitor has with the chat, as lines of JSON. */
  async exportAll() {
    const response = await this.#request(this.#own('api/chat/me/export'), { headers: { Accept: 'application/x-ndjson' } });
    try {
      return await response.text();
    } catch {
      throw new ApiError({ status: 0, code: 'network' });
    }
  }

  /**
   * Has the service erase all of it.
   * @returns {Promise<{threads?: number, status?: 'erasing'}>}
   */
  async eraseAll() {
    return read(await this.#request(this.#own('api/chat/me'), { method: 'DELETE', headers: { Accept: 'application/json' } }));
  }

  #own(path) {
    return `${path}?workflow_id=${encodeURIComponent(this.workflow)}`;
  }

  /**
   * A request whose answer is JSON.
   * @param {string} type such as `threads.list`
   * @param {object} params
   */
  async ask(type, params, signal) {
    const response = await this.#post({ type, params }, { Accept: 'application/json' }, signal);
    return read(response);
  }

  /**
   * Begins a turn. The same key again is the same turn.
   * @returns {Promise<Response>} its stream
   */
  begin(type, params, key, signal) {
    const headers = { Accept: 'text/event-stream;dialect=chatkit', 'Idempotency-Key': key };
    return this.#post({ type, params }, headers, signal);
  }

  /**
   * A stream behind an event.
   * @param {string | null} after the id of the last event that was read
   * @returns {Promise<Response | null>} null when all of it was read
   */
  stream(id, after, signal) {
    const headers = { Accept: 'text/event-stream', ...(after ? { 'Last-Event-ID': after } : {}) };
    return unlessEmpty(this.#request(`api/chat/streams/${encodeURIComponent(id)}`, { headers, signal }));
  }

  /**
   * The stream of the turn that runs in a thread, from its first event.
   * @returns {Promise<Response | null>} null when none runs
   */
  running(thread, signal) {
    const headers = { Accept: 'text/event-stream' };
    return unlessEmpty(this.#request(`api/chat/threads/${encodeURIComponent(thread)}/stream`, { headers, signal }));
  }

  /** Stops the turn of a stream; as often as one likes. */
  async stop(id) {
    const response = await this.#request(`api/chat/streams/${encodeURIComponent(id)}/stop`, { method: 'POST' });
    return response.json();
  }

  /**
   * Uploads a file.
   * @param {Blob} file
   * @param {{onProgress: (part: number) => void, signal: AbortSignal}} how `part` is between 0 and 1
   * @returns {Promise<object>} the attachment
   */
  async upload(file, { onProgress, signal }) {
    const url = new URL('api/chat/upload', BASE);
    url.searchParams.set('workflow_id', this.workflow);
    const send = (headers) => postFile(url, file, { onProgress, signal, headers, credentials: this.credentials });
    let token = await this.#token();
    let answer = await send(authorization(token));
    if (token !== null && answer?.status === 401 && refusal(answer).code === 'chat.session_invalid') {
      token = await this.#token(token);
      answer = await send(authorization(token));
    }
    if (answer === null) throw new ApiError({ status: 0, code: 'network' });
    if (answer.status < 200 || answer.status > 299) throw refusal(answer);
    return answer.body;
  }

  #post(body, headers, signal) {
    return this.#request('api/chat', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ ...body, workflow_id: this.workflow, metadata: { workflow_id: this.workflow } }),
      signal,
    });
  }

  /** A request; once more with another token if the service does not accept the first one. */
  async #request(path, options) {
    const token = await this.#token();
    try {
      return await this.#fetch(path, options, token);
    } catch (error) {
      if (error.code !== 'chat.session_invalid' || token === null) throw error;
      return this.#fetch(path, options, await this.#token(token));
    }
  }

  async #fetch(path, options, token) {
    const headers = { ...options.headers, ...authorization(token) };
    let response;
    try {
      response = await fetch(new URL(path, BASE), { credentials: this.credentials, cache: 'no-store', ...options, headers });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError({ status: 0, code: 'network' });
    }
    if (response.ok) return response;
    const body = await response.json().catch(() => null);
    throw refusal({ status: response.status, header: (name) => response.headers.get(name), body });
  }

  /** The session token; null if the visitor is known otherwise. `refused`: one that the service has not accepted. */
  async #token(refused = null) {
    if (this.tokens === null) return null;
    try {
      return await this.tokens.token(refused);
    } catch {
      throw new ApiError({ status: 0, code: 'chat.token_missing' });
    }
  }
}

/** The header of a token. */
function authorization(token) {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** The JSON of an answer; the connection may end before its last byte. */
async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError({ status: 0, code: 'network' });
  }
}

async function unlessEmpty(answer) {
  const response = await answer;
  return response.status === 204 ? null : response;
}

/** The error of an answer; a proxy may have sent it instead of the service. */
function refusal({ status, header, body }) {
  const detail = body?.detail ?? {};
  const first = Array.isArray(detail.errors) ? detail.errors[0]?.message : undefined;
  return new ApiError({
    status,
    code: typeof detail.code === 'string' ? detail.code : `http.${status}`,
    message: [detail.message, first].filter(Boolean).join(' '),
    retryAfter: Number(header('Retry-After')) || 0,
    requestId: detail.request_id ?? header('X-Request-Id'),
    stream: typeof detail.stream_id === 'string' ? detail.stream_id : null,
  });
}
