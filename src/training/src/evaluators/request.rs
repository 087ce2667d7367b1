//! Evaluator definitions in a request.

use engine::Reference;
use serde_json::{Map, Value};
use wire::FieldError;

use super::asking::{FunctionName, PostTarget};
use super::bench::{Bench, BenchError};
use super::builtin;
use super::config::{Config, POSITIVE};
use super::judge::Judging;
use super::subject::Subject;
use super::verdict::Verdict;
use crate::estimate::CallRange;
use crate::pins::Resolution;

/// Maximum evaluators per request, without and with nested ones.
const MOST: usize = 50;
const MOST_NESTED: usize = 200;
/// Maximum bytes of an id.
const LONGEST_ID: usize = 200;
/// The default pass threshold.
const THRESHOLD: f64 = 0.5;

/// The purpose of an evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluatorRole {
    /// Contributes to the case score.
    Score,
    /// Must not get worse.
    Guard,
    /// Is only reported.
    MetricOnly,
}

/// An evaluator defined in a request.
pub struct Evaluator {
    /// The name in results; unique in the request.
    pub id: String,
    /// The weight in the case score.
    pub weight: f64,
    /// The purpose.
    pub role: EvaluatorRole,
    /// The lowest passing score, if the request sets one.
    pub threshold: Option<f64>,
    judging: Judging,
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Evaluator").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Evaluator {
    /// The lowest passing score.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(THRESHOLD)
    }

    /// Judges a case result; `None` if the run's budget is spent.
    pub async fn judge(&self, subject: &Subject<'_>, bench: &dyn Bench) -> Option<Verdict> {
        match self.judging.judge(subject, self.threshold, bench).await {
            Ok(verdict) => Some(verdict),
            Err(BenchError::Failed(error)) => Some(Verdict::failed(error)),
            Err(BenchError::Exhausted) => None,
        }
    }

    /// Whether its verdict needs more than the case result: a model, another workflow, a function or a service.
    #[must_use]
    pub fn needs_bench(&self) -> bool {
        !self.judging.asking().is_empty()
    }

    /// Whether it may ask a model, itself or through another workflow.
    #[must_use]
    pub fn asks_model(&self) -> bool {
        self.judging.asking().into_iter().any(|asking| asking.asks_model())
    }

    /// The graph functions that it calls.
    #[must_use]
    pub fn functions(&self) -> Vec<FunctionName> {
        self.judging.asking().into_iter().filter_map(|asking| asking.function().cloned()).collect()
    }

    /// The services that it asks.
    #[must_use]
    pub fn posts(&self) -> Vec<PostTarget> {
        self.judging.asking().into_iter().filter_map(|asking| asking.post().cloned()).collect()
    }

    /// The calls per verdict, without failed ones.
    #[must_use]
    pub fn calls(&self, resolution: &Resolution) -> CallRange {
        let asking = self.judging.asking().into_iter();
        asking.map(|asking| asking.calls(resolution)).fold(CallRange::exactly(0), |all, calls| all + calls)
    }

    /// The workflows that it executes.
    #[must_use]
    pub fn workflows(&self) -> Vec<Reference> {
        self.judging.asking().into_iter().filter_map(|asking| asking.workflow().cloned()).collect()
    }

    /// The problem with the model that it would use, if any; `model`: the run's judge model, as node fields.
    #[must_use]
    pub fn model_problem(&self, model: &Map<String, Value>) -> Option<String> {
        self.judging.asking().into_iter().find_map(|asking| asking.problem(model))
    }
}

/// Reads `evaluators`; `pointer` is the place of the list. Reports every problem.
pub fn read_evaluators(value: &Value, pointer: &str, problems: &mut Vec<FieldError>) -> Vec<Evaluator> {
    let entries = match value {
        Value::Array(entries) if (1..=MOST).contains(&entries.len()) => entries,
        _ => {
            let message = format!("must be a list of 1 to {MOST} evaluators");
            let problem = FieldError::new(pointer, "type", message);
            problems.push(
                problem.suggest(r#""evaluators": [{"id": "match", "entrypoint": "builtin:exact_match"}]"#),
            );
            return Vec::new();
        }
    };
    if entries.iter().map(nested).sum::<usize>() > MOST_NESTED {
        let message = format!("has more than {MOST_NESTED} evaluators, those inside others included");
        problems.push(FieldError::new(pointer, "size", message));
        return Vec::new();
    }
    let mut read: Vec<Evaluator> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("{pointer}/{index}");
        let Some(evaluator) = read_one(entry, &at, problems) else { continue };
        if read.iter().any(|known| known.id == evaluator.id) {
            problems.push(FieldError::new(
                format!("{at}/id"),
                "duplicate",
                format!("duplicate '{}'", evaluator.id),
            ));
        }
        read.push(evaluator);
    }
    read
}

/// The number of evaluators in an entry, including itself.
fn nested(entry: &Value) -> usize {
    let inside = entry.pointer("/config/evaluators").and_then(Value::as_array);
    inside.into_iter().flatten().map(nested).fold(1, usize::saturating_add)
}

fn read_one(entry: &Value, at: &str, problems: &mut Vec<FieldError>) -> Option<Evaluator> {
    let mut fields = Config::from_value(at.to_owned(), entry, problems)?;
    let id = fields.text("id").map(str::to_owned);
    if id.as_deref() == Some("") {
        fields.note("id", "required", "must not be empty");
    } else if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
        fields.note("id", "length", format!("must have at most {LONGEST_ID} bytes: it is in every event"));
    }
    let entrypoint = fields.text("entrypoint");
    let weight = fields.number("weight", POSITIVE).unwrap_or(1.0);
    let threshold = fields.number("threshold", 0.0..=1.0);
    let role = match fields.word("role", &["score", "guard", "metric_only"]) {
        Some("guard") => EvaluatorRole::Guard,
        Some("metric_only") => EvaluatorRole::MetricOnly,
        _ => EvaluatorRole::Score,
    };
    let config = fields.value("config");
    let (entrypoint_at, config_at) = (fields.at("entrypoint"), fields.at("config"));
    fields.finish();
    let judging = builtin::read(entrypoint?, config, entrypoint_at, config_at, problems, 0)?;
    Some(Evaluator { id: id?, weight, role, threshold, judging })
}
