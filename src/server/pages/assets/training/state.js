// The page's state of a run: its record, and the data from its events. Pure, and bounded for runs of any length.

/** Maximum kept entries, newest first. The lists of the service have the older ones. */
export const KEPT_RESULTS = 100;
export const KEPT_CANDIDATES = 100;
export const KEPT_WARNINGS = 30;
export const KEPT_CHECKPOINTS = 100;

/** Final states. */
const OVER = new Set(['succeeded', 'failed', 'cancelled']);

/** Events that change the run's state; the record has the new state. */
const TURNS = new Set(['run_started', 'training_paused', 'training_resumed', 'run_completed', 'run_failed', 'run_cancelled']);

export class RunState {
  /** @param {object} record */
  constructor(record) {
    this.record = record;
    this.progress = record.progress;
    this.started = null;
    this.epochs = [];
    this.candidates = [];
    this.candidatesSeen = 0;
    this.checkpoints = [];
    this.warnings = [];
    this.results = [];
    this.resultsSeen = 0;
    this.result = null;
    this.pauses = null;
    this.seedMean = null;
  }

  get isOver() {
    return OVER.has(this.record.status);
  }

  get isTraining() {
    return this.record.kind === 'training';
  }

  /** Applies a newer record. */
  update(record) {
    this.record = record;
    this.#progress(record.progress);
  }

  /**
   * @param {object} event
   * @returns {string | null} the changed part of the page; `record` if the record must be read again
   */
  apply({ type, payload }) {
    switch (type) {
      case 'training_started':
        this.started = payload;
        return 'head';
      case 'training_progress':
      case 'evaluation_progress':
        this.#progress(payload.progress);
        // A cached result is not a new one.
        if (payload.cached) return 'progress';
        this.resultsSeen += 1;
        this.results.unshift(payload);
        if (this.results.length > KEPT_RESULTS) this.results.length = KEPT_RESULTS;
        return 'results';
      case 'training_candidate':
        this.addCandidates([payload]);
        return 'candidates';
      case 'training_epoch_complete':
        this.epochs = [...this.epochs.filter(({ epoch }) => epoch !== payload.epoch), payload].sort((a, b) => a.epoch - b.epoch);
        return 'curve';
      case 'training_checkpoint':
        this.addCheckpoints([payload]);
        return 'checkpoints';
      case 'training_warning':
        if (!this.warnings.some(({ code, message }) => code === payload.code && message === payload.message)) {
          this.warnings = [payload, ...this.warnings].slice(0, KEPT_WARNINGS);
        }
        return 'head';
      case 'training_result':
      case 'evaluation_result':
        this.result = payload;
        return 'result';
      default:
        if (type === 'training_paused') this.pauses = payload.reason;
        return TURNS.has(type) ? 'record' : null;
    }
  }

  /** @param {object[]} found candidates in any order; each is kept once */
  addCandidates(found) {
    const known = new Set(this.candidates.map(({ candidate_id: id }) => id));
    const fresh = found.filter(({ candidate_id: id }) => !known.has(id));
    if (fresh.length === 0) return;
    this.candidatesSeen += fresh.length;
    this.candidates = [...fresh, ...this.candidates].sort((a, b) => b.candidate_id - a.candidate_id).slice(0, KEPT_CANDIDATES);
  }

  /** @param {object[]} found checkpoints of any run of the workflow */
  addCheckpoints(found) {
    const known = new Set(this.checkpoints.map(({ id }) => id));
    const fresh = found.filter(({ id, metadata }) => metadata?.run_id === this.record.id && !known.has(id));
    this.checkpoints = [...fresh, ...this.checkpoints].sort((a, b) => b.config_version - a.config_version).slice(0, KEPT_CHECKPOINTS);
  }

  /**
   * The best known score of the first prompts.
   * @returns {{score: number, n: number | null} | null} `n`: the number of scored cases; null if all are scored
   */
  get seed() {
    const final = this.result?.seed_vs_best?.val.seed;
    if (typeof final === 'number') return { score: final, n: null };
    const own = this.checkpoints.find(({ metadata }) => metadata.candidate_id === 0);
    if (typeof own?.metadata.score === 'number') return { score: own.metadata.score, n: null };
    return this.seedMean;
  }

  /** Sets the results of the first prompts; only the scoring cases count. */
  setSeedResults(cases) {
    const scoring = this.started?.splits?.val;
    const byCase = new Map();
    for (const { case_index: index, score } of cases) {
      if (typeof score !== 'number' || (scoring && !scoring.includes(index))) continue;
      byCase.set(index, [...(byCase.get(index) ?? []), score]);
    }
    const means = [...byCase.values()].map((scores) => mean(scores));
    this.seedMean = means.length === 0 ? null : { score: mean(means), n: means.length };
  }

  /** Ignores older progress: a page that is opened late reads earlier events again. */
  #progress(progress) {
    if (progress.done >= this.progress.done) this.progress = progress;
  }
}

function mean(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
