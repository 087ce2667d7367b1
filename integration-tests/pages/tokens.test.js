// Session tokens that the page around the chat provides.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Tokens, endOf, subjectOf } from '../../src/server/pages/assets/chat/tokens.js';

const NOW = 1_000_000_000_000;

/** A token that expires the given seconds after NOW. */
function token(seconds, name = 'a') {
  const claims = Buffer.from(JSON.stringify({ exp: NOW / 1000 + seconds, sub: `${name}?>` })).toString('base64url');
  return `head.${claims}.signature`;
}

test('a token is used until thirty seconds before its expiry', async () => {
  let now = NOW;
  const given = [token(300), token(600, 'b')];
  let asked = 0;
  const tokens = new Tokens(() => given[asked++], () => now);
  assert.equal(await tokens.token(), given[0]);
  now += 269_000;
  assert.equal(await tokens.token(), given[0]);
  now += 2_000;
  assert.equal(await tokens.token(), given[1]);
  assert.equal(asked, 2);
});

test('concurrent requests share one token', async () => {
  let asked = 0;
  const tokens = new Tokens(async () => token(300, `${asked++}`), () => NOW);
  const all = await Promise.all([tokens.token(), tokens.token(), tokens.token()]);
  assert.equal(new Set(all).size, 1);
  assert.equal(asked, 1);
  const [first] = all;
  const next = await Promise.all([tokens.token(first), tokens.token(first)]);
  assert.equal(new Set(next).size, 1);
  assert.notEqual(next[0], first);
  assert.equal(asked, 2);
});

test('a failed token request is repeated', async () => {
  let asked = 0;
  const tokens = new Tokens(() => {
    asked += 1;
    if (asked === 1) throw new Error('no');
    return token(300);
  }, () => NOW);
  await assert.rejects(tokens.token());
  assert.equal(await tokens.token(), token(300));
});

test('a token request that times out is repeated', async () => {
  let asked = 0;
  const get = () => {
    asked += 1;
    return asked === 1 ? new Promise(() => {}) : token(300);
  };
  const tokens = new Tokens(get, () => NOW, 20);
  const shared = [tokens.token(), tokens.token()];
  assert.deepEqual((await Promise.allSettled(shared)).map(({ status }) => status), ['rejected', 'rejected']);
  assert.equal(await tokens.token(), token(300));
  assert.equal(asked, 2);
});

test('a token without an expiry is requested each time', async () => {
  assert.equal(endOf('opaque', 5), 5);
  assert.equal(endOf('a.b.c', 5), 5);
  assert.equal(endOf(token(1), 5), NOW + 1000);
  let asked = 0;
  const tokens = new Tokens(() => `opaque${asked++}`, () => NOW);
  assert.equal(await tokens.token(), 'opaque0');
  assert.equal(await tokens.token(), 'opaque1');
});

test('an invalid token is an error, and does not become an anonymous visitor', async () => {
  for (const nothing of [undefined, null, '', 5, {}]) await assert.rejects(new Tokens(() => nothing, () => NOW).token());
  assert.equal(subjectOf(token(1, 'ada')), 'ada?>');
  assert.equal(subjectOf('opaque'), '');
});
