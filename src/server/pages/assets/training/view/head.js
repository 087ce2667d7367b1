// The header of a run: state and buttons, progress, result, warnings.

import { h, set, setText } from '../../dom.js';
import { ask } from '../../chat/view/dialog.js';
import { download } from '../../chat/view/download.js';
import * as words from '../words.js';
import { texts } from './prompts.js';

const ACTIVE = ['queued', 'running', 'waiting', 'paused'];

export class Head {
  #api;
  #state;
  #page;
  #onRecord;
  #badge = h('span', { class: 'badge' });
  #hint = h('p', { class: 'quiet small' });
  #said = h('p', { class: 'said', role: 'status' });
  #bar = h('progress', { class: 'bar', max: '1', value: '0', 'aria-label': 'Cases that are done' });
  #facts = h('dl', { class: 'facts' });
  #result = h('div', { class: 'result', hidden: true });
  #warnings = h('ul', { class: 'warnings', 'aria-label': 'Warnings' });
  #buttons;

  /** @param {(record: object) => void} onRecord receives the record after the run is paused, resumed or cancelled */
  constructor(api, state, page, onRecord) {
    this.#api = api;
    this.#state = state;
    this.#page = page;
    this.#onRecord = onRecord;
    const { record } = state;
    this.#buttons = {
      pause: button('pause', 'Pause', () => this.#control('pause')),
      resume: button('resume', 'Resume', () => this.#control('resume')),
      cancel: button('cancel', 'Cancel the run', () => this.#cancel()),
      report: button('report', 'Download the report', () => this.#report()),
    };
    this.#buttons.cancel.classList.add('danger');
    this.element = h(
      'section',
      { class: 'part head', 'aria-labelledby': 'run-title' },
      h(
        'div',
        { class: 'title' },
        h('h2', { id: 'run-title', tabindex: '-1' }, title(record)),
        this.#badge,
        h('div', { class: 'controls' }, ...Object.values(this.#buttons)),
      ),
      h('p', { class: 'quiet small' }, about(record)),
      this.#hint,
      this.#said,
      this.#bar,
      this.#facts,
      this.#result,
      this.#warnings,
    );
    this.render();
  }

  render() {
    const { record, progress, isOver, pauses, warnings } = this.#state;
    const { status } = record;
    setText(this.#badge, words.state(status));
    set(this.#badge, 'data-kind', { succeeded: 'good', failed: 'bad', running: 'live' }[status] ?? null);
    setText(this.#hint, words.stateHint(status, pauses));
    set(this.#hint, 'hidden', this.#hint.textContent === '');
    const may = this.#page.may_execute;
    set(this.#buttons.pause, 'hidden', !may || !['queued', 'running', 'waiting'].includes(status));
    set(this.#buttons.resume, 'hidden', !may || status !== 'paused');
    set(this.#buttons.cancel, 'hidden', !may || !ACTIVE.includes(status));
    set(this.#buttons.report, 'hidden', !isOver);
    set(this.#bar, 'max', Math.max(progress.planned, 1));
    set(this.#bar, 'value', isOver && status === 'succeeded' ? Math.max(progress.planned, 1) : progress.done);
    this.#facts.replaceChildren(...facts(this.#state));
    this.#showResult();
    this.#warnings.replaceChildren(...warnings.map(({ code, message }) => h('li', {}, h('code', {}, code), ' ', h('span', { dir: 'auto' }, message))));
    set(this.#warnings, 'hidden', warnings.length === 0);
  }

  #showResult() {
    const { record, result, isOver } = this.#state;
    if (!isOver && result === null) return;
    const found = resultOf(record, result);
    const prompts = result?.prompts && result.outcome === 'improved' ? texts(Object.entries(result.prompts)) : null;
    const open = this.#result.querySelector('details')?.open ?? false;
    this.#result.replaceChildren(
      ...[h('h3', {}, found.title), found.text ? h('p', { dir: 'auto' }, found.text) : null, prompts].filter((part) => part !== null),
    );
    if (prompts) prompts.open = open;
    set(this.#result, 'data-kind', found.kind);
    set(this.#result, 'hidden', false);
  }

  async #control(what) {
    await this.#once(this.#buttons[what], async () => this.#onRecord(await this.#api.control(this.#state.record.id, what)));
    // A hidden button loses the focus, so focus the title.
    if (document.activeElement === document.body || document.activeElement?.hidden) document.getElementById('run-title')?.focus();
  }

  async #cancel() {
    const about = title(this.#state.record);
    const sure = await ask({ title: 'Cancel this run?', about, text: 'ends early. Its checkpoints are kept.', yes: 'Cancel the run', no: 'Keep it running' });
    if (sure) await this.#control('cancel');
  }

  #report() {
    return this.#once(this.#buttons.report, async () => {
      const text = await this.#api.report(this.#state.record.id);
      download({ name: `training-${this.#state.record.id}.html`, text, type: 'text/html' });
    });
  }

  async #once(button, work) {
    if (button.getAttribute('aria-disabled') === 'true') return;
    set(button, 'aria-disabled', 'true');
    setText(this.#said, '');
    set(this.#said, 'data-kind', null);
    try {
      await work();
    } catch (failure) {
      setText(this.#said, words.plain(failure));
      set(this.#said, 'data-kind', 'bad');
    } finally {
      set(button, 'aria-disabled', null);
    }
  }
}

function button(name, label, onclick) {
  return h('button', { type: 'button', class: 'button small', 'data-control': name, hidden: true, onclick }, label);
}

/** The title of a run on the page. */
export function title({ kind, optimizer }) {
  return optimizer?.name ? `${words.kind(kind)} with ${optimizer.name}` : words.kind(kind);
}

function about({ version, dataset, created_at: created, origin_run_id: origin }) {
  const of = version === null ? 'a draft' : `version ${version}`;
  return `${words.plural(dataset.n_cases, 'case')}, ${of}, started ${words.time(created)}${origin ? ', results of an earlier run judged again' : ''}`;
}

function facts({ record, progress, isOver }) {
  const { done, planned, running_mean: mean, eta_s: left, llm_calls: calls, cost, budget_left: budget } = progress;
  const shown = [
    ['Cases', isOver ? words.count(done) : `${words.count(done)} of about ${words.count(planned)}`],
    ['Best score', words.score(record.kind === 'training' ? progress.best_score ?? record.best_score : record.best_score)],
    isOver ? null : ['Mean of this step', words.score(mean)],
    ['Model calls', words.count(calls)],
    ['Cost', words.money(cost)],
    isOver ? null : ['Time left', record.status === 'running' ? words.duration(left) : '–'],
    budget?.llm_calls !== null && budget?.llm_calls !== undefined && !isOver ? ['Calls left', words.count(budget.llm_calls)] : null,
    budget?.cost !== null && budget?.cost !== undefined && !isOver ? ['Budget left', words.money(budget.cost)] : null,
  ];
  return shown.filter((fact) => fact !== null).map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, text)));
}

function resultOf(record, result) {
  if (record.status === 'failed') {
    return { title: 'Failed', text: record.error ? `${record.error.message} (${record.error.code})` : '', kind: 'bad' };
  }
  if (record.kind === 'evaluation') {
    const text = result?.n_cases === 0 ? `No case was executed. ${words.stop(result.stop_reason)}` : result
      ? `The mean score of ${words.plural(result.n_cases, 'case')} is ${words.score(result.score)}; ${Math.round(result.pass_rate * 100)} % pass. ${words.stop(result.stop_reason)}`
      : words.stop(record.stop_reason);
    return { title: record.status === 'cancelled' ? 'Cancelled' : `Score ${words.score(result?.score ?? record.best_score)}`, text: text.trim(), kind: null };
  }
  const found = words.outcome(result ?? { outcome: record.outcome, stop_reason: record.stop_reason ?? record.status });
  return { ...found, kind: (result ?? record).outcome === 'improved' ? 'good' : null };
}
