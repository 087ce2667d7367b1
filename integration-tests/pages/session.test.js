import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/server/pages/assets/chat/api.js';
import { Session } from '../../src/server/pages/assets/chat/session.js';

const FILES = [{ id: 'atc_1', name: 'plan.pdf', mime_type: 'application/pdf', type: 'file', preview_url: null }];

/** A session whose messages are rejected. */
function refused() {
  const sent = [];
  const api = {
    begin: async (type, { input }, key) => {
      sent.push({ type, input, key });
      throw new ApiError({ status: 403, code: 'chat.not_published' });
    },
  };
  return { session: new Session(api, () => {}), sent };
}

test('a message is sent with the ids of its attachments', async () => {
  const { session, sent } = refused();
  await session.say('Read this', FILES);
  assert.deepEqual(sent[0].input, { content: [{ type: 'input_text', text: 'Read this' }], attachments: ['atc_1'], quoted_text: null, inference_options: {} });
  assert.deepEqual(session.state.items[0].attachments, FILES);
  assert.equal(session.state.items[0].status, 'unsent');
});

test('a message may consist of attachments only, and keeps them when it is sent again', async () => {
  const { session, sent } = refused();
  await session.say('', FILES);
  await session.again();
  assert.deepEqual(sent.map(({ input }) => [input.content, input.attachments]), [[[], ['atc_1']], [[], ['atc_1']]]);
  assert.equal(sent[0].key, sent[1].key, 'it is the same message');
  assert.deepEqual(session.state.items.map(({ attachments }) => attachments), [FILES]);
});

test('a message without attachments sends no attachment ids', async () => {
  const { session, sent } = refused();
  await session.say('Hi');
  assert.deepEqual(sent[0].input.attachments, []);
});
