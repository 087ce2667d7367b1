import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { ApiError } from '../../src/server/pages/assets/chat/api.js';
import { follow } from '../../src/server/pages/assets/chat/follow.js';

const frame = (n, data) => `id: s.${n}\ndata: ${JSON.stringify(data)}\n\n`;
const piece = (n) => frame(n, { type: 'thread.item.updated', n });
const done = (n) => frame(n, { type: 'thread.item.done', item: { type: 'assistant_message' } });

/** A server that sends the next of `answers` on each connection: `[status, body, end]`. */
async function served(answers, use) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.headers['last-event-id'] ?? null);
    const [status, body, end] = answers.shift() ?? [204, ''];
    response.writeHead(status, { 'X-Chat-Stream-Id': 's', ...(status === 503 ? { 'Retry-After': '0' } : {}) });
    response.write(body, () => (end === 'cut' ? setTimeout(() => response.destroy(), 20) : response.end()));
    if (body === '') response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const get = async (after) => {
    const headers = after ? { 'Last-Event-ID': after } : {};
    const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers }).catch(() => {
      throw new ApiError({ status: 0, code: 'network' });
    });
    if (response.status === 204) return null;
    if (!response.ok) throw new ApiError({ status: response.status, code: `http.${response.status}` });
    return response;
  };
  const heard = [];
  const links = [];
  const abort = new AbortController();
  try {
    const read = follow({
      open: () => get(null),
      resume: (_, after) => get(after),
      onEvent: (event) => heard.push(event.n ?? 'done'),
      onStream: () => {},
      onLink: ({ up }) => links.push(up),
      signal: abort.signal,
    });
    return await use({ read, heard, asked, links, abort });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('a complete stream is read once', () =>
  served([[200, piece(1) + done(2)]], async ({ read, heard, asked }) => {
    assert.equal(await read, true);
    assert.deepEqual([heard, asked], [[1, 'done'], [null]]);
  }));

test('a broken connection resumes after the last event, and no event is repeated', () =>
  served(
    [
      [200, piece(1) + piece(2), 'cut'],
      [503, 'x'],
      [200, piece(2) + piece(3) + 'id: s.4\ndata: {"ty', 'cut'],
      [200, piece(4) + done(5)],
    ],
    async ({ read, heard, asked, links }) => {
      assert.equal(await read, true);
      assert.deepEqual(heard, [1, 2, 3, 4, 'done']);
      assert.deepEqual(asked, [null, 's.2', 's.2', 's.3']);
      assert.ok(links.includes(false) && links.at(-1) === true, 'the page is told');
    },
  ));

test('a stream that closes before the turn ends is resumed', () =>
  served([[200, piece(1)], [200, `${done(2)}: reconnect\n\n`], [204, '']], async ({ read, heard, asked }) => {
    assert.equal(await read, true);
    assert.deepEqual([heard, asked], [[1, 'done'], [null, 's.1', 's.2']]);
  }));

test('an empty response returns false', () =>
  served([[204, '']], async ({ read, heard }) => {
    assert.equal(await read, false);
    assert.deepEqual(heard, []);
  }));

test('a rejection and an abort end the stream', async () => {
  await served([[403, 'x']], async ({ read }) => {
    await assert.rejects(read, (error) => error instanceof ApiError && error.status === 403);
  });
  await served([[200, piece(1), 'cut'], [404, 'x']], async ({ read, heard }) => {
    await assert.rejects(read, (error) => error.status === 404);
    assert.deepEqual(heard, [1]);
  });
  await served([[500, 'x']], async ({ read }) => {
    await assert.rejects(read, (error) => error.status === 500, 'a message is not sent again and again');
  });
  await served([[200, piece(1), 'cut'], [503, 'x'], [503, 'x'], [503, 'x'], [503, 'x']], async ({ read, heard, abort }) => {
    setTimeout(() => abort.abort(), 300);
    await assert.rejects(read, (error) => error.name === 'AbortError');
    assert.deepEqual(heard, [1]);
  });
});

test('an abort takes precedence over a simultaneous rejection', async () => {
  const abort = new AbortController();
  const open = async () => {
    abort.abort();
    throw new ApiError({ status: 403, code: 'x' });
  };
  const read = follow({ open, resume: open, onEvent: () => {}, onStream: () => {}, onLink: () => {}, signal: abort.signal });
  await assert.rejects(read, (error) => error.name === 'AbortError');
});

for (const type of ['structured_input', 'client_tool_call']) {
  test(`a stream with a pending ${type} at its end is complete`, () =>
    served([[200, piece(1) + frame(2, { type: 'thread.item.done', item: { type, status: 'pending' } })]], async ({ read, asked }) => {
      assert.equal(await read, true);
      assert.deepEqual(asked, [null]);
    }));
}
