// Case results: the newest ones while a run executes, and all of them from the service's list.

import { h, set, setText } from '../../dom.js';
import * as words from '../words.js';
import { GrowingList } from './growing.js';
import { caseRow } from './case.js';

/** Results per page, and the maximum that the page shows. */
const PAGE = 25;
const MOST = 200;

export class Cases {
  #api;
  #state;
  #list;
  #listed = [];
  #cursor = null;
  #reading = 0;
  #more = h('button', { type: 'button', class: 'button small', hidden: true, onclick: () => this.#read(true) }, 'Show more');
  #note = h('p', { class: 'quiet small', role: 'status' });
  #order = select('List', [['newest', 'Newest results'], ['all', 'Every result']]);
  #passed = select('Result', [['failed', 'Failed'], ['passed', 'Passed'], ['', 'All']]);
  #split = select('Split', [['', 'All'], ['train', 'Training'], ['val', 'Scoring'], ['test', 'Test']]);
  #candidate = h('input', { type: 'text', inputmode: 'numeric', size: '6', pattern: '[0-9]*', placeholder: 'any', autocomplete: 'off' });

  constructor(api, state) {
    this.#api = api;
    this.#state = state;
    const run = state.record.id;
    this.#list = new GrowingList({
      label: 'Results of cases',
      key: ({ candidate_id: candidate, case_index: index, sample }) => `${candidate ?? 0}.${index}.${sample}`,
      make: (row) => caseRow(api, run, row),
    });
    const candidate = state.isTraining ? field('Candidate', this.#candidate) : null;
    const filters = h(
      'div',
      { class: 'filters' },
      field('List', this.#order),
      field('Result', this.#passed),
      state.isTraining ? field('Split', this.#split) : null,
      candidate,
    );
    filters.addEventListener('change', () => this.#start());
    this.element = h(
      'section',
      { class: 'part', id: 'cases', 'aria-labelledby': 'cases-title' },
      h('h3', { id: 'cases-title' }, 'Cases'),
      filters,
      this.#list.element,
      this.#note,
      this.#more,
    );
    if (state.isOver) this.#ended();
    else this.#start();
  }

  /** Shows new results. */
  render() {
    if (this.#order.value === 'newest') this.#newest(true);
  }

  /** Switches to the complete list after the run has ended. */
  ended() {
    if (!this.#order.querySelector('[value=newest]')) return;
    this.#ended();
  }

  #ended() {
    const wasNewest = this.#order.value === 'newest';
    this.#order.querySelector('[value=newest]').remove();
    this.#order.value = 'all';
    set(this.#order.closest('label'), 'hidden', true);
    if (wasNewest) this.#start();
  }

  #start() {
    this.#listed = [];
    this.#cursor = null;
    this.#reading += 1;
    if (this.#order.value === 'newest') this.#newest(false);
    else this.#read(false);
  }

  get #filter() {
    const candidate = this.#candidate.value.trim();
    return {
      failed: this.#passed.value === '' ? null : this.#passed.value === 'failed',
      split: this.#split.value || null,
      candidate: /^\d{1,6}$/.test(candidate) ? Number(candidate) : null,
    };
  }

  /** @param {boolean} live whether new results caused the call */
  #newest(live) {
    const { failed, split, candidate } = this.#filter;
    const rows = this.#state.results.filter(
      (row) =>
        (failed === null || failed === !hasPassed(row)) &&
        (split === null || row.split === split) &&
        (candidate === null || row.candidate_id === candidate),
    );
    this.#list.show(rows, { now: !live });
    set(this.#more, 'hidden', true);
    const seen = this.#state.resultsSeen;
    const of = seen > this.#state.results.length ? ` Of ${words.count(seen)} results, the page keeps the newest ${this.#state.results.length}; “Every result” has all.` : '';
    this.#tell(rows.length === 0 ? (seen === 0 ? 'No results yet.' : `None of the newest results matches.${of}`) : of);
  }

  async #read(further) {
    const reading = this.#reading;
    set(this.#more, 'aria-disabled', 'true');
    if (!further) this.#tell('Reading the results …');
    try {
      const cursor = further ? this.#cursor : null;
      const { data, next_cursor: next } = await this.#api.cases(this.#state.record.id, { ...this.#filter, limit: PAGE, cursor });
      if (reading !== this.#reading) return;
      // Drop earlier results, because a long list would slow the page down.
      const all = further ? [...this.#listed, ...data] : data;
      const dropped = Math.max(0, all.length - MOST);
      this.#listed = all.slice(dropped);
      this.#cursor = next ?? null;
      this.#list.show(this.#listed, { now: true });
      set(this.#more, 'hidden', this.#cursor === null);
      this.#tell(this.#listed.length === 0 ? 'No result matches.' : dropped > 0 ? `The page shows ${MOST} results; choose a filter to see the ones before.` : '');
    } catch (failure) {
      if (reading === this.#reading) this.#tell(words.plain(failure));
    } finally {
      set(this.#more, 'aria-disabled', null);
    }
  }

  #tell(text) {
    setText(this.#note, text.trim());
  }
}

/** Whether a case has passed, by the verdicts in its record. */
export function hasPassed(row) {
  if (typeof row.passed === 'boolean') return row.passed;
  return !row.error && Object.values(row.evaluations).every(({ passed, skip }) => passed || skip);
}

function select(label, options) {
  return h('select', { name: label.toLowerCase() }, ...options.map(([value, text]) => h('option', { value }, text)));
}

function field(label, control) {
  return h('label', {}, h('span', {}, label), control);
}
