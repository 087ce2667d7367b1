import assert from 'node:assert/strict';
import test from 'node:test';

import { ask, onward } from '../../src/server/pages/assets/sign-in/ask.js';

const BASE = new URL('../../src/server/pages/', import.meta.url);
const below = (url) => url.href.startsWith(BASE.href);

test('a return path is resolved below the base of the service', () => {
  assert.equal(onward('/chat/x?y=1#z').href, new URL('chat/x?y=1#z', BASE).href);
  for (const nowhere of [undefined, null, '', '//evil.example', 'https://evil.example/', 'javascript:alert(1)', 'chat']) {
    assert.equal(onward(nowhere).href, BASE.href, String(nowhere));
  }
  assert.equal(onward('/https://evil.example').protocol, BASE.protocol);
  assert.ok(below(onward('/\t/x')));
});

test('errors have plain texts', async (t) => {
  const answers = (status, body) => t.mock.method(globalThis, 'fetch', async () => new Response(body, { status }));
  const detail = (code, more) => JSON.stringify({ detail: { code, message: 'M', ...more } });
  const text = async () => (await ask('x', {})).text;
  answers(401, detail('auth.code_invalid'));
  assert.match(await text(), /^This code is not valid/);
  answers(422, detail('request.invalid', { errors: [{ pointer: '/email' }] }));
  assert.match(await text(), /^This is not an email address/);
  answers(503, '<html>');
  assert.match(await text(), /Try again in a moment/);
  answers(418, detail('else'));
  assert.equal(await text(), 'M');
  t.mock.method(globalThis, 'fetch', async () => {
    throw new TypeError('x');
  });
  assert.match(await text(), /cannot be reached/);
  answers(204, null);
  assert.deepEqual(await ask('x', {}), { ok: true, code: '', text: '', body: null });
});
