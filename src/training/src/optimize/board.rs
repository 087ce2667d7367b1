//! Candidate results by case.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lab::{Candidate, JudgedRun, Lab, Round, Stop};
use super::problem::Problem;
use crate::calls::dollars;
use crate::compare::{Comparison, WeightedScore};
use crate::evaluators::{EvaluatorRole, Verdict};
use crate::numbers::{PERFECT, mean};
use crate::score::{Judged, Summary, case_score, summary};

/// Maximum cases whose results, including texts, are in memory at once.
const PART: usize = 256;

/// The results for one set of samples: the search's own, or the fresh ones at the end.
pub(super) struct Board<'a> {
    problem: &'a Problem<'a>,
    first_sample: u32,
    results: BTreeMap<(u32, usize), Vec<Sample>>,
}

/// The data kept from a case execution: verdicts without their texts, which the lab keeps.
pub(super) struct Sample {
    pub(super) verdicts: Vec<Verdict>,
    duration: Duration,
    cost: Option<u64>,
}

impl Sample {
    fn from_run(judged: &JudgedRun) -> Self {
        let verdicts = judged.verdicts.iter().map(Verdict::bare).collect();
        Self { verdicts, duration: judged.run.duration, cost: judged.run.cost }
    }
}

impl<'a> Board<'a> {
    pub(super) fn new(problem: &'a Problem<'a>, first_sample: u32) -> Self {
        Self { problem, first_sample, results: BTreeMap::new() }
    }

    pub(super) fn problem(&self) -> &Problem<'a> {
        self.problem
    }

    /// Like [`Self::fill`], but also announces cases that were executed before.
    pub(super) async fn fill_and_announce(
        &mut self,
        lab: &dyn Lab,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<(), Stop> {
        let is_known = |place: &usize| self.results.contains_key(&(candidate.number, *place));
        let known: Vec<usize> = places.iter().copied().filter(is_known).collect();
        self.fill(lab, candidate, places, round).await?;
        if known.is_empty() {
            return Ok(());
        }
        lab.reuse(candidate, &known, Round { first_sample: self.first_sample, ..round }).await
    }

    /// Executes the cases that have no result yet.
    pub(super) async fn fill(
        &mut self,
        lab: &dyn Lab,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<(), Stop> {
        let missing: Vec<usize> = places
            .iter()
            .copied()
            .filter(|place| !self.results.contains_key(&(candidate.number, *place)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let round = Round { first_sample: self.first_sample, ..round };
        for part in missing.chunks(PART) {
            let found = lab.evaluate(candidate, part, round).await?;
            for (place, samples) in part.iter().zip(found) {
                let samples = samples.iter().map(Sample::from_run).collect();
                self.results.insert((candidate.number, *place), samples);
            }
        }
        Ok(())
    }

    pub(super) fn samples(&self, candidate: u32, place: usize) -> &[Sample] {
        self.results.get(&(candidate, place)).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn has_all(&self, candidate: u32, places: &[usize]) -> bool {
        places.iter().all(|place| self.results.contains_key(&(candidate, *place)))
    }

    /// A case's sample scores, without penalties and without skipped samples.
    fn scores_of(&self, candidate: u32, place: usize) -> impl Iterator<Item = f64> {
        let aggregate = self.problem.optimizer.objective.aggregate;
        let runs = self.samples(candidate, place).iter();
        runs.filter_map(move |run| case_score(self.problem.evaluators, &run.verdicts, aggregate).score)
    }

    /// The sample scores per case.
    pub(super) fn sample_scores(&self, candidate: u32, places: &[usize]) -> Vec<Vec<f64>> {
        places.iter().map(|place| self.scores_of(candidate, *place).collect()).collect()
    }

    /// A case's mean sample score, without penalties; `None` if the case was not executed or does not count.
    pub(super) fn score(&self, candidate: u32, place: usize) -> Option<f64> {
        mean(self.scores_of(candidate, place).map(|score| (1.0, score)))
    }

    pub(super) fn is_perfect(&self, candidate: u32, places: &[usize]) -> bool {
        places.iter().all(|place| self.score(candidate, *place).is_none_or(|score| score >= PERFECT))
    }

    /// Scores with penalties; a case that does not count has weight 0.
    pub(super) fn weighted(&self, candidate: &Candidate, places: &[usize]) -> Vec<WeightedScore> {
        let penalty = self.penalty(candidate, places);
        let of = |place: &usize| match self.score(candidate.number, *place) {
            Some(score) => WeightedScore { weight: self.problem.weight(*place), score: score - penalty },
            None => WeightedScore { weight: 0.0, score: 0.0 },
        };
        places.iter().map(of).collect()
    }

    /// The penalty subtracted from a candidate's scores on these cases. Its cost and duration are compared with the
    /// seed's on shared cases: those among `places`, or all if `places` has none.
    fn penalty(&self, candidate: &Candidate, places: &[usize]) -> f64 {
        let length = self.problem.penalty(candidate);
        let objective = &self.problem.optimizer.objective;
        if candidate.number == 0 || (objective.cost_penalty <= 0.0 && objective.latency_penalty <= 0.0) {
            return length;
        }
        let mut shared = self.shared(0, candidate.number, places);
        if shared.is_empty() {
            let known = self.results.range((candidate.number, 0)..=(candidate.number, usize::MAX));
            let known: Vec<usize> = known.map(|((_, place), _)| *place).collect();
            shared = self.shared(0, candidate.number, &known);
        }
        let growth = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let mean_of = |number: u32| {
                let samples = shared.iter().flat_map(|place| {
                    let weight = self.problem.weight(*place);
                    self.samples(number, *place).iter().filter_map(move |sample| Some((weight, of(sample)?)))
                });
                mean(samples).unwrap_or_default()
            };
            let (seed, grown) = (mean_of(0), mean_of(candidate.number));
            if seed > 0.0 { (grown / seed - 1.0).max(0.0) } else { 0.0 }
        };
        let cost = growth(&|sample| sample.cost.map(dollars));
        let latency = growth(&|sample| Some(sample.duration.as_secs_f64()));
        length + objective.cost_penalty * cost + objective.latency_penalty * latency
    }

    /// Both candidates' scores on the same cases; a case that does not count for one counts for neither.
    pub(super) fn pairs(
        &self,
        first: &Candidate,
        second: &Candidate,
        places: &[usize],
    ) -> (Vec<WeightedScore>, Vec<WeightedScore>) {
        let (mut one, mut other) = (self.weighted(first, places), self.weighted(second, places));
        pair(&mut one, &mut other);
        (one, other)
    }

    /// The cases on which both candidates were executed.
    pub(super) fn shared(&self, first: u32, second: u32, places: &[usize]) -> Vec<usize> {
        let is_known = |place: &usize| self.has_all(first, &[*place]) && self.has_all(second, &[*place]);
        places.iter().copied().filter(is_known).collect()
    }

    /// Compares both candidates on their shared cases.
    pub(super) fn compared(&self, first: &Candidate, second: &Candidate, places: &[usize]) -> Comparison {
        let shared = self.shared(first.number, second.number, places);
        let (one, other) = self.pairs(first, second, &shared);
        Comparison::from_scores(&one, &other)
    }

    /// The mean score with penalties.
    pub(super) fn mean(&self, candidate: &Candidate, places: &[usize]) -> f64 {
        let scores = self.weighted(candidate, places);
        mean(scores.iter().map(|score| (score.weight, score.score))).unwrap_or_default()
    }

    /// A guard that got significantly worse, if any.
    pub(super) fn worse_guard(
        &self,
        first: &Candidate,
        second: &Candidate,
        places: &[usize],
    ) -> Option<&str> {
        let guards = self.problem.evaluators.iter().enumerate();
        let guards = guards.filter(|(_, evaluator)| evaluator.role == EvaluatorRole::Guard);
        let scores = |candidate: &Candidate, at: usize| -> Vec<WeightedScore> {
            let of = |place: &usize| {
                let verdicts =
                    self.samples(candidate.number, *place).iter().filter_map(|run| run.verdicts.get(at));
                let score =
                    mean(verdicts.filter(|verdict| !verdict.skip).map(|verdict| (1.0, verdict.score)));
                let weight = if score.is_some() { self.problem.weight(*place) } else { 0.0 };
                WeightedScore { weight, score: score.unwrap_or_default() }
            };
            places.iter().map(of).collect()
        };
        let regressed = |at: usize| {
            let (mut one, mut other) = (scores(first, at), scores(second, at));
            pair(&mut one, &mut other);
            Comparison::from_scores(&one, &other).is_regression()
        };
        guards.into_iter().find(|(at, _)| regressed(*at)).map(|(_, evaluator)| evaluator.id.as_str())
    }

    /// Summarizes a candidate on these cases; each sample counts.
    pub(super) fn summary(&self, candidate: u32, places: &[usize]) -> Summary {
        let judged = places.iter().flat_map(|place| {
            let weight = self.problem.weight(*place);
            self.samples(candidate, *place).iter().map(move |run| Judged { weight, verdicts: &run.verdicts })
        });
        let judged: Vec<Judged<'_>> = judged.collect();
        let all = summary(self.problem.evaluators, &judged, self.problem.optimizer.objective.aggregate);
        Summary { n_cases: places.len(), ..all }
    }
}

/// A case that does not count for one candidate counts for neither.
fn pair(one: &mut [WeightedScore], other: &mut [WeightedScore]) {
    for (one, other) in one.iter_mut().zip(other) {
        let weight = one.weight.min(other.weight);
        (one.weight, other.weight) = (weight, weight);
    }
}
