// The card of a client tool call: its progress and buttons while it is pending, then its output.

import { h, set, setText } from '../../dom.js';
import { shownJson } from '../tools.js';

/**
 * @typedef {object} ToolsPort
 * @property {import('../tools.js').ToolRunner} runner
 * @property {() => void} onLeave called if the focused element of a card was removed
 */

const SAYS = { idle: 'This conversation waits for the page: ', running: 'Running: ', sending: 'Sending the result: ' };

export class CallView {
  /** @param {ToolsPort} port */
  constructor({ runner, onLeave }) {
    this.runner = runner;
    this.onLeave = onLeave;
    this.says = h('span');
    this.name = h('bdi', { class: 'call-name' });
    this.error = h('p', { class: 'call-error', 'aria-live': 'polite', dir: 'auto' });
    this.run = h('button', { type: 'button', class: 'button small', 'data-does': 'run', onclick: () => this.#run() });
    this.skip = h('button', { type: 'button', class: 'button small', 'data-does': 'skip', onclick: () => this.runner.skip(this.about) }, 'Skip');
    this.ways = h('div', { class: 'ways' }, this.run, this.skip);
    this.closed = h('p', { class: 'state', dir: 'auto' });
    this.card = h('div', { class: 'call-card' }, h('p', { 'aria-live': 'polite' }, this.says, this.name), this.closed, this.error, this.ways);
    this.summary = h('summary', {});
    this.detail = h('div', { class: 'call-detail' });
    this.details = h('details', { class: 'call-used' }, this.summary, this.detail);
    this.element = h('div', { class: 'call' }, this.card, this.details);
  }

  /**
   * @param {import('../conversation.js').Item} item
   * @param {{thread: object | null, isEnd: boolean, isFree: boolean, lock: {reason: string, forGood: boolean} | null}} about
   * `isEnd`: it is the last item; `isFree`: no turn is running
   */
  show(item, { thread, isEnd, isFree, lock }) {
    this.about = { thread: thread?.id ?? '', id: item.id, call: item.call };
    const isOpen = item.call.isPending && isEnd;
    const focused = this.card.contains(document.activeElement) ? document.activeElement : null;
    set(this.card, 'hidden', !isOpen);
    set(this.details, 'hidden', isOpen);
    if (isOpen) {
      this.#showCard(item.call, isFree, lock?.forGood === true ? lock.reason : '');
      if (focused !== null && focused.hidden) this.onLeave();
      return;
    }
    if (focused !== null) this.summary.focus();
    if (item.stored === this.stored) return;
    this.stored = item.stored;
    this.summary.replaceChildren(item.call.isPending ? 'Not used: ' : 'Used ', h('bdi', { class: 'call-name' }, item.call.name));
    this.detail.replaceChildren(...part('Arguments', item.call.params), ...(item.call.isPending ? [] : part('Output', item.call.output)));
  }

  #showCard({ name }, isFree, closed) {
    const { state, error, hasResult } = this.runner.progressOf(this.about.id);
    setText(this.says, SAYS[state]);
    setText(this.name, name);
    setText(this.error, error ?? '');
    setText(this.closed, closed);
    setText(this.run, hasResult ? 'Send the result' : 'Run');
    const canAct = isFree && closed === '' && state !== 'sending';
    set(this.run, 'hidden', !canAct || state !== 'idle' || !(hasResult || this.runner.canRun));
    set(this.skip, 'hidden', !canAct);
    set(this.element, 'data-state', state);
  }

  #run() {
    this.runner.run(this.about);
    // A running call may be skipped.
    if (!this.skip.hidden) this.skip.focus();
  }
}

function part(title, value) {
  return value === undefined ? [] : [h('h3', {}, title), h('pre', { dir: 'auto' }, shownJson(value))];
}
