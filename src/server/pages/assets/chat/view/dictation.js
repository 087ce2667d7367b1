// The controls for dictating into the composer.

import { h, icon, iconButton, set, setText } from '../../dom.js';
import { MAX_LENGTH, Recorder, clock, recordedType, recordingProblem } from '../dictation/recorder.js';
import { plain } from '../words.js';

/** Interval of the clock, in ms. */
const TICK = 250;
const SAYS = { idle: '', asking: 'Allow the microphone to dictate.', recording: 'Recording', transcribing: 'Transcribing …' };

/** Whether this browser can record; only pages loaded over https may. */
export function canDictate() {
  return typeof navigator.mediaDevices?.getUserMedia === 'function' && recordedType(globalThis.MediaRecorder) !== null;
}

export class DictationView {
  /**
   * @param {object} ports
   * @param {import('../api.js').Api} ports.api
   * @param {(text: string) => void} ports.tell shows a text to the visitor
   * @param {(text: string) => void} ports.onText inserts a text into the composer
   */
  constructor({ api, tell, onText }) {
    this.recorder = new Recorder({
      open: () => navigator.mediaDevices.getUserMedia({ audio: true }),
      Recorder: globalThis.MediaRecorder,
      transcribe: async (audio, type, signal) => {
        const { text } = await api.ask('input.transcribe', { audio_base64: audio, mime_type: type }, signal);
        return typeof text === 'string' ? text : '';
      },
      onChange: () => this.#show(),
      onText,
      onError: (error) => tell(recordingProblem(error) ?? plain({ code: error.code ?? '', message: error.code && error.message })),
    });
    this.button = iconButton('mic', 'Dictate', () => this.recorder.start(), { class: 'icon-button box-button' });
    this.says = h('span', { class: 'dictation-state' });
    /** Must be outside of elements that may be hidden: a live region is announced only if it exists before its text. */
    this.spoken = h('p', { class: 'unseen', 'aria-live': 'polite' });
    this.clock = h('span', { class: 'dictation-clock', role: 'timer' });
    this.finish = h('button', { type: 'button', class: 'button small', 'data-does': 'insert', onclick: () => this.recorder.finish() }, icon('check'), 'Stop and insert');
    this.cancel = h('button', { type: 'button', class: 'button small', 'data-does': 'cancel', onclick: () => this.end() }, 'Cancel');
    this.mark = h('span', { class: 'dictation-mark', 'aria-hidden': 'true' });
    const buttons = h('span', { class: 'dictation-buttons' }, this.cancel, this.finish);
    this.element = h('div', { class: 'dictation', hidden: true }, this.mark, this.says, this.clock, buttons);
    this.was = 'idle';
  }

  get isActive() {
    return this.recorder.state !== 'idle';
  }

  /** Discards the recording. */
  end() {
    this.recorder.cancel();
  }

  enable(enabled) {
    this.enabled = enabled;
    if (!enabled) this.end();
    set(this.button, 'disabled', !enabled);
  }

  #show() {
    const { state } = this.recorder;
    const had = this.element.contains(document.activeElement) || document.activeElement === this.button;
    set(this.element, 'hidden', state === 'idle');
    set(this.element, 'data-state', state);
    set(this.button, 'hidden', state !== 'idle');
    set(this.finish, 'hidden', state !== 'recording');
    set(this.clock, 'hidden', state !== 'recording');
    for (const element of [this.says, this.spoken]) setText(element, SAYS[state]);
    this.#tick(state);
    // The button that had the focus is hidden now.
    if (had && state !== this.was) (state === 'idle' ? this.button : state === 'recording' ? this.finish : this.cancel).focus();
    this.was = state;
  }

  #tick(state) {
    clearInterval(this.ticking);
    if (state !== 'recording') return;
    const show = () => setText(this.clock, `${clock(this.recorder.elapsed)} / ${clock(MAX_LENGTH)}`);
    this.ticking = setInterval(show, TICK);
    show();
  }
}
