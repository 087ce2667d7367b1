// The trainings page of a workflow: the list of runs, and the run in the address.

import { h, set, setText } from '../dom.js';
import { Api, PageTokens } from './api.js';
import { followRun } from './follow.js';
import { RunState } from './state.js';
import { plain } from './words.js';
import { Candidates } from './view/candidates.js';
import { Cases } from './view/cases.js';
import { Checkpoints } from './view/checkpoints.js';
import { Curve } from './view/curve.js';
import { Head, title } from './view/head.js';
import { Runs } from './view/runs.js';

/** Minimum intervals between two redraws and between two announcements, in ms. */
const DRAW_EVERY = 200;
const SPEAK_EVERY = 2_000;
/** Delays before the record is read after a change of state, and before a failed read is retried, in ms. */
const RECORD_AFTER = 300;
const RECORD_RETRY = 2_000;

const page = JSON.parse(document.body.dataset.page);
const tokens = page.user === null ? null : new PageTokens();
const api = new Api(page.id, tokens);
const selected = new URLSearchParams(location.search).get('run');
const problem = document.getElementById('problem');
const root = document.getElementById('run');

/** Shows an error, with a button to sign in or to load the page again. */
function fail(failure) {
  const login = new URL(`../../login?return_to=${encodeURIComponent(location.pathname + location.search)}`, location.href);
  const way =
    failure.status === 401
      ? h('a', { class: 'button small', href: login.href }, 'Sign in')
      : h('button', { type: 'button', class: 'button small', onclick: () => location.reload() }, 'Load again');
  problem.replaceChildren(h('span', { class: 'words' }, plain(failure)), h('span', { class: 'detail' }, failure.code ?? ''), way);
  set(problem, 'hidden', false);
}

let spoken = 0;
let toSay = null;

/** Announces the latest text to screen readers, at a limited rate. */
function tell(text) {
  const waiting = toSay !== null;
  toSay = text;
  if (waiting) return;
  const pause = Math.max(0, spoken + SPEAK_EVERY - performance.now());
  setTimeout(() => {
    spoken = performance.now();
    setText(document.getElementById('told'), toSay);
    toSay = null;
  }, pause);
}

class RunView {
  #state;
  #parts;
  #changed = new Set();
  #timer = null;
  #recordTimer = null;
  #link = h('p', { class: 'link', role: 'status', hidden: true });
  #seedAsked = 0;

  constructor(record, runs) {
    this.#state = new RunState(record);
    this.runs = runs;
    const state = this.#state;
    const head = new Head(api, state, page, (record) => this.#update(record));
    const cases = new Cases(api, state);
    this.#parts = state.isTraining
      ? { head, curve: new Curve(state), checkpoints: new Checkpoints(api, state, page, tell), candidates: new Candidates(api, state), cases }
      : { head, cases };
    const back = h('a', { class: 'back', href: location.pathname }, 'All runs');
    root.replaceChildren(back, this.#link, ...Object.values(this.#parts).map(({ element }) => element));
    document.title = `${title(record)} · ${document.title}`;
    this.#parts.curve?.render();
  }

  /** Reads the stored data, then follows the events. */
  async start() {
    const { id } = this.#state.record;
    if (this.#state.isTraining) {
      const [checkpoints, candidates] = await Promise.all([api.checkpoints(), api.candidates(id)]);
      this.#state.addCheckpoints(checkpoints);
      this.#state.addCandidates(candidates.data);
      this.#draw('checkpoints', 'candidates', 'curve');
    }
    const abort = new AbortController();
    await followRun({
      open: (after, signal) => api.events(id, after, signal),
      onEvent: (event) => this.#happened(event),
      onLink: ({ up, error }) => this.#connected(up, error),
      signal: abort.signal,
    });
    await this.#read();
  }

  #happened(event) {
    const part = this.#state.apply(event);
    // The record names the best checkpoint of all runs.
    if (part === 'record' || (part === 'checkpoints' && !this.#state.isOver)) this.#readSoon();
    if (event.type === 'training_candidate' || event.type === 'training_epoch_complete') this.#seed();
    if (!this.#state.isOver) announce(event);
    switch (part) {
      case 'results':
        return this.#draw('head', 'cases');
      case 'curve':
      case 'checkpoints':
        return this.#draw('head', 'curve', 'checkpoints');
      case 'candidates':
        return this.#draw('candidates');
      case null:
        return undefined;
      default:
        return this.#draw('head', 'curve');
    }
  }

  /** Reads the seed results: the first prompts are scored during the run, and their score so far is shown until it ends. */
  async #seed() {
    const { record, seed } = this.#state;
    if (seed !== null && seed.n === null) return;
    const asked = (this.#seedAsked += 1);
    await new Promise((resolve) => setTimeout(resolve, RECORD_AFTER));
    if (asked !== this.#seedAsked) return;
    // Ignore errors: only the seed line of the curve needs these results.
    const found = await api.cases(record.id, { candidate: 0, limit: 200 }).catch(() => null);
    if (found === null) return;
    this.#state.setSeedResults(found.data);
    this.#draw('curve');
  }

  #readSoon() {
    this.#recordTimer ??= setTimeout(() => this.#read().catch((failure) => this.#unread(failure)), RECORD_AFTER);
  }

  /** Handles a failed read of the record: retries it if the failure may be temporary. */
  #unread(failure) {
    if (failure.passes !== true) fail(failure);
    else setTimeout(() => this.#readSoon(), RECORD_RETRY);
  }

  async #read() {
    clearTimeout(this.#recordTimer);
    this.#recordTimer = null;
    this.#update(await api.record(this.#state.record.id));
  }

  #update(record) {
    const before = this.#state.record.status;
    this.#state.update(record);
    if (before !== record.status) this.runs.read();
    this.#draw('head', 'checkpoints');
    if (this.#state.isOver) this.#parts.cases.ended();
  }

  #connected(up, error) {
    setText(this.#link, up ? '' : `The connection is interrupted; connecting again … ${error ? plain(error) : ''}`.trim());
    set(this.#link, 'hidden', up);
  }

  #draw(...parts) {
    for (const part of parts) this.#changed.add(part);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const changed = [...this.#changed];
      this.#changed.clear();
      for (const part of changed) this.#parts[part]?.render();
    }, DRAW_EVERY);
  }
}

function announce({ type, payload }) {
  if (type === 'training_epoch_complete') tell(`Epoch ${payload.epoch} has ended. The best score is ${payload.best_score.toFixed(3)}.`);
  if (type === 'training_paused') tell('The run is paused.');
  if (type === 'training_resumed') tell('The run continues.');
  if (type === 'training_result') tell('The training has ended.');
}

function showEmpty(runs) {
  const text = runs.length === 0 ? 'Start a training in a terminal:' : 'Choose a run to see its curve, its candidates and its checkpoints, or start another one:';
  const command = `callboard train ${page.handle} --dataset cases.csv --evaluator builtin:exact_match`;
  root.replaceChildren(
    h('section', { class: 'part empty', 'aria-labelledby': 'empty-title' }, h('h2', { id: 'empty-title' }, runs.length === 0 ? 'No training yet' : 'Trainings'), h('p', {}, text), h('pre', { class: 'text-box', tabindex: '0', role: 'group', 'aria-label': 'Command that starts a training' }, command)),
  );
}

async function begin() {
  setText(document.getElementById('account'), page.user ?? '');
  for (const type of ['pointerdown', 'keydown']) addEventListener(type, () => tokens?.touched(), { passive: true });
  set(document.getElementById('layout'), 'data-shows', selected === null ? 'list' : 'run');
  const runs = new Runs(api, selected, document.getElementById('runs'));
  const listed = runs.read();
  if (selected === null) return showEmpty(await listed);
  const view = new RunView(await api.record(selected), runs);
  return view.start();
}

begin().catch((failure) => {
  if (root.querySelector('.page-note')) root.replaceChildren();
  fail(failure);
});
