//! Settings for executing the cases of a training or an evaluation, and their limits.

use std::time::Duration;

use engine::Fields;
use serde_json::{Value, json};
use wire::FieldError;

use super::fields::{choice, number, object, whole, word_of};
use super::models::RunModels;
use crate::calls::{BudgetLimits, dollars, nanodollars};

const TIMEOUT: Duration = Duration::from_secs(30);
const CONCURRENCY: u64 = 4;
const MOST_CONCURRENCY: u64 = 8;

/// The scope in which model answers are reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Answers from the same run.
    #[default]
    Run,
    /// Answers from all runs of the workflow.
    Workflow,
    /// No reuse; a resumed run still has its recorded answers.
    Off,
}

impl CacheScope {
    /// All scopes with their wire names.
    pub const ALL: [(&'static str, Self); 3] =
        [("run", Self::Run), ("workflow", Self::Workflow), ("off", Self::Off)];
}

/// Settings for executing cases: fields of `optimizer` in a training, of `evaluation` itself in an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// `case_timeout_seconds`: maximum duration per case, from 1 to 300 s, default 30 s.
    pub case_timeout: Duration,
    /// `max_concurrency`: maximum concurrent cases and model requests. From 1 to 8, default 4; a higher number is
    /// reduced to 8.
    pub concurrency: usize,
    /// The seed from which all draws and call seeds are derived; below 2^53, default 0.
    pub seed: u64,
    /// Executions per case, from 1 to 10, default 1.
    pub repeats: u32,
    /// `budget` without its time limit; unlimited by default.
    pub limits: BudgetLimits,
    /// `budget.max_seconds`: maximum active time of the run; unlimited by default.
    pub max_active: Option<Duration>,
    /// Models that the request names.
    pub models: RunModels,
    /// The scope in which model answers are reused.
    pub cache: CacheScope,
}

impl RunSettings {
    /// `models`: the allowed member names.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        models: &[&'static str],
        problems: &mut Vec<FieldError>,
    ) -> Self {
        let case_timeout = fields.number("case_timeout_seconds", 1.0..=300.0, problems);
        let concurrency = whole(fields, "max_concurrency", 1, problems).unwrap_or(CONCURRENCY);
        let seed = whole(fields, "seed", 0, problems).unwrap_or_default();
        let repeats = fields.whole("repeats", 1..=10, problems).unwrap_or(1);
        let (limits, max_active) = read_budget(fields, problems);
        let models = RunModels::read(fields, models, problems);
        let cache = choice(fields, "cache", &CacheScope::ALL, problems).unwrap_or_default();
        Self {
            case_timeout: case_timeout.map_or(TIMEOUT, Duration::from_secs_f64),
            concurrency: usize::try_from(concurrency.min(MOST_CONCURRENCY)).unwrap_or(1),
            seed,
            repeats,
            limits,
            max_active,
            models,
            cache,
        }
    }

    /// The members of `budget`; null without a limit.
    pub(super) fn budget(&self) -> Value {
        json!({
            "max_llm_calls": self.limits.max_llm_calls,
            "max_tokens": self.limits.max_tokens,
            "max_cost": self.limits.max_cost.map(|cost| number(dollars(cost))),
            "max_seconds": self.max_active.map(seconds),
        })
    }

    pub(super) fn case_timeout_seconds(&self) -> Value {
        seconds(self.case_timeout)
    }

    pub(super) fn cache(&self) -> &'static str {
        word_of(&CacheScope::ALL, &self.cache)
    }
}

fn seconds(duration: Duration) -> Value {
    number(duration.as_secs_f64())
}

fn read_budget(fields: &mut Fields<'_>, problems: &mut Vec<FieldError>) -> (BudgetLimits, Option<Duration>) {
    let Some(mut fields) = object(fields, "budget", problems) else { return Default::default() };
    let limits = BudgetLimits {
        max_llm_calls: whole(&mut fields, "max_llm_calls", 1, problems),
        max_tokens: whole(&mut fields, "max_tokens", 1, problems),
        // Money is counted in nanodollars, so the minimum is one.
        max_cost: fields.number("max_cost", 1e-9..=1e9, problems).map(nanodollars),
    };
    let max_seconds = fields.number("max_seconds", 0.001..=1e9, problems);
    fields.refuse_others(problems);
    (limits, max_seconds.map(Duration::from_secs_f64))
}
