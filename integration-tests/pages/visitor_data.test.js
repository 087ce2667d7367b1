// Download and erasure of a visitor's data.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { exportFile, eraseData, isComplete } from '../../src/server/pages/assets/chat/visitor_data.js';

test('an export without its last line is incomplete', async () => {
  const end = '{"type":"end","threads":0,"items":0,"attachments":0}\n';
  assert.equal(isComplete(`{"type":"visitor"}\n${end}`), true);
  for (const text of ['', '{"type":"visitor"}\n', '{"type":"visitor"}\n{"type":"en', 'no json\n']) assert.equal(isComplete(text), false, text);
  assert.equal((await exportFile({ exportAll: () => end }, 'Desk')).name, 'Desk.ndjson');
  assert.equal(await exportFile({ exportAll: () => '{"type":"thread"}' }, 'Desk'), null);
});

test('an erasure sends one request', async () => {
  let asked = 0;
  const api = (answer) => ({ eraseAll: () => ((asked += 1), answer) });
  assert.equal(await eraseData(api({ threads: 3 })), true);
  assert.equal(await eraseData(api({ status: 'erasing' })), false, 'the service completes it');
  assert.equal(asked, 2);
  await assert.rejects(eraseData({ eraseAll: () => Promise.reject(new Error('no')) }));
});
