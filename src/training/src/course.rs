//! The search size per optimizer: case executions and requests to the optimizer's model. Pure.

use crate::calls::BudgetLimits;
use crate::estimate::CallRange;
use crate::optimize::{AT_ONCE, ATTEMPTS, FINALISTS, HEADROOM, SETS};
use crate::request::{Optimizer, OptimizerName};
use crate::splits::Splits;

/// The search size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    name: OptimizerName,
    epochs: u64,
    train: u64,
    val: u64,
    test: u64,
    minibatch: u64,
    /// The number of trained prompts.
    prompts: u64,
    /// Whether any prompt may get demos.
    trains_demos: bool,
    /// Whether the headroom cases are executed once more.
    executes_again: bool,
}

impl Course {
    /// `prompts`: trained prompts; `trains_demos`: whether any may get demos; `executes_again`: whether a model
    /// judges.
    pub(crate) fn new(
        optimizer: &Optimizer,
        splits: &Splits,
        prompts: usize,
        trains_demos: bool,
        executes_again: bool,
    ) -> Self {
        let train = count(splits.train.len());
        Self {
            name: optimizer.name,
            epochs: u64::from(optimizer.epochs),
            train,
            val: count(splits.val.len()),
            test: count(splits.test.len()),
            minibatch: count(optimizer.minibatch_size).clamp(1, train.max(1)),
            prompts: count(prompts).max(1),
            trains_demos,
            executes_again,
        }
    }

    /// Cases in the headroom test.
    pub(crate) fn headroom(&self) -> u64 {
        self.val.min(count(HEADROOM))
    }

    /// Executions per headroom case.
    pub(crate) fn headrooms(&self) -> u64 {
        1 + u64::from(self.executes_again)
    }

    /// Whether `auto` tries demos, too.
    pub(crate) fn keeps_demos(&self) -> bool {
        self.name == OptimizerName::Auto && self.trains_demos
    }

    /// Case executions, each with one sample. The minimum assumes that the headroom test finds no possible gain.
    pub(crate) fn cases(&self) -> CallRange {
        let Self { train, val, test, minibatch, .. } = *self;
        let (proposals, sets, finalists) = (self.proposals(), u64::from(SETS), count(FINALISTS));
        // Assumes that the first race block rejects half the candidates.
        let half = val.div_ceil(2);
        let (expected, max) = match self.name {
            OptimizerName::None => (0, 0),
            OptimizerName::TextGrad | OptimizerName::Gepa | OptimizerName::Auto => {
                (proposals * (minibatch + half), proposals * (minibatch + val))
            }
            // Every demo set may be better than the one before, and then needs the training cases again.
            OptimizerName::FewShot => (sets * (minibatch + half), sets * (train + val)),
        };
        let (expected_demos, most_demos) = match self.keeps_demos() {
            true => (minibatch + sets * half, (sets + 1) * train + sets * val),
            false => (0, 0),
        };
        let again = self.headroom() * (self.headrooms() - 1);
        let (expected_end, most_end) = match self.name {
            OptimizerName::None => (test, test),
            _ => (finalists * val + 2 * test, (finalists + 1) * val + 2 * test),
        };
        CallRange {
            min: self.headroom() + again,
            expected: val + again + expected + expected_demos + expected_end,
            max: Some(val + again + max + most_demos + most_end),
        }
    }

    /// Requests to the optimizer's model.
    pub(crate) fn questions(&self) -> CallRange {
        let (prompts, proposals) = (self.prompts, self.proposals());
        let attempts = u64::from(ATTEMPTS);
        // For each blamed prompt: a critique per failing case, then a new text.
        let critiques = prompts * (1 + self.minibatch.div_ceil(2));
        let most_critiques = prompts * (self.minibatch + attempts);
        let (expected, max) = match self.name {
            OptimizerName::None | OptimizerName::FewShot => (0, 0),
            OptimizerName::TextGrad => (proposals * critiques, proposals * most_critiques),
            OptimizerName::Gepa => (proposals * prompts, proposals * prompts * attempts),
            // First as `gepa`, then as `textgrad`.
            OptimizerName::Auto => {
                (proposals.div_ceil(2) * critiques + proposals / 2 * prompts, proposals * most_critiques)
            }
        };
        CallRange { min: 0, expected, max: Some(max) }
    }

    /// Requests to the optimizer's model for the first proposal if no case passes and each first reply is usable.
    pub(crate) fn first_questions(&self) -> u64 {
        match self.name {
            OptimizerName::None | OptimizerName::FewShot => 0,
            // With few cases, `auto` may switch to `textgrad` before its first race.
            OptimizerName::TextGrad | OptimizerName::Auto => self.prompts * (self.minibatch + 1),
            OptimizerName::Gepa => self.prompts,
        }
    }

    /// Minibatches in the whole search.
    fn proposals(&self) -> u64 {
        match self.name {
            OptimizerName::None => 0,
            _ => self.epochs * self.train.div_ceil(self.minibatch),
        }
    }

    /// Training cases executed for the first proposal; more for demos, as long as few cases pass.
    pub(crate) fn gathered(&self) -> u64 {
        let for_demos = self.name == OptimizerName::FewShot || self.keeps_demos();
        let minibatches = if for_demos { count(AT_ONCE) } else { 1 };
        self.train.min(self.minibatch * minibatches)
    }
}

/// The lowest `max_llm_calls` that leaves `calls` open before the final. `kept`: reserved thousandths per limit.
pub(crate) fn least_limit(calls: u64, kept: impl Fn(u64) -> u64) -> u64 {
    let pays = |limit: u64| BudgetLimits::open(limit, kept(limit).min(999)) >= calls;
    // The open part never falls when the limit grows by one.
    let (mut low, mut high) = (calls, calls.max(1));
    while !pays(high) {
        (low, high) = (high + 1, high.saturating_mul(2));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if pays(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_limit_leaves_just_enough_budget_open() {
        for calls in [0, 1, 7, 25, 100, 4_321, 1_000_000] {
            for kept in [0, 100, 250, 450] {
                let least = least_limit(calls, |_| kept);
                assert!(BudgetLimits::open(least, kept) >= calls, "{calls} {kept}: {least}");
                let less = least.saturating_sub(1);
                assert!(least == 0 || BudgetLimits::open(less, kept) < calls, "{calls} {kept}: {least}");
            }
        }
    }
}
