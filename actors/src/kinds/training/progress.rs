//! Tracks a run's progress. Pure.

use std::time::Duration;

use training::calls::{Amount, BudgetLimits, CallUsage, dollars};
use training::optimize::Phase;
use uuid::Uuid;
use wire::{BudgetLeft, TrainingProgress};

use super::state::StoredProgress;

/// Interval of progress writes while cases are executed.
const STORE_EVERY: Duration = Duration::from_millis(500);

/// A run's progress.
pub(super) struct ProgressMeter {
    /// Results in all lives.
    done: u64,
    planned: u64,
    /// Results in this life.
    fresh: u32,
    /// Start of this life, and the active time of earlier ones.
    begun: Duration,
    before: Duration,
    /// The running mean for one candidate in one phase.
    current: Option<(u32, Phase)>,
    sum: f64,
    count: u32,
    best: Option<f64>,
    dearest: Amount,
    stored: Option<Duration>,
}

impl ProgressMeter {
    pub(super) fn new(done: usize, planned: u64, before: &StoredProgress, now: Duration) -> Self {
        Self {
            done: u64::try_from(done).unwrap_or(u64::MAX),
            planned,
            fresh: 0,
            begun: now,
            before: Duration::from_millis(before.active_ms),
            current: None,
            sum: 0.0,
            count: 0,
            best: before.progress.best_score,
            dearest: Amount::default(),
            stored: None,
        }
    }

    /// The run's active time, in all lives.
    pub(super) fn active(&self, now: Duration) -> Duration {
        self.before + now.saturating_sub(self.begun)
    }

    /// Counts a case that was executed in this life.
    pub(super) fn executed(&mut self, candidate: u32, phase: Phase, score: Option<f64>) {
        self.done += 1;
        self.fresh = self.fresh.saturating_add(1);
        if self.current != Some((candidate, phase)) {
            (self.current, self.sum, self.count) = (Some((candidate, phase)), 0.0, 0);
        }
        if let Some(score) = score {
            self.sum += score;
            self.count += 1;
        }
    }

    /// Records a case's usage.
    pub(super) fn used(&mut self, used: &Amount) {
        let most = &mut self.dearest;
        most.calls = most.calls.max(used.calls);
        most.input_tokens = most.input_tokens.max(used.input_tokens);
        most.output_tokens = most.output_tokens.max(used.output_tokens);
        most.nanodollars = most.nanodollars.max(used.nanodollars);
    }

    /// The maximum expected usage per case: twice the highest so far, and at least `least_calls` calls.
    pub(super) fn dearest(&self, least_calls: u64) -> Amount {
        let twice = self.dearest.plus(&self.dearest);
        Amount { calls: twice.calls.max(least_calls), ..twice }
    }

    /// Records the best prompts' score.
    pub(super) fn best(&mut self, score: f64) {
        self.best = Some(self.best.map_or(score, |best| best.max(score)));
    }

    pub(super) fn best_score(&self) -> Option<f64> {
        self.best
    }

    /// The progress for events.
    pub(super) fn shown(
        &self,
        now: Duration,
        usage: &CallUsage,
        left: BudgetLimits,
        seconds: Option<Duration>,
    ) -> TrainingProgress {
        let life = now.saturating_sub(self.begun).as_secs_f64();
        let rate = (self.fresh > 0 && life > 0.0).then(|| f64::from(self.fresh) / life);
        let planned = self.planned.max(self.done);
        let open = u32::try_from(planned - self.done).map_or(f64::from(u32::MAX), f64::from);
        let limited = seconds.map(|limit| limit.saturating_sub(self.active(now)).as_secs_f64());
        let budget_left = BudgetLeft {
            llm_calls: left.max_llm_calls,
            tokens: left.max_tokens,
            cost: left.max_cost.map(dollars),
            seconds: limited,
        };
        TrainingProgress {
            done: self.done,
            planned,
            running_mean: (self.count > 0).then(|| self.sum / f64::from(self.count)),
            best_score: self.best,
            cases_per_s: rate.map(rounded),
            eta_s: rate.map(|rate| rounded(open / rate)),
            llm_calls: usage.llm_calls,
            cost: usage.cost_usd,
            budget_left: (budget_left != BudgetLeft::default()).then_some(budget_left),
        }
    }

    /// Whether the progress is due to be stored again.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.stored.is_none_or(|at| now.saturating_sub(at) >= STORE_EVERY);
        if is_due {
            self.stored = Some(now);
        }
        is_due
    }

    /// The progress for its row.
    pub(super) fn state(
        &self,
        now: Duration,
        owner: Uuid,
        shown: TrainingProgress,
        usage: CallUsage,
    ) -> StoredProgress {
        let active_ms = u64::try_from(self.active(now).as_millis()).unwrap_or(u64::MAX);
        StoredProgress { progress: shown, usage, active_ms, owner, refused_since: None }
    }
}

/// Two decimals are enough for people.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_estimated_from_cases_since_the_last_start() {
        let before = StoredProgress { active_ms: 5_000, ..StoredProgress::default() };
        let mut progress = ProgressMeter::new(10, 30, &before, Duration::from_secs(100));
        for score in [0.5, 1.0] {
            progress.executed(1, Phase::Race, Some(score));
        }
        progress.executed(1, Phase::Race, None);
        progress.executed(2, Phase::Race, Some(0.0));
        let now = Duration::from_secs(102);
        let left = BudgetLimits { max_llm_calls: Some(7), ..BudgetLimits::default() };
        let shown = progress.shown(now, &CallUsage::default(), left, Some(Duration::from_secs(10)));
        assert_eq!((shown.done, shown.planned, shown.running_mean), (14, 30, Some(0.0)));
        assert_eq!((shown.cases_per_s, shown.eta_s), (Some(2.0), Some(8.0)));
        let budget = shown.budget_left.unwrap();
        assert_eq!((budget.llm_calls, budget.tokens, budget.seconds), (Some(7), None, Some(3.0)));
        assert_eq!(progress.active(now), Duration::from_secs(7));
        let none = progress.shown(now, &CallUsage::default(), BudgetLimits::default(), None);
        assert_eq!(none.budget_left, None);
    }

    #[test]
    fn a_case_may_use_twice_as_much_as_the_most_expensive_case() {
        let mut progress = ProgressMeter::new(0, 0, &StoredProgress::default(), Duration::ZERO);
        assert_eq!(progress.dearest(3).calls, 3);
        progress.used(&Amount { calls: 2, input_tokens: 10, ..Amount::default() });
        progress.used(&Amount { calls: 1, input_tokens: 30, ..Amount::default() });
        let dearest = progress.dearest(3);
        assert_eq!((dearest.calls, dearest.input_tokens), (4, 60));
    }
}
