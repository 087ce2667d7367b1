// The status of the chat: progress of a reply, connection problems, failures.

import { h, set, setText } from '../../dom.js';
import { textOf } from '../conversation.js';
import { plain } from '../words.js';

/** Time for which a short notice is shown, in ms. */
const TOLD = 4000;
const TROUBLE = {
  network: 'The connection is lost. The chat resumes when the connection is back.',
  service: 'The service is busy or restarting. The chat resumes in a moment.',
};
const DOING = { loading: 'Loading …', sending: '', replying: '', parked: '', stopping: 'Stopping …' };

export class StatusView {
  /** @param {{onAgain: () => void, onReconnect: () => void}} asked */
  constructor({ onAgain, onReconnect }) {
    this.dots = h('span', { class: 'dots', 'aria-hidden': 'true' }, h('i'), h('i'), h('i'));
    this.doing = h('span', { class: 'doing', dir: 'auto' });
    /** Must be placed after the last message. */
    this.progress = h('p', { class: 'progress', hidden: true }, this.dots, this.doing);
    this.link = h(
      'p',
      { class: 'link', hidden: true },
      (this.why = h('span')),
      h('button', { type: 'button', class: 'button small', onclick: onReconnect }, 'Try now'),
    );
    this.words = h('p', { class: 'words', dir: 'auto' });
    this.detail = h('p', { class: 'detail' });
    this.again = h('button', { type: 'button', class: 'button', onclick: onAgain }, 'Try again');
    this.failure = h('div', { class: 'failure', hidden: true }, this.words, this.detail, this.again);
    // For screen readers: one complete announcement at a time.
    this.spoken = h('p', { class: 'unseen', role: 'status' });
    this.toast = h('p', { class: 'toast', role: 'status', hidden: true, dir: 'auto' });
    this.element = h('div', { class: 'status' }, this.link, this.failure, this.spoken, this.toast);
  }

  /** Shows a text for a short time. */
  tell(text) {
    set(this.toast, 'hidden', false);
    setText(this.toast, text);
    clearTimeout(this.told);
    this.told = setTimeout(() => set(this.toast, 'hidden', true), TOLD);
  }

  /** @param {import('../conversation.js').Conversation} state */
  show(state) {
    const { phase, progress, trouble, failure, items } = state;
    const comes = items.at(-1)?.status === 'streaming' && textOf(items.at(-1)) !== '';
    const busy = phase !== 'idle';
    set(this.progress, 'hidden', !busy || (comes && !progress && phase !== 'stopping'));
    setText(this.doing, DOING[phase] || progress || '');
    set(this.link, 'hidden', trouble === null || !busy);
    if (trouble !== null) setText(this.why, TROUBLE[trouble]);
    set(this.failure, 'hidden', failure === null);
    if (failure !== null) {
      setText(this.words, plain(failure));
      setText(this.detail, failure.requestId ? `${failure.code} · request ${failure.requestId}` : failure.code);
      set(this.again, 'hidden', failure.retry === null);
    }
    this.#speak(state);
  }

  #speak({ phase, trouble, failure, items, progress }) {
    const was = this.was ?? { phase: 'idle', trouble: null, failure: null };
    this.was = { phase, trouble, failure, progress };
    if (failure !== null && failure !== was.failure) setText(this.spoken, plain(failure));
    else if (trouble !== null && trouble !== was.trouble) setText(this.spoken, TROUBLE[trouble]);
    else if (trouble === null && was.trouble !== null && phase !== 'idle') setText(this.spoken, 'The connection is back.');
    else if (phase === 'sending' && was.phase === 'idle') setText(this.spoken, 'Sent. Waiting for the reply.');
    else if (phase === 'idle' && ['replying', 'stopping', 'sending'].includes(was.phase)) {
      setText(this.spoken, ended(items.at(-1)));
    } else if (progress && progress !== was.progress) setText(this.spoken, progress);
  }
}

/** The screen reader announcement for a turn that ended with an item. */
function ended(item) {
  if (item?.role === 'assistant') return `${item.status === 'stopped' ? 'Stopped. ' : ''}The reply: ${textOf(item)}`;
  if (item?.role !== 'questions' || item.questions.status !== 'pending') return 'The reply has ended.';
  return `There are questions for you. ${item.questions.list.map(({ text }) => text).join(' ')}`;
}
