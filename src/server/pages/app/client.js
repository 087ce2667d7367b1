// What a page of a hosted app calls: runs of workflows, records of collections, sign-in. Served as /__service/client.js; types are in
// client.d.ts.

const BASE = new URL('.', import.meta.url);
const ENDED = ['succeeded', 'failed', 'timed_out', 'cancelled'];
/** How often a request is sent again after a network error. */
const RETRIES = 5;
/** A connection that lasted so long was a good one, in ms. */
const LASTING = 5_000;
/** Longest wait before a retry, in ms. */
const LONGEST_WAIT = 10_000;

/** An answer that is not a success, or a run that did not succeed (status 0). */
export class ServiceError extends Error {
  constructor(status, detail = {}, retryAfter = null) {
    super(detail.message || `The service answered with status ${status}.`);
    this.name = 'ServiceError';
    this.code = detail.code || 'internal';
    this.status = status;
    this.retryAfter = retryAfter;
    this.errors = detail.errors || [];
    this.currentVersion = detail.current_version ?? null;
    this.requestId = detail.request_id ?? null;
  }
}

const path = (...names) => names.map(encodeURIComponent).join('/');

async function send(method, target, {body, type = 'application/json', headers = {}, signal} = {}) {
  const init = {method, headers: {...headers}, signal, credentials: 'same-origin', cache: 'no-store'};
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = type;
  }
  const answer = await fetch(new URL(target, BASE), init);
  if (answer.ok) return answer;
  const seconds = Number.parseInt(answer.headers.get('Retry-After'), 10);
  const {detail} = await answer.json().catch(() => ({}));
  throw new ServiceError(answer.status, detail, Number.isNaN(seconds) ? null : seconds);
}

const json = async (...request) => (await send(...request)).json();

/** Waits; an aborted signal ends the wait with its reason. */
function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const aborted = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', aborted); resolve(); }, milliseconds);
    signal?.addEventListener('abort', aborted, {once: true});
  });
}

/** How long to wait before the next of `RETRIES` attempts; throws what no retry can mend: answers but those with a status of `mends`. */
function pause(error, attempt, signal, mends = [503]) {
  const isFinal = error instanceof ServiceError && !mends.includes(error.status);
  if (signal?.aborted || attempt >= RETRIES || isFinal) throw error;
  const usual = 250 * 2 ** attempt * (0.5 + Math.random() / 2);
  return wait(Math.min(Math.max(usual, (error.retryAfter || 0) * 1000), LONGEST_WAIT), signal);
}

async function again(request, signal) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await request();
    } catch (error) {
      await pause(error, attempt, signal);
    }
  }
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What the app is, which bindings and collections it has, and how its visitors sign in. */
export const config = () => json('GET', 'config');

/** Starts a run. The same key starts no second one. */
export const start = (binding, input = {}, {key = newKey(), signal} = {}) =>
  json('POST', `workflows/${path(binding)}/runs`, {body: input, headers: {'Idempotency-Key': key}, signal});

/** The state of a run, and its output or error. */
export const run = (handle, {signal} = {}) => json('GET', `runs/${path(handle)}`, {signal});

/** Reads the events of one connection. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const field = (name) => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        if (field('data')) yield {id: field('id'), ...JSON.parse(field('data'))};
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The states of a run as they come, until it has ended. A lost connection is continued. Leaving it stops nothing. */
export async function* states(handle, {signal} = {}) {
  let last = null;
  for (let attempt = 0; ; ) {
    let seen = false;
    let ended = false;
    const opened = Date.now();
    try {
      const headers = last ? {'Last-Event-ID': last} : {};
      const answer = await send('GET', `runs/${path(handle)}/events`, {headers, signal});
      if (answer.status === 204) return;
      for await (const {id, state} of events(answer.body)) {
        seen = true;
        last = id ?? last;
        yield state;
        ended = ENDED.includes(state);
      }
      // The service ends the answer: a connection that is read to its end is used again.
      if (ended) return;
      throw new TypeError('The connection has ended.');
    } catch (error) {
      if (ended) return;
      // A proxy may end long connections again and again.
      if (seen || Date.now() - opened > LASTING) attempt = 0;
      // Streams that pages have left count until the service notices it.
      await pause(error, attempt, signal, [429, 503]);
      attempt += 1;
    }
  }
}

/** Starts a run, waits for its end and returns its output (`undefined` if visitors cannot read it). */
export async function call(binding, input = {}, {key = newKey(), signal, onState} = {}) {
  const {handle, state} = await again(() => start(binding, input, {key, signal}), signal);
  let shown = state;
  onState?.(state);
  if (!ENDED.includes(state)) {
    for await (const next of states(handle, {signal})) {
      if (next !== shown) onState?.(next);
      shown = next;
    }
  }
  const ended = await again(() => run(handle, {signal}), signal);
  if (ended.state === 'succeeded') return ended.output;
  const code = ended.error?.code ?? 'run_failed';
  throw new ServiceError(0, {code, message: `The run has ended: ${code}.`});
}

export const auth = {
  /** Whether a member is signed in, and until when. */
  session: () => json('GET', 'auth/session'),
  /** Leads to the sign-in, which comes back to this address. */
  login(returnTo = location.pathname + location.search + location.hash) {
    location.assign(new URL(`auth/login?return_to=${encodeURIComponent(returnTo)}`, BASE));
  },
  /** Signs out. */
  async logout() {
    await send('POST', 'auth/logout');
  },
};

const record = (collection, id) => `data/${path(collection, id)}`;
const match = (version) => ({'If-Match': `"v${version}"`});

export const data = {
  /** A part of the records, and the cursor of the next part. */
  list(collection, {limit, cursor, order, signal} = {}) {
    const query = new URLSearchParams(Object.entries({limit, cursor, order}).filter(([, value]) => value != null));
    return json('GET', `data/${path(collection)}?${query}`, {signal});
  },
  get: (collection, id) => json('GET', record(collection, id)),
  create: (collection, value, {key} = {}) =>
    json('POST', `data/${path(collection)}`, {body: {data: value}, headers: key ? {'Idempotency-Key': key} : {}}),
  /** Replaces the data of a record that still has this version. */
  replace: (collection, id, value, version) =>
    json('PUT', record(collection, id), {body: {data: value}, headers: match(version)}),
  /** Changes members of a record that still has this version (RFC 7396). */
  merge: (collection, id, patch, version) =>
    json('PATCH', record(collection, id), {body: patch, type: 'application/merge-patch+json', headers: match(version)}),
  /** Deletes a record that still has this version. */
  async remove(collection, id, version) {
    await send('DELETE', record(collection, id), {headers: match(version)});
  },
};
