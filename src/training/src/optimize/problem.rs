//! The search problem: the same in every process that continues the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::Counter;

use super::lab::Candidate;
use crate::case::Case;
use crate::evaluators::Evaluator;
use crate::numbers::float;
use crate::prompts::TrainablePrompt;
use crate::request::{Optimizer, OptimizerName};
use crate::rewrite::LeakGuard;
use crate::splits::{Splits, split};

/// Budget thousandths reserved for the final: minimum and maximum.
pub(crate) const LEAST_KEPT: u64 = 100;
const MOST_KEPT: u64 = 250;
/// Budget thousandths that `auto` reserves for trying demos at the end.
pub(crate) const KEPT_FOR_DEMOS: u64 = 200;

/// A training before its first call.
pub struct Problem<'a> {
    /// The cases in dataset order.
    pub cases: &'a [Case],
    /// The prompts that may be rewritten.
    pub prompts: &'a [TrainablePrompt],
    /// The evaluators.
    pub evaluators: &'a [Evaluator],
    /// The search settings.
    pub optimizer: &'a Optimizer,
    /// Each case's purpose.
    pub splits: Splits,
    pub(super) counter: Counter,
    pub(super) leaks: LeakGuard,
}

impl<'a> Problem<'a> {
    /// Builds a request's problem. Draws the splits from its seed.
    #[must_use]
    pub fn new(
        cases: &'a [Case],
        prompts: &'a [TrainablePrompt],
        evaluators: &'a [Evaluator],
        optimizer: &'a Optimizer,
    ) -> Self {
        let counter = Counter::new(optimizer.settings.seed);
        let splits = split(cases, optimizer.split_settings(), &counter);
        let of = |places: &[usize]| places.iter().filter_map(|place| cases.get(*place)).collect::<Vec<_>>();
        // A case that is also for training is not held out.
        let mut held_out = splits.val.clone();
        held_out.retain(|place| splits.train.binary_search(place).is_err());
        let (train, val, test) = (of(&splits.train), of(&held_out), of(&splits.test));
        // The author's own texts never count as leaks.
        let seeds = prompts.iter().map(|prompt| prompt.seed.as_str());
        let leaks = LeakGuard::new(val.into_iter().chain(test), train.into_iter(), seeds);
        Self { cases, prompts, evaluators, optimizer, splits, counter, leaks }
    }

    /// The prompts at the start.
    #[must_use]
    pub fn seed(&self) -> Candidate {
        let prompts: BTreeMap<String, String> =
            self.prompts.iter().map(|prompt| (prompt.name.clone(), prompt.seed.clone())).collect();
        let demos = self.prompts.iter().filter(|prompt| prompt.demos_trainable);
        let demos = demos.map(|prompt| (prompt.name.clone(), prompt.demos.clone())).collect();
        Candidate { number: 0, parents: Vec::new(), prompts: Arc::new(prompts), demos: Arc::new(demos) }
    }

    /// Budget and time thousandths reserved for demos, in addition to those for the final.
    #[must_use]
    pub fn kept_for_demos(&self) -> u64 {
        if self.optimizer.name == OptimizerName::Auto && self.trains_demos() { KEPT_FOR_DEMOS } else { 0 }
    }

    /// Whether any prompt may get other demos.
    pub(super) fn trains_demos(&self) -> bool {
        self.prompts.iter().any(|prompt| prompt.demos_trainable)
    }

    /// Case executions to reserve for the end: fresh samples for the seed and one finalist on all scoring cases.
    #[must_use]
    pub fn reserved_cases(&self) -> u64 {
        if self.optimizer.has_final() { reserved_cases(self.optimizer, &self.splits) } else { 0 }
    }

    /// Budget thousandths reserved for the final: from a tenth to a quarter, because fewer fresh samples decide, too.
    ///
    /// `calls_of_case`: calls per execution, including verdicts. Without a call limit, a tenth.
    #[must_use]
    pub fn kept_thousandths(&self, calls_of_case: u64, max_llm_calls: Option<u64>) -> u64 {
        if !self.optimizer.has_final() {
            return 0;
        }
        kept_of(self.reserved_cases().saturating_mul(calls_of_case), max_llm_calls)
    }

    pub(super) fn weight(&self, place: usize) -> f64 {
        self.cases.get(place).map_or(1.0, Case::weight)
    }

    /// The penalty subtracted from a candidate's scores: its prompt growth over the seed, without demos.
    pub(super) fn penalty(&self, candidate: &Candidate) -> f64 {
        let characters =
            |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).sum::<usize>();
        let seed = characters(&mut self.prompts.iter().map(|prompt| prompt.seed.as_str()));
        let grown = characters(&mut candidate.prompts.values().map(String::as_str));
        let growth = float(grown.saturating_sub(seed)) / float(seed.max(1));
        self.optimizer.objective.length_penalty * growth
    }
}

/// Case executions that give the seed and one finalist fresh samples on all scoring cases.
pub(crate) fn reserved_cases(optimizer: &Optimizer, splits: &Splits) -> u64 {
    let cases = u64::try_from(splits.val.len()).unwrap_or(u64::MAX);
    cases.saturating_mul(u64::from(optimizer.settings.repeats).saturating_mul(2))
}

/// Budget thousandths to reserve for `calls` calls in the final.
pub(crate) fn kept_of(calls: u64, max_llm_calls: Option<u64>) -> u64 {
    let share = max_llm_calls.map(|most| calls.saturating_mul(1_000).div_ceil(most.max(1)));
    share.unwrap_or_default().clamp(LEAST_KEPT, MOST_KEPT)
}
