// The list of candidates: their origin, their changes, and the reason why each was kept or rejected.

import { h, set, setText } from '../../dom.js';
import * as words from '../words.js';
import { diff } from './diff.js';
import { GrowingList } from './growing.js';

const PAGE = 50;

export class Candidates {
  #api;
  #state;
  #recent;
  #note = h('p', { class: 'quiet small', role: 'status' });
  #earlier = h('ul', { class: 'entries', 'aria-label': 'Candidates from the first one on' });
  #earlierPart;
  #more = h('button', { type: 'button', class: 'button small', onclick: () => this.#read() }, 'Show the candidates from the first one on');
  #cursor = null;

  constructor(api, state) {
    this.#api = api;
    this.#state = state;
    this.#recent = new GrowingList({ label: 'Candidates, newest first', key: ({ candidate_id: id }) => String(id), make: row });
    this.#earlierPart = h('div', { class: 'earlier', hidden: true }, this.#earlier, this.#more);
    this.element = h(
      'section',
      { class: 'part', id: 'candidates', 'aria-labelledby': 'candidates-title' },
      h('h3', { id: 'candidates-title' }, 'Candidates'),
      this.#recent.element,
      this.#note,
      this.#earlierPart,
    );
    this.render();
  }

  render() {
    const { candidates, candidatesSeen, isOver } = this.#state;
    this.#recent.show(candidates);
    const hidden = candidatesSeen > candidates.length;
    const empty = isOver ? 'No candidate was compared.' : 'No candidate yet: the first prompts are measured first.';
    setText(this.#note, candidates.length === 0 ? empty : hidden ? `The newest ${candidates.length} of ${words.count(candidatesSeen)}.` : '');
    if (hidden) set(this.#earlierPart, 'hidden', false);
  }

  async #read() {
    try {
      const { data, next_cursor: next } = await this.#api.candidates(this.#state.record.id, { limit: PAGE, cursor: this.#cursor });
      this.#earlier.replaceChildren(...data.map(row));
      this.#cursor = next ?? null;
      setText(this.#more, next ? 'Show the next candidates' : 'Show the first ones again');
    } catch (failure) {
      setText(this.#note, words.plain(failure));
    }
  }
}

function row(candidate) {
  const { candidate_id: id, parents, prompts_changed: changed, rationale, decision, reason, n, mean_diff: diffMean, epoch } = candidate;
  const accepted = decision === 'accepted';
  return h(
    'li',
    {},
    h(
      'details',
      { class: 'entry' },
      h(
        'summary',
        {},
        h('span', { class: 'badge', 'data-kind': accepted ? 'good' : '' }, accepted ? 'Accepted' : 'Rejected'),
        h('span', { class: 'entry-name' }, `Candidate ${id}`),
        h('span', { class: 'entry-facts' }, h('span', { class: 'number' }, `${words.difference(diffMean)} on ${words.plural(n, 'case')}`), h('span', {}, origin(parents)), h('span', {}, `epoch ${epoch}`)),
        h('span', { class: 'entry-line', dir: 'auto' }, reason),
      ),
      h(
        'div',
        { class: 'entry-body' },
        rationale ? h('p', { dir: 'auto' }, rationale) : null,
        ...(changed.length === 0 ? [h('p', { class: 'quiet' }, 'It changes no prompt.')] : changed.map(diff)),
      ),
    ),
  );
}

function origin(parents) {
  if (parents.length === 0) return 'from the seed';
  return `from ${parents.map((parent) => (parent === 0 ? 'the seed' : `candidate ${parent}`)).join(' and ')}`;
}
