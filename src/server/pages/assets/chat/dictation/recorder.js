// Records speech and has the service transcribe it.

/** Maximum length of a recording, in ms. */
export const MAX_LENGTH = 120_000;
/** Bit rate for speech, in bits per second. */
const BIT_RATE = 64_000;
/** Media types that the service accepts, in order of preference. */
const TYPES = ['audio/webm;codecs=opus', 'audio/mp4', 'audio/ogg;codecs=opus'];
/** Bytes converted per call; more arguments overflow the stack. */
const CHUNK = 0x8000;

const PROBLEMS = {
  NotAllowedError: 'The browser did not allow the microphone. Allow it for this page and try again.',
  SecurityError: 'The browser did not allow the microphone. Allow it for this page and try again.',
  NotFoundError: 'No microphone was found.',
  NotReadableError: 'The microphone cannot be read. Another program may use it.',
  empty: 'Nothing was recorded. Try again.',
  silent: 'No words were recognized. Try again.',
};

/** The media type to record; null if this browser supports no type that the service accepts. */
export function recordedType(Recorder) {
  return TYPES.find((type) => Recorder?.isTypeSupported?.(type)) ?? null;
}

/** Encodes bytes in base64. */
export function toBase64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/** Formats a duration in ms as minutes and seconds: `1:07`. */
export function clock(ms) {
  const seconds = Math.floor(Math.max(ms, 0) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/**
 * The reason why recording failed.
 * @param {{name?: string}} error
 * @returns {string | null} null for other errors
 */
export function recordingProblem({ name }) {
  return Object.hasOwn(PROBLEMS, name ?? '') ? PROBLEMS[name] : null;
}

/** Makes one recording at a time. */
export class Recorder {
  /** @type {'idle' | 'asking' | 'recording' | 'transcribing'} */
  state = 'idle';
  /** The active recording; all others were cancelled. */
  #current = null;

  /**
   * @param {object} ports
   * @param {() => Promise<MediaStream>} ports.open requests the microphone
   * @param {typeof MediaRecorder} ports.Recorder
   * @param {(audio: string, type: string, signal: AbortSignal) => Promise<string>} ports.transcribe `audio` is in base64
   * @param {() => void} ports.onChange after each change
   * @param {(text: string) => void} ports.onText
   * @param {(error: Error) => void} ports.onError
   */
  constructor(ports) {
    this.ports = ports;
  }

  /** Requests the microphone and starts a recording. */
  async start() {
    if (this.state !== 'idle') return;
    const recording = { chunks: [], abort: new AbortController(), stream: null, recorder: null, timer: undefined, startedAt: 0 };
    this.#current = recording;
    this.#to('asking');
    try {
      recording.stream = await this.ports.open();
      // The recording was cancelled while the browser asked for permission.
      if (this.#current !== recording) release(recording);
      else this.#record(recording);
    } catch (error) {
      this.#fail(recording, error);
    }
  }

  /** Ends the recording and has it transcribed. */
  finish() {
    if (this.state !== 'recording') return;
    const { recorder } = this.#current;
    this.#to('transcribing');
    if (recorder.state !== 'inactive') recorder.stop();
  }

  /** Discards the recording in any state. */
  cancel() {
    const recording = this.#current;
    if (recording === null) return;
    this.#current = null;
    recording.abort.abort();
    if (recording.recorder !== null && recording.recorder.state !== 'inactive') recording.recorder.stop();
    release(recording);
    this.#to('idle');
  }

  /** Length of the current recording, in ms. */
  get elapsed() {
    return this.state === 'recording' ? performance.now() - this.#current.startedAt : 0;
  }

  #record(recording) {
    const type = recordedType(this.ports.Recorder);
    const recorder = new this.ports.Recorder(recording.stream, { ...(type ? { mimeType: type } : {}), audioBitsPerSecond: BIT_RATE });
    recording.recorder = recorder;
    recorder.addEventListener('dataavailable', ({ data }) => recording.chunks.push(data));
    recorder.addEventListener('error', ({ error }) => this.#fail(recording, error ?? problem('empty')));
    // It also stops without a call, for example when the microphone is unplugged.
    recorder.addEventListener('stop', () => this.#transcribe(recording, recorder.mimeType || type || TYPES[0]));
    recorder.start();
    recording.startedAt = performance.now();
    recording.timer = setTimeout(() => this.finish(), MAX_LENGTH);
    this.#to('recording');
  }

  async #transcribe(recording, type) {
    release(recording);
    if (this.#current !== recording) return;
    if (this.state === 'recording') this.#to('transcribing');
    try {
      const bytes = new Uint8Array(await new Blob(recording.chunks).arrayBuffer());
      if (bytes.length === 0) throw problem('empty');
      const text = (await this.ports.transcribe(toBase64(bytes), type, recording.abort.signal)).trim();
      if (text === '') throw problem('silent');
      if (this.#current !== recording) return;
      this.#current = null;
      this.#to('idle');
      this.ports.onText(text);
    } catch (error) {
      this.#fail(recording, error);
    }
  }

  #fail(recording, error) {
    release(recording);
    if (this.#current !== recording) return;
    this.#current = null;
    this.#to('idle');
    this.ports.onError(error);
  }

  #to(state) {
    this.state = state;
    this.ports.onChange();
  }
}

function problem(name) {
  return Object.assign(new Error(name), { name });
}

/** Releases the microphone. */
function release(recording) {
  clearTimeout(recording.timer);
  for (const track of recording.stream?.getTracks() ?? []) track.stop();
}
