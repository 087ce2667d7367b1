// The list of trainings and evaluations of the workflow.

import { h, set, setText } from '../../dom.js';
import * as words from '../words.js';
import { title } from './head.js';

/** Poll interval of the list while a run on it executes, in ms. */
const POLL_INTERVAL = 10_000;
const ACTIVE = ['queued', 'running', 'waiting'];
const MOST = 300;

export class Runs {
  #api;
  #selected;
  #runs = [];
  #cursor = null;
  #list = h('ul', { class: 'run-list' });
  #note = h('p', { class: 'quiet small', role: 'status' });
  #more = h('button', { type: 'button', class: 'button small', hidden: true, onclick: () => this.#further() }, 'Show more');
  #timer = null;

  /** @param {string | null} selected id of the run that the page shows */
  constructor(api, selected, element) {
    this.#api = api;
    this.#selected = selected;
    element.append(h('h2', { class: 'runs-title' }, 'Runs'), this.#list, this.#note, this.#more);
  }

  /** Reads the newest runs. */
  async read() {
    clearTimeout(this.#timer);
    try {
      const { data, next_cursor: next } = await this.#api.runs();
      const ids = new Set(data.map(({ id }) => id));
      const older = this.#runs.filter(({ id }) => !ids.has(id) && this.#runs.length > data.length);
      if (older.length === 0) this.#cursor = next ?? null;
      this.#runs = [...data, ...older];
      setText(this.#note, this.#runs.length === 0 ? 'No training yet.' : '');
      this.#draw();
    } catch (failure) {
      setText(this.#note, words.plain(failure));
    }
    if (this.#runs.some(({ status }) => ACTIVE.includes(status))) {
      this.#timer = setTimeout(() => (document.hidden ? this.#again() : this.read()), POLL_INTERVAL);
    }
    return this.#runs;
  }

  #again() {
    document.addEventListener('visibilitychange', () => this.read(), { once: true });
  }

  async #further() {
    try {
      const { data, next_cursor: next } = await this.#api.runs({ cursor: this.#cursor });
      this.#runs = [...this.#runs, ...data].slice(0, MOST);
      this.#cursor = this.#runs.length < MOST ? next ?? null : null;
      this.#draw();
    } catch (failure) {
      setText(this.#note, words.plain(failure));
    }
  }

  #draw() {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    this.#list.replaceChildren(...this.#runs.map((run) => this.#row(run)));
    if (focused) [...this.#list.querySelectorAll('a')].find((link) => link.getAttribute('href') === focused)?.focus();
    set(this.#more, 'hidden', this.#cursor === null);
  }

  #row(run) {
    const { id, status, best_score: best, created_at: created } = run;
    const score = best === null ? '' : `best ${words.score(best)}`;
    return h(
      'li',
      {},
      h(
        'a',
        { href: `?run=${encodeURIComponent(id)}`, 'aria-current': id === this.#selected ? 'page' : null },
        h('span', { class: 'run-name' }, title(run)),
        h('span', { class: 'run-facts' }, h('span', { class: 'run-state', 'data-state': status }, words.state(status)), h('span', { class: 'number' }, score)),
        h('time', { class: 'run-time', datetime: created }, words.time(created)),
      ),
    );
  }
}
