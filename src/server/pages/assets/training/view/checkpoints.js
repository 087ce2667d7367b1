// The list of checkpoints, and the button that creates a workflow version from one.

import { h, set, setText } from '../../dom.js';
import * as words from '../words.js';
import { promptsOf } from './prompts.js';

export class Checkpoints {
  #api;
  #state;
  #page;
  #tell;
  #rows = new Map();
  #list = h('ol', { class: 'checkpoints', reversed: true });
  #empty = h('p', { class: 'quiet small' }, 'No checkpoint yet.');

  /** @param {{may_write: boolean}} page the caller's permissions; `tell` announces a text to screen readers */
  constructor(api, state, page, tell) {
    this.#api = api;
    this.#state = state;
    this.#page = page;
    this.#tell = tell;
    this.element = h(
      'section',
      { class: 'part', 'aria-labelledby': 'checkpoints-title' },
      h('h3', { id: 'checkpoints-title' }, 'Checkpoints'),
      page.may_write ? null : h('p', { class: 'quiet small' }, 'Making a version of a checkpoint needs the permission workflows:write.'),
      this.#list,
      this.#empty,
    );
    this.render();
  }

  render() {
    const { checkpoints, record } = this.#state;
    set(this.#empty, 'hidden', checkpoints.length > 0);
    let next = this.#list.firstElementChild;
    for (const checkpoint of checkpoints) {
      const row = this.#rows.get(checkpoint.id) ?? this.#make(checkpoint);
      this.#rows.set(checkpoint.id, row);
      if (row.element === next) next = next.nextElementSibling;
      else this.#list.insertBefore(row.element, next);
      set(row.best, 'hidden', record.best_checkpoint !== checkpoint.id);
    }
    for (const [id, { element }] of this.#rows) {
      if (checkpoints.some((checkpoint) => checkpoint.id === id)) continue;
      element.remove();
      this.#rows.delete(id);
    }
  }

  #make(checkpoint) {
    const { id, config_version: number, metrics, metadata } = checkpoint;
    const best = h('span', { class: 'badge', 'data-kind': 'good' }, 'Best');
    const said = h('p', { class: 'said', role: 'status' });
    const use = h('button', { type: 'button', class: 'button small', 'aria-label': `Use this one: checkpoint ${number}` }, 'Use this one');
    use.addEventListener('click', () => this.#use(checkpoint, use, said));
    const facts = Object.entries(metrics).map(([name, mean]) => h('span', {}, h('bdi', {}, name), ' ', h('span', { class: 'number' }, words.score(mean))));
    const of = metadata.candidate_id === 0 ? 'the seed' : `candidate ${metadata.candidate_id}`;
    const element = h(
      'li',
      { class: 'checkpoint', 'data-id': id },
      h(
        'div',
        { class: 'checkpoint-head' },
        h('strong', {}, `Checkpoint ${number}`),
        best,
        h('span', { class: 'number' }, words.score(metadata.score)),
        h('span', { class: 'entry-facts' }, h('span', {}, `epoch ${metadata.epoch}, ${of}, ${words.plural(metadata.n_cases, 'case')}`), ...facts),
        this.#page.may_write ? use : null,
      ),
      said,
      promptsOf(checkpoint.runnable_config?.prompts ?? {}),
    );
    return { element, best };
  }

  async #use({ id, config_version: number }, button, said) {
    if (button.getAttribute('aria-disabled') === 'true') return;
    set(button, 'aria-disabled', 'true');
    setText(said, 'Storing a version …');
    set(said, 'data-kind', null);
    try {
      const { version, created, warnings } = await this.#api.use(id);
      const stored = created ? `Stored as version ${version}.` : `Version ${version} has exactly these prompts already.`;
      const warned = (warnings ?? []).map(({ message }) => message).join(' ');
      setText(said, warned ? `${stored} ${warned}` : stored);
      set(said, 'data-kind', 'good');
      this.#tell(`Checkpoint ${number}: ${stored}`);
    } catch (failure) {
      setText(said, words.plain(failure));
      set(said, 'data-kind', 'bad');
    } finally {
      set(button, 'aria-disabled', null);
    }
  }
}
