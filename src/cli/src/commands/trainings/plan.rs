//! `--dry-run`: the plan of a training or an evaluation.

use serde_json::Value;
use wire::{StartTraining, TrainingPlan};

use super::numbers::{dollars, span};
use super::request::RequestFiles;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

/// Prints the plan without starting anything.
pub(super) async fn print(
    session: &ServiceSession,
    workflow: &str,
    wanted: &StartTraining,
    files: &RequestFiles,
) -> Result<(), CommandError> {
    let plan = session.client.plan_training(workflow, wanted).await;
    let plan = plan.map_err(|error| session.complaint(error).located(files).about(workflow))?;
    if session.output == Output::Json {
        return say(pretty(&plan)?);
    }
    let paint = Paint::stderr();
    for warning in &plan.warnings {
        let code = paint.dim(format_args!("({})", harmless(&warning.code)));
        complain(format_args!("{} {} {code}", paint.warning("warning:"), harmless(&warning.message)));
    }
    for (name, value) in lines(&plan) {
        say(format_args!("{name:<10} {}", harmless(&value)))?;
    }
    complain(paint.dim("Nothing was started."));
    Ok(())
}

/// The lines as names and values.
fn lines(plan: &TrainingPlan) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("kind", plan.kind.as_str().to_owned()),
        ("version", plan.version.map_or_else(|| "draft".to_owned(), |number| number.to_string())),
    ];
    if !plan.trainable_prompts.is_empty() {
        lines.push(("prompts", plan.trainable_prompts.join(", ")));
    }
    if let Some(splits) = &plan.splits {
        let (train, val, test) = (splits.train.len(), splits.val.len(), splits.test.len());
        let kfold = if splits.test_estimate.as_deref() == Some("kfold") { " (k-fold estimate)" } else { "" };
        lines.push(("splits", format!("{train} train, {val} val, {test} test{kfold}")));
    }
    if let Some(name) = plan.optimizer.get("name").and_then(Value::as_str) {
        let epochs = plan.optimizer.get("epochs").map(|epochs| format!(", {epochs} epochs"));
        lines.push(("optimizer", format!("{name}{}", epochs.unwrap_or_default())));
    }
    for (name, member) in [("executions", "cases"), ("calls", "llm_calls")] {
        lines.extend(plan.estimate.get(member).map(|range| (name, estimate(range))));
    }
    lines.extend(plan.estimate.get("tokens").map(|tokens| ("tokens", format!("about {}", text(tokens)))));
    lines.extend(plan.estimate.get("cost_usd").map(|cost| ("cost", cost_text(cost))));
    let seconds = plan.estimate.get("seconds").and_then(Value::as_f64);
    lines.extend(seconds.and_then(span).map(|time| ("time", format!("about {time}"))));
    for pin in plan.pins.as_array().into_iter().flatten() {
        let member = |name: &str| pin.get(name).map(text).unwrap_or_default();
        lines.push(("pin", format!("{} version {}", member("workflow"), member("version"))));
    }
    lines
}

/// Null means that a model has no known price.
fn cost_text(cost: &Value) -> String {
    let unknown = "not known: a model of it has no known price".to_owned();
    cost.as_f64().map_or(unknown, |cost| format!("about {}", dollars(cost)))
}

/// A number, or the range `{min, expected, max}`.
fn estimate(range: &Value) -> String {
    let number = |name: &str| range.get(name).and_then(Value::as_u64);
    match (number("min"), number("expected"), number("max")) {
        (Some(min), Some(expected), Some(max)) if min == expected && expected == max => max.to_string(),
        (Some(min), Some(expected), Some(max)) => format!("about {expected} ({min} to {max})"),
        (Some(min), Some(expected), None) => format!("about {expected} (at least {min})"),
        _ => text(range),
    }
}

/// A value as text; a string without quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_has_a_line_for_each_field() {
        let plan: TrainingPlan = serde_json::from_value(json!({
            "kind": "training", "version": 3, "trainable_prompts": ["answer", "tone"],
            "estimate": {"cases": {"min": 12, "expected": 480, "max": null}, "llm_calls": {"min": 12, "expected": 900, "max": 1000},
                "tokens": 250000, "cost_usd": 0.126, "seconds": 450.0},
            "splits": {"train": [0, 1], "val": [2], "test": [], "test_estimate": "kfold"},
            "pins": [{"workflow": "escalate", "asked": null, "version": 4, "version_id": "v"}],
            "optimizer": {"name": "gepa", "epochs": 3}, "warnings": []
        }))
        .unwrap();
        let lines: Vec<String> =
            lines(&plan).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            lines,
            [
                "kind: training",
                "version: 3",
                "prompts: answer, tone",
                "splits: 2 train, 1 val, 0 test (k-fold estimate)",
                "optimizer: gepa, 3 epochs",
                "executions: about 480 (at least 12)",
                "calls: about 900 (12 to 1000)",
                "tokens: about 250000",
                "cost: about $0.13",
                "time: about 7m30s",
                "pin: escalate version 4",
            ]
        );
    }

    #[test]
    fn an_estimate_is_a_number_or_a_range() {
        assert_eq!(estimate(&json!(20)), "20");
        assert_eq!(estimate(&json!({"min": 20, "expected": 20, "max": 20})), "20");
        assert_eq!(estimate(&json!("many")), "many");
        assert_eq!(cost_text(&json!(0.0)), "about $0.00");
        assert_eq!(cost_text(&Value::Null), "not known: a model of it has no known price");
    }
}
