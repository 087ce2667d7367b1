// Visible texts for numbers, states and results. Pure.

/** @param {number | null | undefined} score from 0 to 1 */
export function score(score) {
  return typeof score === 'number' ? score.toFixed(3) : '–';
}

/** A score difference with its sign. */
export function difference(value) {
  if (typeof value !== 'number') return '–';
  const text = Math.abs(value).toFixed(3);
  return Number(text) === 0 ? '±0.000' : `${value < 0 ? '−' : '+'}${text}`;
}

/** @param {number} dollars */
export function money(dollars) {
  if (typeof dollars !== 'number' || dollars === 0) return '$0';
  return dollars < 1 ? `$${dollars.toPrecision(2)}` : `$${dollars.toFixed(2)}`;
}

/** @param {number | null} seconds */
export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '–';
  const whole = Math.round(seconds);
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const COUNT = new Intl.NumberFormat('en');
const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

export function count(number) {
  return COUNT.format(number ?? 0);
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

export function time(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.valueOf()) ? '' : TIME.format(date);
}

const STATES = {
  queued: 'Queued',
  running: 'Running',
  paused: 'Paused',
  waiting: 'Waiting',
  succeeded: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

export function state(status) {
  return STATES[status] ?? status;
}

/** An explanation of a state that is not obvious to the user. */
export function stateHint(status, pauses) {
  if (status === 'queued') return 'It starts when one of the other trainings ends.';
  if (status === 'waiting') return 'The model rejects calls at the moment. The run retries automatically.';
  if (status === 'paused' && pauses === 'rate_limited') return 'The model has refused all calls for a day. Resume it when it answers again.';
  if (status === 'paused') return 'Nothing is called until you resume it.';
  return '';
}

export function kind(kind) {
  return kind === 'evaluation' ? 'Evaluation' : 'Training';
}

const STOPS = {
  epochs: 'All epochs are done.',
  budget: 'The budget was used up.',
  max_seconds: 'The time limit was reached.',
  target_score: 'The target score was reached.',
  patience: 'The last epochs had no better prompts.',
  train_saturated: 'The training cases show nothing more to improve.',
  no_headroom: '',
  cancelled: 'It was cancelled.',
};

export function stop(reason) {
  return STOPS[reason] ?? (reason ? `It ended with ${reason}.` : '');
}

/**
 * The result of a training.
 * @param {{outcome: string | null, stop_reason: string | null, seed_vs_best?: object | null}} result
 * @returns {{title: string, text: string}}
 */
export function outcome({ outcome, stop_reason: reason, seed_vs_best: found }) {
  const ended = stop(reason);
  const compared = found ? comparison(found) : '';
  if (reason === 'cancelled' && !found) return { title: 'Cancelled', text: 'The checkpoints so far are kept.' };
  if (outcome === 'improved') return { title: 'Improved', text: join(compared, ended) };
  if (outcome === 'no_headroom') {
    return { title: 'No headroom', text: join('The first prompts are right on all scoring cases, so there is nothing to gain.', ended) };
  }
  if (outcome === 'no_significant_gain') {
    const none = 'Nothing was better by more than chance, so the first prompts are returned.';
    return { title: 'No significant gain', text: join(none, compared, ended) };
  }
  return { title: 'Ended', text: ended };
}

function comparison({ val, test, diff, ci95, n }) {
  const interval = Array.isArray(ci95) ? `, 95 % interval ${difference(ci95[0])} to ${difference(ci95[1])}` : '';
  const main = `The best prompts score ${score(val.best)} and the first ones ${score(val.seed)} on ${plural(n, 'case')} (${difference(diff)}${interval}).`;
  return test ? `${main} On the test cases: ${score(test.best)} and ${score(test.seed)}.` : main;
}

function join(...sentences) {
  return sentences.filter((sentence) => sentence).join(' ');
}

const FAILURES = {
  network: 'The service cannot be reached. Try again in a moment.',
  'auth.missing_token': 'You are no longer signed in.',
  'auth.missing_scope': 'You may not do this in this workspace.',
  'auth.workspace_forbidden': 'You are no longer a member of this workspace.',
  'workflow.not_found': 'This workflow was removed.',
  'workflow.archived': 'This workflow is archived, so it gets no new versions.',
  'run.not_found': 'The training was not found in this workflow. It may have been deleted after its retention.',
  'run.not_active': 'It has ended already.',
  'stream.not_found': 'The events of this run are no longer stored.',
  'checkpoint.not_found': 'This checkpoint no longer exists.',
  'request.not_found': 'This version of the service does not support it.',
};

/**
 * @param {{code: string, message?: string}} failure
 * @returns {string} a sentence or two
 */
export function plain({ code, message }) {
  const words = FAILURES[code];
  if (code === 'auth.missing_scope' && message && message !== code) return `${words} ${message}.`;
  return words ?? (message || 'Something went wrong. Try again in a moment.');
}
