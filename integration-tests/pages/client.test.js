import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { call, config, data, run, ServiceError, start, states } from '../../src/server/pages/app/client.js';

const folder = new URL('../../src/server/pages/app/', import.meta.url);
const asked = [];
let script = [];
let server;
let own;

/** Redirects requests to the test server: the module sends them below its own URL, which is a file URL here. */
before(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    script.shift()(response, request);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  own = globalThis.fetch;
  globalThis.fetch = (url, init) => {
    assert.ok(url.href.startsWith(folder.href), url.href);
    return own(`http://127.0.0.1:${server.address().port}/__service/${url.href.slice(folder.href.length)}`, init);
  };
});
after(() => {
  globalThis.fetch = own;
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked.length = 0;
  script = [];
});

const json = (status, body, headers = {}) => (response) => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
};
const cut = (response) => response.destroy();
const stream = (text, { end = true } = {}) => (response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write(text);
  if (end) response.end();
  else setTimeout(() => response.destroy(), 20);
};
const event = (id, state) => `id: ${id}\ndata: {"state": "${state}"}\n\n`;
const collect = async (iterable) => {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
};

test('a run start sends an idempotency key, and names are encoded in the path', async () => {
  script = [json(202, { handle: 'run_1', state: 'queued' }), json(200, { handle: 'a/b', state: 'running' })];
  assert.deepEqual(await start('a/b', { x: 1 }), { handle: 'run_1', state: 'queued' });
  await run('a/b');
  assert.equal(asked[0].url, '/__service/workflows/a%2Fb/runs');
  assert.equal(asked[0].body, '{"x":1}');
  assert.match(asked[0].headers['idempotency-key'], /^[0-9a-f]{32}$/);
  assert.equal(asked[0].headers['content-type'], 'application/json');
  assert.equal(asked[1].url, '/__service/runs/a%2Fb');
});

test('an error has the code, the validation errors and the retry delay', async () => {
  const detail = { code: 'input_invalid', message: 'No.', errors: [{ pointer: '/x', code: 'type', message: 'm' }] };
  script = [json(422, { detail }), json(429, { detail: { code: 'rate_limited', message: 'Later.' } }, { 'Retry-After': '7' })];
  const invalid = await start('ask', {}).catch((error) => error);
  assert.ok(invalid instanceof ServiceError);
  assert.deepEqual([invalid.code, invalid.status, invalid.errors, invalid.retryAfter], ['input_invalid', 422, detail.errors, null]);
  const limited = await start('ask', {}).catch((error) => error);
  assert.deepEqual([limited.code, limited.retryAfter, limited.message], ['rate_limited', 7, 'Later.']);
});

test('a response without JSON is a service error', async () => {
  script = [(response) => { response.writeHead(502); response.end('<html>'); }];
  const error = await config().catch((problem) => problem);
  assert.deepEqual([error.code, error.status], ['internal', 502]);
});

test('a call retries with its key, resumes its states and returns the output', async () => {
  const seen = [];
  script = [
    cut,
    json(503, { detail: { code: 'unavailable', message: 'Soon.' } }, { 'Retry-After': '0' }),
    json(202, { handle: 'run_1', state: 'queued' }),
    stream(event(1, 'queued') + event(2, 'running'), { end: false }),
    stream(`: ping\n\n${event(3, 'succeeded')}`),
    cut,
    json(200, { handle: 'run_1', state: 'succeeded', output: { answer: 42 } }),
  ];
  assert.deepEqual(await call('ask', { q: 1 }, { onState: (state) => seen.push(state) }), { answer: 42 });
  assert.deepEqual(seen, ['queued', 'running', 'succeeded']);
  const keys = new Set(asked.slice(0, 3).map((one) => one.headers['idempotency-key']));
  assert.equal(keys.size, 1);
  assert.deepEqual(asked.slice(3, 5).map((one) => one.headers['last-event-id']), [undefined, '2']);
  assert.equal(script.length, 0);
});

test('a call rejects with the error of its failed run', async () => {
  script = [
    json(202, { handle: 'run_1', state: 'running' }),
    stream(event(3, 'timed_out')),
    json(200, { handle: 'run_1', state: 'timed_out', error: { code: 'timed_out' } }),
  ];
  const error = await call('ask', {}).catch((problem) => problem);
  assert.deepEqual([error.code, error.status], ['timed_out', 0]);
});

test('a permanent error is not retried', async () => {
  script = [json(403, { detail: { code: 'origin_mismatch', message: 'No.' } })];
  assert.equal((await call('ask', {}).catch((error) => error)).code, 'origin_mismatch');
  assert.equal(asked.length, 1);
});

test('a call fails after five retries on network errors', async () => {
  script = Array.from({ length: 6 }, () => cut);
  const real = Math.random;
  Math.random = () => 0;
  const error = await call('ask', {}).catch((problem) => problem);
  Math.random = real;
  assert.ok(error instanceof TypeError, error);
  assert.equal(asked.length, 6);
});

test('states end on an empty response and on abort', async () => {
  script = [(response) => { response.writeHead(204); response.end(); }];
  assert.deepEqual(await collect(states('run_1')), []);
  const leaving = new AbortController();
  script = [stream(event(2, 'running'), { end: false })];
  const seen = [];
  await assert.rejects(async () => {
    for await (const state of states('run_1', { signal: leaving.signal })) {
      seen.push(state);
      leaving.abort(new Error('left'));
    }
  });
  assert.deepEqual(seen, ['running']);
});

test('an event in two chunks is read as one event', async () => {
  script = [(response) => {
    const [first, second] = ['id: 3\ndata: {"sta', 'te": "succeeded"}\n\n'];
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(first);
    setTimeout(() => response.end(second), 10);
  }];
  assert.deepEqual(await collect(states('run_1')), ['succeeded']);
});

test('record changes send the expected version', async () => {
  const rec = { id: 'r1', version: 2, data: {} };
  script = [json(200, { items: [], next_cursor: null }), json(201, rec), json(200, rec), json(200, rec), (response) => {
    response.writeHead(204);
    response.end();
  }, json(412, { detail: { code: 'version_conflict', message: 'Changed.', current_version: 9 } })];
  await data.list('cards', { limit: 5, cursor: null, order: '-created_at' });
  await data.create('cards', { text: 'a' }, { key: 'k1' });
  await data.replace('cards', 'r1', { text: 'b' }, 1);
  await data.merge('cards', 'r1', { text: null }, 2);
  assert.equal(await data.remove('cards', 'r1', 3), undefined);
  const conflict = await data.remove('cards', 'r1', 3).catch((error) => error);
  assert.deepEqual([conflict.code, conflict.currentVersion], ['version_conflict', 9]);
  assert.deepEqual(asked.map((one) => `${one.method} ${one.url}`), [
    'GET /__service/data/cards?limit=5&order=-created_at',
    'POST /__service/data/cards',
    'PUT /__service/data/cards/r1',
    'PATCH /__service/data/cards/r1',
    'DELETE /__service/data/cards/r1',
    'DELETE /__service/data/cards/r1',
  ]);
  assert.equal(asked[1].headers['idempotency-key'], 'k1');
  assert.deepEqual(asked.slice(2, 5).map((one) => one.headers['if-match']), ['"v1"', '"v2"', '"v3"']);
  assert.equal(asked[3].headers['content-type'], 'application/merge-patch+json');
  assert.deepEqual([asked[1].body, asked[2].body, asked[3].body], ['{"data":{"text":"a"}}', '{"data":{"text":"b"}}', '{"text":null}']);
});
