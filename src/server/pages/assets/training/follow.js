// Reads the events of a run to its end, over as many connections as necessary.

import { wait } from '../chat/follow.js';
import { SseDecoder, sequence } from '../chat/sse.js';

/** Maximum silence on a connection, in ms; then it counts as lost. The service sends something every 10 s. */
const SILENCE = 30_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

/** Final events. */
const ENDS = new Set(['run_completed', 'run_failed', 'run_cancelled']);

/**
 * Reads each event once and in order, and resumes after the last one that was received.
 * @param {object} run
 * @param {(after: string | null, signal: AbortSignal) => Promise<Response | null>} run.open resolves to null if there are no more events
 * @param {(event: object) => void} run.onEvent
 * @param {(link: {up: boolean, error?: Error}) => void} run.onLink receives the state of the connection
 * @param {AbortSignal} run.signal cancels
 * @throws the error of `open`, unless its `passes` is true
 */
export async function followRun({ open, onEvent, onLink, signal, silence = SILENCE, firstPause = FIRST_PAUSE }) {
  let last = null;
  let failures = 0;
  for (;;) {
    let error = null;
    try {
      const response = await open(last, signal);
      if (response === null) return;
      onLink({ up: true });
      let ended = false;
      await read(response, signal, silence, ({ id, data }) => {
        failures = 0;
        if (id !== null && last !== null && sequence(id) <= sequence(last)) return;
        last = id ?? last;
        ended ||= ENDS.has(data.type);
        onEvent(data);
      });
      if (ended) return;
    } catch (failure) {
      signal.throwIfAborted();
      if (failure?.passes !== true) throw failure;
      error = failure;
    }
    failures += 1;
    // Shutdowns of the service and expired tokens close a stream: the first reconnect does not count as an interruption.
    if (failures > 1 || error !== null) onLink({ up: false, error });
    const pause = Math.min(firstPause * 2 ** (failures - 1), LONGEST_PAUSE);
    await wait(Math.max(pause, (error?.retryAfter ?? 0) * 1000), signal);
  }
}

async function read(response, signal, silence, onFrame) {
  const reader = response.body.getReader();
  const decoder = new SseDecoder();
  const cancel = () => reader.cancel().catch(() => {});
  let timer = setTimeout(cancel, silence);
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      // Treat a broken connection as the end of the body.
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      signal.throwIfAborted();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(cancel, silence);
      for (const found of decoder.push(value)) if (found.frame) onFrame(found.frame);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}
