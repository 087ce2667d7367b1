//! Reads training and evaluation requests: the objects `training` and `evaluation`. Pure.

mod credentials;
mod fields;
mod models;
mod optimizer;
mod settings;
#[cfg(test)]
mod tests;
mod workload;

use engine::Fields;
use serde_json::Value;
use wire::FieldError;

pub use self::credentials::names_credential;
pub use self::models::{ModelChoice, RunModels};
pub use self::optimizer::{Objective, Optimizer, OptimizerName, Resume};
pub use self::settings::{CacheScope, RunSettings};
pub use self::workload::{DatasetSource, Workload};

use self::fields::object;

/// The object `training`.
#[derive(Debug)]
pub struct TrainingRequest {
    /// The cases, and how they are executed and judged.
    pub workload: Workload,
    /// The search for better prompts.
    pub optimizer: Optimizer,
}

/// The object `evaluation`.
#[derive(Debug)]
pub struct EvaluationRequest {
    /// The cases, and how they are executed and judged.
    pub workload: Workload,
    /// Settings for executing cases.
    pub settings: RunSettings,
}

/// Reads the object `training` at `pointer`: `{dataset, max_cases?, evaluators, mocks?, effects?, optimizer}`.
/// Reports every problem; `None` if there is any.
pub fn read_training(
    value: &Value,
    pointer: &str,
    problems: &mut Vec<FieldError>,
) -> Option<TrainingRequest> {
    let before = problems.len();
    let mut fields = Fields::from_value(pointer, value, problems)?;
    let workload = Workload::read(&mut fields, problems);
    let optimizer =
        fields.required("optimizer", problems).and_then(|_| object(&mut fields, "optimizer", problems));
    let optimizer = optimizer.map(|fields| Optimizer::read(fields, problems));
    fields.refuse_others(problems);
    let request = TrainingRequest { workload: workload?, optimizer: optimizer? };
    (problems.len() == before).then_some(request)
}

/// Reads the object `evaluation` at `pointer`: `{dataset, max_cases?, evaluators, mocks?, effects?}` and the fields
/// of [`RunSettings`]. Reports every problem; `None` if there is any.
pub fn read_evaluation(
    value: &Value,
    pointer: &str,
    problems: &mut Vec<FieldError>,
) -> Option<EvaluationRequest> {
    let before = problems.len();
    let mut fields = Fields::from_value(pointer, value, problems)?;
    let workload = Workload::read(&mut fields, problems);
    let settings = RunSettings::read(&mut fields, &["judge"], problems);
    fields.refuse_others(problems);
    let request = EvaluationRequest { workload: workload?, settings };
    (problems.len() == before).then_some(request)
}
