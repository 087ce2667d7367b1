// One case result. When it is opened, it reads the whole record with its trace.

import { h } from '../../dom.js';
import * as words from '../words.js';
import { hasPassed } from './cases.js';
import { box, isEmpty, value } from './value.js';

/** Maximum trace nodes shown. */
const NODES = 100;

const PHASES = {
  headroom: 'headroom',
  train: 'minibatch',
  race: 'race',
  val: 'scoring',
  final: 'final',
  test: 'test',
  calibration: 'calibration',
};

/**
 * @param {object} row an event's payload or a record
 * @returns {HTMLLIElement}
 */
export function caseRow(api, run, row) {
  const passed = hasPassed(row);
  const who = row.candidate_id === null || row.candidate_id === undefined ? null : h('span', {}, row.candidate_id === 0 ? 'Seed' : `Candidate ${row.candidate_id}`);
  const phase = who !== null && row.phase ? h('span', {}, PHASES[row.phase] ?? row.phase) : null;
  const body = h('div', { class: 'entry-body' }, h('p', { class: 'quiet' }, 'Reading …'));
  const details = h(
    'details',
    { class: 'entry' },
    h(
      'summary',
      {},
      h('span', { class: 'badge', 'data-kind': passed ? 'good' : 'bad' }, passed ? 'Passed' : 'Failed'),
      h('span', { class: 'entry-name' }, 'Case ', h('bdi', {}, row.case_id)),
      h('span', { class: 'entry-facts' }, who, phase, h('span', {}, words.duration(row.duration_ms / 1000))),
      h('span', { class: 'entry-line', dir: 'auto' }, line(row)),
    ),
    body,
  );
  details.addEventListener('toggle', () => {
    if (details.open && !details.dataset.read) fill(api, run, row, details, body);
  });
  return h('li', {}, details);
}

/** The case in one line: its inputs. */
function line({ inputs, error }) {
  if (error) return error.message;
  const text = typeof inputs?.message === 'string' ? inputs.message : JSON.stringify(inputs);
  return (text ?? '').slice(0, 200);
}

async function fill(api, run, row, details, body) {
  details.dataset.read = 'yes';
  try {
    const filter = { candidate: row.candidate_id ?? null, case: row.case_index, trace: true, limit: 50 };
    const { data } = await api.cases(run, filter);
    const found = data.find(({ sample }) => sample === row.sample);
    body.replaceChildren(...(found ? parts(found) : [h('p', {}, 'This result is no longer stored.')]));
  } catch (failure) {
    delete details.dataset.read;
    body.replaceChildren(h('p', { class: 'bad-text' }, words.plain(failure), ' Close and open it to try again.'));
  }
}

function parts(record) {
  const output = record.output_text || (isEmpty(record.output) ? null : record.output);
  return [
    verdicts(record.evaluations),
    value('Inputs', record.inputs),
    isEmpty(record.expected_output) ? null : value('Expected output', record.expected_output),
    output === null ? null : value('Output', output),
    record.error ? h('p', { class: 'bad-text' }, h('code', {}, record.error.code), ' ', record.error.message) : null,
    trace(record.trace),
  ].filter((part) => part !== null);
}

function verdicts(evaluations) {
  const rows = Object.entries(evaluations).map(([id, verdict]) => {
    const state = verdict.skip ? ['', 'Does not count'] : verdict.passed ? ['good', 'Passed'] : ['bad', 'Failed'];
    const reason = verdict.error ?? verdict.reason;
    return h(
      'li',
      {},
      h('span', { class: 'badge', 'data-kind': state[0] }, state[1]),
      h('code', { dir: 'auto' }, id),
      h('span', { class: 'number' }, words.score(verdict.score)),
      reason ? h('p', { dir: 'auto' }, reason) : null,
    );
  });
  return h('div', {}, h('h4', {}, 'Verdicts'), h('ul', { class: 'verdicts' }, ...rows));
}

function trace(nodes) {
  if (!Array.isArray(nodes) || nodes.length === 0) return null;
  const rest = nodes.length > NODES ? h('p', { class: 'quiet small' }, `${nodes.length - NODES} more nodes.`) : null;
  return h('div', {}, h('h4', {}, 'Trace'), h('ol', { class: 'trace' }, ...nodes.slice(0, NODES).map(node)), rest);
}

function node(node) {
  const { node: name, type, visit, attempt, inputs, output, error, duration_ms: took, prompts_read: prompts, llm } = node;
  // A trace may lack some of these.
  const facts = [
    type,
    visit > 1 ? `visit ${visit}` : null,
    attempt > 1 ? `attempt ${attempt}` : null,
    typeof took === 'number' ? words.duration(took / 1000) : null,
  ].filter((fact) => fact);
  const read = Array.isArray(prompts) && prompts.length > 0 ? h('p', { class: 'quiet small' }, `Reads the ${prompts.length === 1 ? 'prompt' : 'prompts'} ${prompts.join(', ')}.`) : null;
  const content = h('div', { class: 'entry-body' });
  const details = h(
    'details',
    { class: 'node' },
    h('summary', {}, h('code', { dir: 'auto' }, name), h('span', { class: 'quiet' }, facts.length > 0 ? ` ${facts.join(', ')}` : ''), error ? h('span', { class: 'badge', 'data-kind': 'bad' }, 'Failed') : null),
    content,
  );
  // A trace may be long, so a node is drawn only when it is opened.
  details.addEventListener(
    'toggle',
    () => {
      const made = [
        read,
        isEmpty(inputs) ? null : value('Inputs', inputs),
        ...(Array.isArray(llm) ? llm.map(call) : []),
        isEmpty(output) ? null : value('Output', output),
        error ? value('Error', error) : null,
      ];
      content.replaceChildren(...made.filter((part) => part !== null));
    },
    { once: true },
  );
  return h('li', {}, details);
}

function call({ model, messages, reply }) {
  const said = (Array.isArray(messages) ? messages : []).map(({ role, content }) => `${role}:\n${typeof content === 'string' ? content : JSON.stringify(content, null, 2)}`);
  return h(
    'div',
    { class: 'value' },
    h('h4', {}, 'Model ', h('code', { dir: 'auto' }, model ?? '')),
    box('Request to the model', said.join('\n\n').slice(0, 20_000)),
    isEmpty(reply) ? null : value('Reply', reply),
  );
}
