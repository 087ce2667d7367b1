import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spaced } from '../../src/server/pages/assets/chat/dictation/insert.js';
import { clock, MAX_LENGTH, recordedType, Recorder, recordingProblem, toBase64 } from '../../src/server/pages/assets/chat/dictation/recorder.js';

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

/** A fake browser recorder that tracks its microphone. */
function dictating({ open, transcribe = async () => ' Hello there ' } = {}) {
  const heard = { states: [], texts: [], errors: [], asked: [], stopped: 0, recorders: [] };
  class FakeRecorder extends EventTarget {
    static isTypeSupported = (type) => type === 'audio/mp4';
    constructor(stream, options) {
      super();
      Object.assign(this, { state: 'inactive', mimeType: options.mimeType });
      heard.recorders.push(this);
    }
    start() {
      this.state = 'recording';
    }
    stop() {
      this.state = 'inactive';
      queueMicrotask(() => {
        this.dispatchEvent(Object.assign(new Event('dataavailable'), { data: new Blob(heard.chunk ?? ['sound']) }));
        this.dispatchEvent(new Event('stop'));
      });
    }
  }
  const stream = { getTracks: () => [{ stop: () => (heard.stopped += 1) }] };
  const recorder = new Recorder({
    open: open ? () => open(stream) : async () => stream,
    Recorder: FakeRecorder,
    transcribe: (audio, type, signal) => {
      heard.asked.push([audio, type]);
      return transcribe(signal);
    },
    onChange: () => heard.states.push(recorder.state),
    onText: (text) => heard.texts.push(text),
    onError: (error) => heard.errors.push(error.name),
  });
  return { recorder, heard };
}

test('a recording is transcribed and the microphone released', async () => {
  const { recorder, heard } = dictating();
  await recorder.start();
  assert.equal(recorder.state, 'recording');
  assert.equal(heard.stopped, 0);
  recorder.finish();
  recorder.finish();
  await settled();
  assert.deepEqual(heard.states, ['asking', 'recording', 'transcribing', 'idle']);
  assert.deepEqual(heard.asked, [[btoa('sound'), 'audio/mp4']]);
  assert.deepEqual([heard.texts, heard.errors], [['Hello there'], []]);
  assert.ok(heard.stopped > 0);
});

test('a cancelled recording is not sent', async () => {
  const { recorder, heard } = dictating();
  await recorder.start();
  recorder.cancel();
  await settled();
  assert.deepEqual([recorder.state, heard.asked, heard.texts, heard.errors], ['idle', [], [], []]);
  assert.ok(heard.stopped > 0);
  await recorder.start();
  assert.equal(recorder.state, 'recording', 'another one can begin');
  recorder.cancel();
});

test('a microphone granted after the recording was cancelled is released', async () => {
  let allow;
  const { recorder, heard } = dictating({ open: (stream) => new Promise((resolve) => (allow = () => resolve(stream))) });
  const started = recorder.start();
  recorder.cancel();
  allow();
  await started;
  assert.deepEqual([recorder.state, heard.stopped, heard.recorders.length], ['idle', 1, 0]);
});

test('a denied microphone is an error with an explanation', async () => {
  const { recorder, heard } = dictating({ open: () => Promise.reject(new DOMException('no', 'NotAllowedError')) });
  await recorder.start();
  assert.deepEqual([recorder.state, heard.errors], ['idle', ['NotAllowedError']]);
  assert.match(recordingProblem({ name: 'NotAllowedError' }), /did not allow the microphone/);
  assert.equal(recordingProblem({ name: 'constructor' }), null);
  assert.equal(recordingProblem({}), null);
});

test('silence and an empty recording are errors', async () => {
  const silent = dictating({ transcribe: async () => '  ' });
  await silent.recorder.start();
  silent.recorder.finish();
  await settled();
  assert.deepEqual([silent.heard.errors, silent.heard.texts], [['silent'], []]);
  const empty = dictating();
  empty.heard.chunk = [];
  await empty.recorder.start();
  empty.recorder.finish();
  await settled();
  assert.deepEqual([empty.heard.errors, empty.heard.asked], [['empty'], []]);
});

test('a transcription can be cancelled', async () => {
  let aborted = false;
  const { recorder, heard } = dictating({
    transcribe: (signal) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason);
        }),
      ),
  });
  await recorder.start();
  recorder.finish();
  await settled();
  assert.equal(recorder.state, 'transcribing');
  recorder.cancel();
  await settled();
  assert.deepEqual([aborted, recorder.state, heard.errors], [true, 'idle', []]);
});

test('a recording that the browser stops is transcribed', async () => {
  const { recorder, heard } = dictating();
  await recorder.start();
  heard.recorders[0].stop();
  await settled();
  assert.deepEqual([heard.texts, recorder.state], [['Hello there'], 'idle']);
});

test('a recording ends after its maximum length', async (context) => {
  const { recorder, heard } = dictating();
  context.mock.timers.enable({ apis: ['setTimeout'] });
  await recorder.start();
  context.mock.timers.tick(MAX_LENGTH - 1);
  assert.equal(recorder.state, 'recording');
  context.mock.timers.tick(1);
  assert.equal(recorder.state, 'transcribing');
  context.mock.timers.reset();
  await settled();
  assert.deepEqual(heard.texts, ['Hello there']);
});

test('base64, media types and the clock are correct', () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => at % 256);
  assert.equal(toBase64(bytes), Buffer.from(bytes).toString('base64'));
  assert.equal(toBase64(new Uint8Array()), '');
  assert.deepEqual([0, 999, 1000, 67_000, 120_000, -5].map(clock), ['0:00', '0:00', '0:01', '1:07', '2:00', '0:00']);
  assert.equal(recordedType({ isTypeSupported: () => true }), 'audio/webm;codecs=opus');
  assert.equal(recordedType({ isTypeSupported: () => false }), null);
  assert.equal(recordedType(undefined), null);
});

test('dictated words are separated from their neighbours', () => {
  assert.equal(spaced('', 0, 0, 'Hi'), 'Hi');
  assert.equal(spaced('One', 3, 3, 'two'), ' two');
  assert.equal(spaced('One ', 4, 4, 'two'), 'two');
  assert.equal(spaced('One three', 4, 4, 'two'), 'two ');
  assert.equal(spaced('One.', 3, 3, 'two'), ' two');
  assert.equal(spaced('One two', 4, 7, 'three'), 'three');
});
