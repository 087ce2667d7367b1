//! Checks a request after all referenced data was read, and derives the run's decisions. Processes all cases; pure.

use serde_json::{Map, Value, json};
use store::NewCase;
use training::request::{Optimizer, Workload};
use training::{
    AskedModels, Case, Splits, Start, TestEstimate, TrainablePrompt, Warning, optimizer_problem, split,
    weaknesses,
};
use uuid::Uuid;
use wire::{FieldError, SplitRecord, TrainingKind, TrainingNotice};

use super::datasets::{as_rows, fingerprint};
use super::decided::Decided;
use super::limits::check_inputs;
use super::outside;
use super::prepare::{ParsedTraining, Prepared, Refused, Wanted};

/// The decisions for a request, with its cases as rows.
pub(super) struct CheckedRequest {
    decided: Decided,
    cases: Vec<NewCase>,
    fingerprint: Vec<u8>,
}

impl CheckedRequest {
    /// The prepared run.
    pub(super) fn prepared(
        self,
        wanted: Wanted,
        workload: &Workload,
        config: Map<String, Value>,
        dataset: Option<(Uuid, i32)>,
    ) -> Prepared {
        let Self { decided, cases, fingerprint } = self;
        let evaluators = wanted.request.get("evaluators").cloned().unwrap_or_default();
        let judges = outside::judges_digest(evaluators, &workload.evaluators, &wanted.version.plan);
        Prepared {
            workspace: wanted.workspace,
            version: wanted.version,
            inputs: wanted.inputs,
            config,
            request: without_cases(wanted.request),
            decided,
            fingerprint,
            dataset,
            cases,
            judges,
        }
    }
}

/// Checks everything that needs no I/O. `is_stored`: whether the cases come from a stored dataset; `problems`: problems
/// found before.
///
/// # Errors
/// [`Refused::Invalid`] with all problems.
pub(super) fn checked(
    wanted: &Wanted,
    read: &ParsedTraining,
    start: &Start<'_>,
    is_stored: bool,
    mut problems: Vec<FieldError>,
) -> Result<CheckedRequest, Refused> {
    let at = start.workload_at;
    let dataset_at = format!("{at}/dataset");
    check_inputs(start.plan, &wanted.inputs, start.cases, is_stored, &dataset_at, &mut problems);
    let settings_at = match wanted.kind {
        TrainingKind::Training => format!("{at}/optimizer"),
        TrainingKind::Evaluation => at.to_owned(),
    };
    let decided = decide(wanted, read, start, at, &settings_at, &mut problems);
    let cases = as_rows(start.cases, &format!("{dataset_at}/cases"), &mut problems);
    let fingerprint = fingerprint(&cases);
    if problems.is_empty() {
        Ok(CheckedRequest { decided, cases, fingerprint })
    } else {
        Err(Refused::Invalid(problems))
    }
}

/// Makes the decisions before the first call.
fn decide(
    wanted: &Wanted,
    read: &ParsedTraining,
    start: &Start<'_>,
    at: &str,
    settings_at: &str,
    problems: &mut Vec<FieldError>,
) -> Decided {
    let mut warnings = Vec::new();
    start.check_effects(problems, &mut warnings);
    let trainable = match &read.optimizer {
        Some(_) => {
            warnings.extend(weaknesses(start.cases));
            start.trainable(problems, &mut warnings)
        }
        None => Vec::new(),
    };
    let defaults = start.default_models(&trainable);
    let models = &read.settings.models;
    let judge_model = models.judge.as_ref().map_or(defaults.judge, |choice| choice.fields());
    let optimizer_model = models.optimizer.as_ref().map_or(defaults.optimizer, |choice| choice.fields());
    start.check_judges(&judge_model, problems);
    let proposes = read.optimizer.as_ref().is_some_and(|optimizer| optimizer.name.asks_model());
    let models = [(proposes, &optimizer_model), (start.asks_judges(), &judge_model)];
    let models: Vec<_> = models.into_iter().filter(|(is_used, _)| *is_used).map(|(_, model)| model).collect();
    let evaluators = wanted.request.get("evaluators").unwrap_or(&Value::Null);
    let objective = read.optimizer.as_ref().map(|optimizer| &optimizer.objective);
    start.check_prices(&read.settings, objective, evaluators, &models, settings_at, problems);
    let splits = read.optimizer.as_ref().map(|optimizer| splits_of(start.cases, optimizer));
    let asked = AskedModels { evaluators, judge: &judge_model, optimizer: &optimizer_model };
    let estimate = match (&read.optimizer, &splits) {
        (Some(optimizer), Some(splits)) => {
            check_optimizer(optimizer, &optimizer_model, at, problems);
            Start::check_demos(optimizer, &trainable, "/runnable_config/prompts", problems);
            let budget_at = format!("{at}/optimizer/budget");
            start.check_budget(optimizer, splits, &trainable, &asked, &budget_at, problems);
            start.estimate_training(optimizer, splits, &trainable, &asked)
        }
        _ => start.estimate_evaluation(&read.settings, &asked),
    };
    Decided {
        kind: wanted.kind,
        optimizer: read.optimizer.as_ref().map_or(Value::Null, Optimizer::filled),
        splits: splits.as_ref().map(record),
        trainable: trainable.iter().map(|prompt: &TrainablePrompt| prompt.name.clone()).collect(),
        pins: start.resolution.pins.clone(),
        planned: estimate.cases.expected,
        calls_of_case: start.calls_of_case().expected,
        estimate: json!(estimate),
        optimizer_model,
        judge_model,
        warnings: warnings.into_iter().map(notice).collect(),
        dataset_label: label(&wanted.request),
        resumed_from: wanted.request.pointer("/optimizer/resume").cloned().filter(|it| !it.is_null()),
        is_gate: false,
        origin: None,
    }
}

/// Reports an unusable optimizer model, unless the optimizer needs no model.
fn check_optimizer(
    optimizer: &Optimizer,
    model: &Map<String, Value>,
    at: &str,
    problems: &mut Vec<FieldError>,
) {
    if !optimizer.name.asks_model() {
        return;
    }
    if let Some(problem) = optimizer_problem(model) {
        let pointer = format!("{at}/optimizer/models/optimizer");
        problems.push(FieldError::new(pointer, "model", problem));
    }
}

/// The label for inline cases in the request.
fn label(request: &Value) -> Option<String> {
    let dataset = request.get("dataset")?;
    dataset.get("cases").filter(|cases| !cases.is_null())?;
    dataset.get("id")?.as_str().map(str::to_owned)
}

fn notice(warning: Warning) -> TrainingNotice {
    TrainingNotice { code: warning.code.to_owned(), message: warning.message }
}

fn splits_of(cases: &[Case], optimizer: &Optimizer) -> Splits {
    split(cases, optimizer.split_settings(), &kernel::Counter::new(optimizer.settings.seed))
}

fn record(splits: &Splits) -> SplitRecord {
    let estimate = splits.test_estimate.map(|estimate| match estimate {
        TestEstimate::Split => "split",
        TestEstimate::KFold => "kfold",
    });
    SplitRecord {
        train: splits.train.clone(),
        val: splits.val.clone(),
        test: splits.test.clone(),
        test_estimate: estimate.map(str::to_owned),
    }
}

/// The request as stored, without its cases, which are rows.
fn without_cases(mut request: Value) -> Value {
    if let Some(dataset) = request.get_mut("dataset") {
        *dataset = json!({"id": "inline"});
    }
    request
}
