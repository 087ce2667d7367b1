// The API client of the trainings page. The API accepts no cookies: on a service that requires authentication the page exchanges
// the session cookie for an access token, which stays in this module.

const BASE = new URL('../../', import.meta.url);

/** Time before its expiry at which a token is replaced, in ms. */
const EARLY = 60_000;

/** A request that the service rejected, or that did not reach it. */
export class ApiError extends Error {
  /** @param {{status: number, code: string, message?: string, retryAfter?: number}} what `status` is 0 without a response; `retryAfter` in seconds */
  constructor({ status, code, message, retryAfter }) {
    super(message ?? code);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter ?? 0;
  }

  /** Whether the same request may succeed when it is retried later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Access tokens of a signed-in browser. */
export class PageTokens {
  #token = null;
  #until = 0;
  #asking = null;
  #active = true;

  /** Records an action of the user: extends the sign-in by another hour. */
  touched() {
    this.#active = true;
  }

  /** A token that does not expire soon; concurrent requests share one. */
  async current() {
    if (this.#token !== null && performance.now() < this.#until) return this.#token;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** Forgets a token that the service has rejected. */
  drop(token) {
    if (token === this.#token) this.#token = null;
  }

  async #ask() {
    const active = this.#active;
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
    const response = await reach('api/auth/token', { method: 'POST', headers, body: JSON.stringify({ active }) });
    const { access_token: token, expires_in: seconds } = await response.json();
    this.#active = false;
    this.#token = token;
    this.#until = performance.now() + Math.max(seconds * 1000 - EARLY, 0);
    return token;
  }
}

/** The trainings of one workflow. */
export class Api {
  /**
   * @param {string} workflow its UUID
   * @param {PageTokens | null} tokens null if the service requires no authentication
   */
  constructor(workflow, tokens) {
    this.tokens = tokens;
    this.root = `api/workflows/${encodeURIComponent(workflow)}`;
  }

  /** The runs of the workflow, newest first. */
  runs({ limit = 30, cursor = null } = {}) {
    return this.#get(`${this.root}/trainer/runs`, { limit, cursor });
  }

  record(run) {
    return this.#get(this.#run(run), {});
  }

  candidates(run, { limit = 50, cursor = null } = {}) {
    return this.#get(`${this.#run(run)}/candidates`, { limit, cursor });
  }

  /** @param {{candidate?: number | null, case?: number | null, split?: string | null, failed?: boolean | null, trace?: boolean, limit?: number, cursor?: string | null}} filter */
  cases(run, filter) {
    return this.#get(`${this.#run(run)}/cases`, filter);
  }

  checkpoints(limit = 200) {
    return this.#get(`${this.root}/trainer/checkpoints`, { limit });
  }

  /** @param {'pause' | 'resume' | 'cancel'} what */
  async control(run, what) {
    return (await this.#request(`${this.#run(run)}/${what}`, { method: 'POST', headers: JSON_ANSWER })).json();
  }

  /** Stores a new version with the prompts of a checkpoint. */
  async use(checkpoint) {
    const headers = { ...JSON_ANSWER, 'Content-Type': 'application/json' };
    const response = await this.#request(`${this.root}/versions`, { method: 'POST', headers, body: JSON.stringify({ checkpoint }) });
    return { created: response.status === 201, ...(await response.json()) };
  }

  /** @returns {Promise<string>} the report as an HTML page */
  async report(run) {
    return (await this.#request(`${this.#run(run)}/report?format=html`, { headers: { Accept: 'text/html' } })).text();
  }

  /**
   * Opens the event stream after an event.
   * @param {string | null} after the id of an event
   * @returns {Promise<Response | null>} null if the run has ended and there are no more events
   */
  async events(run, after, signal) {
    const headers = { Accept: 'text/event-stream', ...(after ? { 'Last-Event-ID': after } : {}) };
    const response = await this.#request(`${this.#run(run)}/events`, { headers, signal });
    return response.status === 204 ? null : response;
  }

  #run(run) {
    return `${this.root}/trainer/runs/${encodeURIComponent(run)}`;
  }

  async #get(path, query) {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return (await this.#request(text ? `${path}?${text}` : path, { headers: JSON_ANSWER })).json();
  }

  /** Sends a request, and repeats it once with a new token if the token has expired. */
  async #request(path, init) {
    if (this.tokens === null) return reach(path, init);
    for (let attempt = 0; ; attempt += 1) {
      const token = await this.tokens.current();
      try {
        return await reach(path, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } });
      } catch (failure) {
        if (attempt > 0 || failure?.status !== 401) throw failure;
        this.tokens.drop(token);
      }
    }
  }
}

const JSON_ANSWER = { Accept: 'application/json' };

async function reach(path, init) {
  let response;
  try {
    response = await fetch(new URL(path, BASE), { credentials: 'same-origin', cache: 'no-store', ...init });
  } catch (failure) {
    init.signal?.throwIfAborted();
    throw new ApiError({ status: 0, code: 'network' });
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  const { code = `http.${response.status}`, message, errors } = answer?.detail ?? {};
  const problem = errors?.[0] ? `${message ?? ''} ${errors[0].pointer}: ${errors[0].message}`.trim() : message;
  const retryAfter = Number(response.headers.get('Retry-After')) || 0;
  throw new ApiError({ status: response.status, code, message: problem, retryAfter });
}
