// Reads a turn to its end, and reconnects as often as necessary.

import { ApiError } from './api.js';
import { SseDecoder, sequence } from './sse.js';

/** Maximum silence on a connection, in ms; then it counts as lost. The service sends something every 10 s. */
const SILENCE = 30_000;
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;

/**
 * @typedef {object} Turn
 * @property {() => Promise<Response | null>} open opens the first connection; null if there is nothing to read
 * @property {(id: string, after: string | null) => Promise<Response | null>} resume opens a later connection
 * @property {(event: object) => void} onEvent receives each event, once and in order
 * @property {(id: string) => void} onStream receives the stream's id when it is known
 * @property {(link: {up: boolean, error?: ApiError}) => void} onLink receives the state of the connection, and the reason for an interruption
 * @property {AbortSignal} signal cancels
 */

/**
 * Follows a turn to its last event.
 *
 * After an interruption it resumes after the last event. It retries failed connections until the service rejects them
 * permanently.
 * @param {Turn} turn
 * @returns {Promise<boolean>} whether there was anything to read
 * @throws {ApiError} if the service rejects the request; an `AbortError` if the signal is aborted
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
        // Not a stream event: it marks the end of the replay; the next events are live.
        if (data.type === 'stream.live') return;
        const number = sequence(eventId);
        if (number !== 0 && number <= last.sequence) return;
        last = { id: eventId ?? last.id, sequence: Math.max(number, last.sequence), ends: isEnd(data) };
        onEvent(data);
      });
      if (last.ends && !asked) return true;
    } catch (failure) {
      // After an abort the caller receives an `AbortError`, not the pending response.
      signal.throwIfAborted();
      if (!(failure instanceof ApiError)) throw failure;
      // A failed read of a known stream is retried; a message that caused a server error is not sent again.
      if (!failure.passes && !(stream !== null && failure.status >= 500)) throw failure;
      error = failure;
    }
    failures += 1;
    if (failures > 1) onLink({ up: false, error: error ?? new ApiError({ status: 0, code: 'network' }) });
    const pause = Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
    await wait(Math.max(pause * (0.5 + Math.random() / 2), (error?.retryAfter ?? 0) * 1000), signal);
  }
}

/** Item kinds that end a turn while they are pending. */
const ASKING = ['structured_input', 'client_tool_call'];

/** Whether an event is usually the last one of a turn. If a connection ends after any other event, the stream is resumed. */
function isEnd({ type, item }) {
  if (type !== 'thread.item.done') return type === 'error';
  return item?.type === 'assistant_message' || (ASKING.includes(item?.type) && item.status === 'pending');
}

/**
 * Reads one connection to its end.
 * @returns {Promise<boolean>} whether the service requested a reconnect
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

/** Waits, but not longer than until the network returns. */
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
