//! The search itself: headroom test, proposals and their races, epoch by epoch, then the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::Purpose;

use super::board::Board;
use super::ending::{Finding, StopReason, end};
use super::fewshot::Examples;
use super::gepa::{self, Pool};
use super::lab::{Candidate, Lab, Phase, Round, SearchEvent, Stop};
use super::problem::Problem;
use super::proposal::{Changes, rationale_of};
use super::{fewshot, textgrad};
use crate::calibration::calibrate;
use crate::evaluators::Evaluator;
use crate::numbers::{float, mean, squared};
use crate::prompts::Demo;
use crate::request::OptimizerName;
use crate::rewrite::RejectedEdit;
use crate::score::Summary;
use crate::warning::Warning;

/// Maximum cases in the headroom test.
pub(crate) const HEADROOM: usize = 12;
/// Consecutive proposals without an improvable case before the search ends.
const SATURATED: u32 = 40;
/// Scores for the same case are noisy above this standard deviation.
const NOISY: f64 = 0.15;

/// Searches for better prompts.
///
/// # Errors
/// [`Stop::Lost`] if this process may not continue.
pub async fn search(problem: &Problem<'_>, lab: &dyn Lab) -> Result<Finding, Stop> {
    let mut search = Search::new(problem, lab);
    let ended = |ended: Result<StopReason, Stop>| match ended {
        Ok(reason) => Ok(reason),
        Err(stop) => stop.reason().ok_or(stop),
    };
    let mut reason = ended(search.run().await)?;
    if search.tries_demos_last(reason) {
        lab.release_demos();
        reason = ended(fewshot::at_the_end(&mut search).await.map(|()| reason))?;
    }
    end(search, reason).await
}

/// The search state.
pub(super) struct Search<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) lab: &'a dyn Lab,
    pub(super) board: Board<'a>,
    /// All candidates, the seed first.
    pub(super) candidates: Vec<Candidate>,
    /// The best candidate; unless it is the seed, all its scoring cases are executed.
    pub(super) best: Candidate,
    pub(super) epoch: u32,
    /// Consecutive proposals without an improvable case.
    pub(super) without_failure: u32,
    /// Rejected edits per prompt.
    pub(super) rejected: BTreeMap<String, Vec<RejectedEdit>>,
    /// Proposals so far.
    pub(super) proposals: u32,
    /// Candidates that were better than their parents.
    pub(super) accepted: BTreeSet<u32>,
    /// Candidates that a guard rejected: they never win.
    pub(super) guard_rejected: BTreeSet<u32>,
    /// Rationales by candidate number.
    pub(super) rationales: BTreeMap<u32, String>,
    /// Candidates with checkpoints, and their epochs.
    kept: BTreeSet<(u32, u32)>,
    /// The `gepa` pool.
    pub(super) pool: Pool,
    /// The `fewshot` state.
    pub(super) examples: Examples,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, lab: &'a dyn Lab) -> Self {
        let seed = problem.seed();
        Self {
            problem,
            lab,
            board: Board::new(problem, 0),
            candidates: vec![seed.clone()],
            best: seed,
            epoch: 0,
            without_failure: 0,
            rejected: BTreeMap::new(),
            proposals: 0,
            accepted: BTreeSet::new(),
            guard_rejected: BTreeSet::new(),
            rationales: BTreeMap::new(),
            kept: BTreeSet::new(),
            pool: Pool::new(problem.seed(), problem.splits.val.len()),
            examples: Examples::default(),
        }
    }

    async fn run(&mut self) -> Result<StopReason, Stop> {
        let problem = self.problem;
        if problem.splits.overfit_risk && problem.optimizer.name != OptimizerName::None {
            let message =
                "the same cases are used for training and for scoring, so the scores may be too high";
            self.publish(SearchEvent::Warning(Warning::new("overfit_risk", message))).await?;
        }
        calibrate(problem.cases, problem.evaluators, self.lab).await?;
        if !self.test_headroom().await? {
            return Ok(StopReason::NoHeadroom);
        }
        if problem.optimizer.name == OptimizerName::Auto && problem.trains_demos() {
            fewshot::at_the_start(self).await?;
        }
        let mut since_best = 0;
        for epoch in 1..=problem.optimizer.epochs {
            self.epoch = epoch;
            let before = self.best.clone();
            if !self.make_proposals().await? {
                self.end_epoch(epoch == problem.optimizer.epochs).await?;
                return Ok(StopReason::TrainSaturated);
            }
            if self.uses_pool() {
                gepa::end_epoch(self).await?;
            }
            let is_last = epoch == problem.optimizer.epochs || self.is_last_epoch();
            let score = self.end_epoch(is_last).await?;
            if problem.optimizer.target_score.is_some_and(|target| score >= target) {
                return Ok(StopReason::TargetScore);
            }
            let is_better = self.best.number != before.number
                && self.board.compared(&before, &self.best, &problem.splits.val).mean_diff
                    > problem.optimizer.min_delta;
            since_best = if is_better { 0 } else { since_best + 1 };
            if problem.optimizer.patience.is_some_and(|patience| since_best >= patience) {
                return Ok(StopReason::Patience);
            }
            if self.is_last_epoch() {
                break;
            }
        }
        Ok(StopReason::Epochs)
    }

    /// Returns whether any gain is possible. Otherwise warns, and stores the seed.
    async fn test_headroom(&mut self) -> Result<bool, Stop> {
        let val = &self.problem.splits.val;
        let first = val.get(..HEADROOM.min(val.len())).unwrap_or_default();
        self.execute(0, first, Phase::Headroom).await?;
        if !self.is_perfect_again(first).await? || !self.board.is_perfect(0, first) {
            return Ok(true);
        }
        self.execute(0, val, Phase::Headroom).await?;
        if !self.board.is_perfect(0, val) {
            return Ok(true);
        }
        let warning = Warning::new("no_headroom", "every scoring case is perfect already");
        self.publish(SearchEvent::Warning(warning)).await?;
        self.keep().await?;
        Ok(false)
    }

    /// Makes the epoch's proposals; stops and returns `false` if no training case can improve.
    async fn make_proposals(&mut self) -> Result<bool, Stop> {
        let optimizer = self.problem.optimizer.name;
        if optimizer == OptimizerName::None {
            return Ok(true);
        }
        for minibatch in self.minibatches() {
            self.proposals = self.proposals.saturating_add(1);
            if optimizer == OptimizerName::FewShot {
                if fewshot::is_complete(self) {
                    break;
                }
                let best = self.best.clone();
                fewshot::step(self, &best, &minibatch).await?;
            } else if self.uses_pool() {
                gepa::step(self, &minibatch).await?;
                if optimizer == OptimizerName::Auto && self.pool.is_stalled() {
                    // The next algorithm begins with the best candidate.
                    gepa::end_epoch(self).await?;
                }
            } else {
                textgrad::step(self, &minibatch).await?;
            }
            if self.without_failure >= SATURATED {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Repeats the headroom cases if a model judges, because its scores may differ; returns whether they are perfect
    /// again. Warns if scores differ much.
    async fn is_perfect_again(&mut self, places: &[usize]) -> Result<bool, Stop> {
        let problem = self.problem;
        let mut is_perfect = true;
        let mut samples = self.board.sample_scores(0, places);
        if problem.evaluators.iter().any(Evaluator::asks_model) {
            // Skips the search's and the final's sample numbers.
            let mut again = Board::new(problem, problem.optimizer.settings.repeats.saturating_mul(2));
            let round = self.round(Phase::Headroom);
            again.fill(self.lab, &problem.seed(), places, round).await?;
            is_perfect = again.is_perfect(0, places);
            samples.iter_mut().zip(again.sample_scores(0, places)).for_each(|(all, more)| all.extend(more));
        }
        let spread = spread(&samples);
        if spread > NOISY {
            let message = format!("the scores of the same case differ by {spread:.2} (standard deviation)");
            self.publish(SearchEvent::Warning(Warning::new("judge_noise_high", message))).await?;
        }
        Ok(is_perfect)
    }

    /// Whether further epochs would repeat this one.
    fn is_last_epoch(&self) -> bool {
        match self.problem.optimizer.name {
            OptimizerName::None => true,
            OptimizerName::FewShot => fewshot::is_complete(self),
            _ => false,
        }
    }

    /// Whether `auto` compares demos at the end: they were not significantly better than the seed at the start.
    fn tries_demos_last(&self, reason: StopReason) -> bool {
        let has_ended =
            !matches!(reason, StopReason::Cancelled | StopReason::NoHeadroom | StopReason::TargetScore);
        has_ended && self.problem.kept_for_demos() > 0 && !self.examples.came_first
    }

    /// Whether proposals come from the pool. `auto` continues with `textgrad` when the pool has stalled.
    fn uses_pool(&self) -> bool {
        match self.problem.optimizer.name {
            OptimizerName::Gepa => true,
            OptimizerName::Auto => !self.pool.is_stalled(),
            _ => false,
        }
    }

    /// The minibatches for this epoch's proposals.
    pub(super) fn minibatches(&self) -> Vec<Vec<usize>> {
        let train = &self.problem.splits.train;
        let size = self.problem.optimizer.minibatch_size.clamp(1, train.len().max(1));
        let order = self.problem.counter.shuffled(Purpose::Minibatch, u64::from(self.epoch), train.len());
        let places: Vec<usize> = order.into_iter().filter_map(|at| train.get(at).copied()).collect();
        let all: Vec<Vec<usize>> = places.chunks(size).map(<[usize]>::to_vec).collect();
        let count = match self.problem.optimizer.name {
            OptimizerName::FewShot => fewshot::proposals(self.problem.optimizer.epochs).max(all.len()),
            _ => all.len(),
        };
        all.into_iter().cycle().take(count).collect()
    }

    /// Creates the next candidate from `base` with other texts.
    pub(super) fn candidate(&mut self, base: &Candidate, changes: &Changes) -> Candidate {
        self.candidate_of(base, changes, (*base.demos).clone())
    }

    /// Creates the next candidate from `base` with other texts and demos.
    pub(super) fn candidate_of(
        &mut self,
        base: &Candidate,
        changes: &Changes,
        demos: BTreeMap<String, Vec<Demo>>,
    ) -> Candidate {
        let mut prompts = (*base.prompts).clone();
        prompts.extend(changes.iter().map(|(name, new)| (name.clone(), new.text.clone())));
        let number = self.next_number();
        self.rationales.extend(rationale_of(changes).map(|said| (number, said)));
        let (prompts, demos) = (Arc::new(prompts), Arc::new(demos));
        let candidate = Candidate { number, parents: vec![base.number], prompts, demos };
        self.candidates.push(candidate.clone());
        candidate
    }

    pub(super) fn next_number(&self) -> u32 {
        u32::try_from(self.candidates.len()).unwrap_or(u32::MAX)
    }

    /// Ends an epoch: publishes the best candidate, and returns its score.
    async fn end_epoch(&mut self, is_last: bool) -> Result<f64, Stop> {
        let problem = self.problem;
        let val = &problem.splits.val;
        let best = self.best.clone();
        let round = self.round(Phase::Val);
        self.board.fill_and_announce(self.lab, &best, val, round).await?;
        let (summary, score) = (self.board.summary(best.number, val), self.board.mean(&best, val));
        self.publish(SearchEvent::Epoch { epoch: self.epoch, best: &best, summary: &summary, score }).await?;
        let interval = problem.optimizer.checkpoint_interval;
        if is_last || self.epoch.is_multiple_of(interval) {
            self.keep().await?;
        }
        Ok(score)
    }

    /// Stores the best prompts, once per epoch.
    pub(super) async fn keep(&mut self) -> Result<(), Stop> {
        let summary = self.board.summary(self.best.number, &self.problem.splits.val);
        self.keep_with(&summary).await
    }

    /// Stores the best prompts with their summary.
    pub(super) async fn keep_with(&mut self, summary: &Summary) -> Result<(), Stop> {
        let best = self.best.clone();
        // Before the first epoch, the prompts are those with which it begins.
        let epoch = self.epoch.max(1);
        if !self.kept.insert((best.number, epoch)) {
            return Ok(());
        }
        self.publish(SearchEvent::Checkpoint { epoch, candidate: &best, summary }).await
    }

    /// Whether the best prompts are stored, for any epoch.
    pub(super) fn has_kept_best(&self) -> bool {
        self.kept.iter().any(|(candidate, _)| *candidate == self.best.number)
    }

    pub(super) async fn execute(
        &mut self,
        number: usize,
        places: &[usize],
        phase: Phase,
    ) -> Result<(), Stop> {
        let Some(candidate) = self.candidates.get(number).cloned() else { return Ok(()) };
        let round = self.round(phase);
        self.board.fill(self.lab, &candidate, places, round).await
    }

    pub(super) fn round(&self, phase: Phase) -> Round {
        Round { phase, epoch: self.epoch, first_sample: 0 }
    }

    pub(super) async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        self.lab.publish(event).await
    }
}

/// The standard deviation within cases; 0 if no case has two samples.
fn spread(samples: &[Vec<f64>]) -> f64 {
    let variance = |scores: &Vec<f64>| {
        let middle = mean(scores.iter().map(|score| (1.0, *score))).unwrap_or_default();
        let squares: f64 = scores.iter().map(|score| squared(score - middle)).sum();
        (1.0, squares / (float(scores.len()) - 1.0))
    };
    mean(samples.iter().filter(|scores| scores.len() > 1).map(variance)).unwrap_or_default().sqrt()
}
