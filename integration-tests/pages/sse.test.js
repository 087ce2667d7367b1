import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SseDecoder, sequence } from '../../src/server/pages/assets/chat/sse.js';

const BODY = 'id: s.1\ndata: {"type":"a","text":"grüße 👋"}\n\n: ping\n\nid: s.2\r\ndata: {"type":"b"}\r\n\r\nretry: 1000\n: reconnect\n\n';
const READ = [
  { frame: { id: 's.1', data: { type: 'a', text: 'grüße 👋' } } },
  { comment: 'ping' },
  { frame: { id: 's.2', data: { type: 'b' } } },
  { comment: 'reconnect' },
];

test('a body is decoded equally for any chunks', () => {
  const bytes = new TextEncoder().encode(BODY);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const decoder = new SseDecoder();
    const read = [...decoder.push(bytes.subarray(0, cut)), ...decoder.push(bytes.subarray(cut))];
    assert.deepEqual(read, READ, `cut at ${cut}`);
  }
  const decoder = new SseDecoder();
  assert.deepEqual([...bytes].flatMap((byte) => decoder.push(Uint8Array.of(byte))), READ);
});

test('invalid frames and unfinished frames are skipped', () => {
  const decoder = new SseDecoder();
  const read = (text) => decoder.push(new TextEncoder().encode(text));
  assert.deepEqual(read('data: {"type":\n\ndata: 7\n\ndata: null\n\nevent: x\nid: s.9\n\ndata: {"type":"ok"}\n'), []);
  assert.deepEqual(read('\n'), [{ frame: { id: null, data: { type: 'ok' } } }]);
});

test('an event id contains the sequence number', () => {
  assert.equal(sequence('0198c2f0-6b1e.12'), 12);
  for (const wrong of [null, '', '12', 'a.b', 'a.-1', 'a.1.5x', 'a.99999999999999999999']) {
    assert.ok(sequence(wrong) <= 1, wrong);
  }
});
