// Reads a turn to its end, over as many connections as that takes.

import { ApiError } from './api.js';
import { SseDecoder, sequence } from './sse.js';

/** The service sends something every 10 s. Who hears nothing for this long has lost the connection, in ms. */
const SILENCE = 30_000;
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;

/**
 * @typedef {object} Turn
 * @property {() => Promise<Response | null>} open the first connection; null when there is nothing to read
 * @property {(id: string, after: string | null) => Promise<Response | null>} resume a later connection
 * @property {(event: object) => void} onEvent each event, once and in order
 * @property {(id: string) => void} onStream the stream's id, when it is known
 * @property {(link: {up: boolean, error?: ApiError}) => void} onLink whether the connection holds, and if not, why
 * @property {AbortSignal} signal gives up
 */

/**
 * Follows a turn until nothing more comes.
 *
 * A connection that breaks is taken up behind the last event; one that cannot be made is tried again for as long as
 * it may succeed.
 * @param {Turn} turn
 * @returns {Promise<boolean>} whether there was anything to read
 * @throws {ApiError} when the service refuses; an `AbortError` when the signal says so
 */
export async function follow({ open, resume, onEvent, onStream, onLink, signal }) {
  let stream = null;
  let last = { id: null, sequence: 0, ends: false };
  let failures = 0;
  for (;;) {
    let error;
    try {
      const response = stream === null ? await open() : await resume(stream, last.id);
      if (response === null) return stream !== null;
      const id = response.headers.get('X-Chat-Stream-Id');
      if (id !== null && id !== stream) {
        stream = id;
        onStream(id);
      }
      onLink({ up: true });
      const asked = await read(response, signal, ({ id: eventId, data }) => {
        failures = 0;
        // Not an event of the stream: what follows happens now.
        if (data.type === 'stream.live') return;
        const number = sequence(eventId);
        if (number !== 0 && number <= last.sequence) return;
        last = { id: eventId ?? last.id, sequence: Math.max(number, last.sequence), ends: isEnd(data) };
        onEvent(data);
      });
      if (last.ends && !asked) return true;
    } catch (failure) {
      // Who gives up while an answer is on its way is not told what it says.
      signal.throwIfAborted();
      if (!(failure instanceof ApiError)) throw failure;
      // A stream that cannot be read now can be read later; a message that made the service fail is not sent again.
      if (!failure.passes && !(stream !== null && failure.status >= 500)) throw failure;
      error = failure;
    }
    failures += 1;
    if (failures > 1) onLink({ up: false, error: error ?? new ApiError({ status: 0, code: 'network' }) });
    const pause = Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
    await wait(Math.max(pause * (0.5 + Math.random() / 2), (error?.retryAfter ?? 0) * 1000), signal);
  }
}

/** The kinds of items that a turn ends with, if they are not answered yet. */
const ASKING = ['structured_input', 'client_tool_call'];

/** Behind these events a turn has, as a rule, no more to say. Behind others one asks. */
function isEnd({ type, item }) {
  if (type !== 'thread.item.done') return type === 'error';
  return item?.type === 'assistant_message' || (ASKING.includes(item?.type) && item.status === 'pending');
}

/**
 * Reads one connection to its end.
 * @returns {Promise<boolean>} whether the service asked to come back
 */
async function read(response, signal, onFrame) {
  const reader = response.body.getReader();
  const decoder = new SseDecoder();
  const cancel = () => reader.cancel().catch(() => {});
  let silence = setTimeout(cancel, SILENCE);
  signal.addEventListener('abort', cancel, { once: true });
  let asked = false;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new ApiError({ status: 0, code: 'network' });
      });
      signal.throwIfAborted();
      if (done) return asked;
      clearTimeout(silence);
      silence = setTimeout(cancel, SILENCE);
      for (const found of decoder.push(value)) {
        if (found.frame) onFrame(found.frame);
        else if (found.comment === 'reconnect') asked = true;
      }
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

/** Waits, at most until the network comes back. */
export function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    const finish = (end) => () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.('online', go);
      signal.removeEventListener('abort', stop);
      end();
    };
    const go = finish(resolve);
    const stop = finish(() => reject(signal.reason));
    const timer = setTimeout(go, ms);
    globalThis.addEventListener?.('online', go);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
}
