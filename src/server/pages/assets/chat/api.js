// The chat API client. Paths are relative to the URL of this file, so the service may be mounted below a path prefix.

import { postFile } from './attachments/transport.js';

const BASE = new URL('../../', import.meta.url);

/** A request that the service rejected, or that did not reach it. */
export class ApiError extends Error {
  /**
   * @param {{status: number, code: string, message?: string, retryAfter?: number, requestId?: string | null, stream?: string | null}} what
   * `status` is 0 without a response; `retryAfter` is in seconds; `stream` is the id of the stream that continues the
   * turn, if another request has already answered it
   */
  constructor({ status, code, message, retryAfter, requestId, stream }) {
    super(message ?? code);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter ?? 0;
    this.requestId = requestId ?? null;
    this.stream = stream ?? null;
  }

  /** Whether the same request may succeed when it is retried later. */
  get passes() {
    return this.status === 0 || [429, 502, 503, 504].includes(this.status);
  }
}

/** The chat of one workflow, as this visitor. */
export class Api {
  /**
   * @param {string} workflow the workflow's UUID
   * @param {{tokens?: import('./tokens.js').Tokens | null, credentials?: 'same-origin' | 'omit'}} [access] how the service identifies
   * the visitor: by session tokens, or by cookies unless they are omitted
   */
  constructor(workflow, { tokens = null, credentials = 'same-origin' } = {}) {
    this.workflow = workflow;
    this.tokens = tokens;
    this.credentials = credentials;
  }

  /** The workflow record that the service shows to every visitor of the chat. */
  async record() {
    return read(await this.#request(this.#own('api/chat/workflow'), { headers: { Accept: 'application/json' } }));
  }

  /** Exports all data of the visitor in this chat, as lines of JSON. */
  async exportAll() {
    const response = await this.#request(this.#own('api/chat/me/export'), { headers: { Accept: 'application/x-ndjson' } });
    try {
      return await response.text();
    } catch {
      throw new ApiError({ status: 0, code: 'network' });
    }
  }

  /**
   * Erases all data of the visitor in this chat.
   * @returns {Promise<{threads?: number, status?: 'erasing'}>}
   */
  async eraseAll() {
    return read(await this.#request(this.#own('api/chat/me'), { method: 'DELETE', headers: { Accept: 'application/json' } }));
  }

  #own(path) {
    return `${path}?workflow_id=${encodeURIComponent(this.workflow)}`;
  }

  /**
   * Sends a request whose response is JSON.
   * @param {string} type such as `threads.list`
   * @param {object} params
   */
  async ask(type, params, signal) {
    const response = await this.#post({ type, params }, { Accept: 'application/json' }, signal);
    return read(response);
  }

  /**
   * Starts a turn. A second call with the same key returns the same turn.
   * @returns {Promise<Response>} its stream
   */
  begin(type, params, key, signal) {
    const headers = { Accept: 'text/event-stream;dialect=chatkit', 'Idempotency-Key': key };
    return this.#post({ type, params }, headers, signal);
  }

  /**
   * Opens a stream after an event.
   * @param {string | null} after the id of the last event that was read
   * @returns {Promise<Response | null>} null after the last event
   */
  stream(id, after, signal) {
    const headers = { Accept: 'text/event-stream', ...(after ? { 'Last-Event-ID': after } : {}) };
    return unlessEmpty(this.#request(`api/chat/streams/${encodeURIComponent(id)}`, { headers, signal }));
  }

  /**
   * Opens the stream of a thread's running turn, from its first event.
   * @returns {Promise<Response | null>} null if no turn is running
   */
  running(thread, signal) {
    const headers = { Accept: 'text/event-stream' };
    return unlessEmpty(this.#request(`api/chat/threads/${encodeURIComponent(thread)}/stream`, { headers, signal }));
  }

  /** Stops the turn of a stream. Idempotent. */
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

  /** Sends a request, and repeats it once with a new token if the service rejects the token. */
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

  /** The session token; null if the visitor is identified by cookies. `refused`: a token that the service has rejected. */
  async #token(refused = null) {
    if (this.tokens === null) return null;
    try {
      return await this.tokens.token(refused);
    } catch {
      throw new ApiError({ status: 0, code: 'chat.token_missing' });
    }
  }
}

/** The Authorization header for a token. */
function authorization(token) {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** Reads the JSON of a response; the connection may end before the last byte. */
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

/** The error in a response, which a proxy may have sent instead of the service. */
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
