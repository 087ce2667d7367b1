//! Parses and validates the body of `PUT /api/workflows/{ref}/rollout`. Pure.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use wire::{FieldError, PutRollout, RolloutCanary, RolloutGate};

use crate::http::fields::{Fields, Parsed};

/// The default `max_drop`: how much worse than the live version a version may be.
const MAX_DROP: f64 = 0.02;
/// Maximum characters in a dataset name.
const LONGEST_NAME: usize = 200;

/// Reads the request. An absent or null part is removed.
pub(super) fn read(body: &Map<String, Value>) -> Parsed<PutRollout> {
    let mut fields = Fields::new(body);
    let gate = fields.object("gate").map(|gate| inside("/gate", gate, read_gate));
    let canary = fields.object("canary").map(|canary| inside("/canary", canary, read_canary));
    let mut problems = fields.finish();
    let (gate, of_gate) = gate.map_or((None, Vec::new()), |(gate, problems)| (Some(gate), problems));
    let (canary, of_canary) =
        canary.map_or((None, Vec::new()), |(canary, problems)| (Some(canary), problems));
    problems.extend(of_gate);
    problems.extend(of_canary);
    if problems.is_empty() { Ok(PutRollout { gate, canary }) } else { Err(problems) }
}

/// Reads a member; pointers of its problems start at the body.
fn inside<T>(
    at: &str,
    members: &Map<String, Value>,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> (T, Vec<FieldError>) {
    let mut fields = Fields::new(members);
    let value = read(&mut fields);
    let placed = |problem: FieldError| FieldError { pointer: format!("{at}{}", problem.pointer), ..problem };
    (value, fields.finish().into_iter().map(placed).collect())
}

fn read_gate(fields: &mut Fields<'_>) -> RolloutGate {
    for name in ["dataset", "evaluators", "threshold"] {
        fields.require(name);
    }
    let dataset = fields.line("dataset", 1, LONGEST_NAME).unwrap_or_default();
    let dataset_version = whole(fields, "dataset_version", 1..=i64::from(i32::MAX));
    let evaluators = fields.list("evaluators").cloned().unwrap_or_default();
    let threshold = share(fields, "threshold").unwrap_or_default();
    let max_drop = share(fields, "max_drop").unwrap_or(MAX_DROP);
    let max_cases = whole(fields, "max_cases", 1..=100_000);
    let budget = fields.object("budget").cloned();
    RolloutGate { dataset, dataset_version, evaluators, threshold, max_drop, max_cases, budget }
}

fn read_canary(fields: &mut Fields<'_>) -> RolloutCanary {
    for name in ["version", "percent"] {
        fields.require(name);
    }
    let version = whole(fields, "version", 1..=i64::from(i32::MAX)).unwrap_or_default();
    let percent = whole(fields, "percent", 1..=50).unwrap_or_default();
    let promote_after_turns = whole(fields, "promote_after_turns", 1..=1_000_000_000);
    RolloutCanary { version, percent, promote_after_turns }
}

fn whole(fields: &mut Fields<'_>, name: &'static str, bounds: RangeInclusive<i64>) -> Option<i32> {
    fields.whole(name, bounds).and_then(|number| i32::try_from(number).ok())
}

/// A number from 0 to 1.
fn share(fields: &mut Fields<'_>, name: &'static str) -> Option<f64> {
    let value = fields.stands(name).filter(|value| !value.is_null())?;
    let Some(number) = value.as_f64() else {
        fields.note(FieldError::new(format!("/{name}"), "type", "must be a number"));
        return None;
    };
    if !(0.0..=1.0).contains(&number) {
        fields.note(FieldError::new(format!("/{name}"), "range", "must be from 0 to 1"));
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(body: &Value) -> Result<PutRollout, Vec<String>> {
        let lines = |problems: Vec<FieldError>| {
            problems.into_iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
        };
        read(body.as_object().unwrap()).map_err(lines)
    }

    #[test]
    fn a_rollout_is_parsed_with_its_defaults() {
        let read = parse(&json!({"gate": {"dataset": "d", "evaluators": [{"id": "a"}], "threshold": 0.5},
                              "canary": {"version": 2, "percent": 50}}));
        let read = read.unwrap();
        let gate = read.gate.unwrap();
        assert_eq!(
            (gate.max_drop, gate.threshold, gate.dataset_version, gate.max_cases),
            (0.02, 0.5, None, None)
        );
        assert_eq!(read.canary, Some(RolloutCanary { version: 2, percent: 50, promote_after_turns: None }));
        assert_eq!(parse(&json!({})), Ok(PutRollout::default()));
        assert_eq!(parse(&json!({"gate": null, "canary": null})), Ok(PutRollout::default()));
    }

    #[test]
    fn every_problem_is_reported_with_its_pointer() {
        let body = json!({"x": 1, "gate": {"threshold": 2, "max_drop": "a", "y": 1, "max_cases": 0},
                          "canary": {"version": 0, "percent": 51, "promote_after_turns": 0, "z": 1}});
        let mut problems = parse(&body).unwrap_err();
        problems.sort();
        assert_eq!(
            problems,
            [
                "/canary/percent range",
                "/canary/promote_after_turns range",
                "/canary/version range",
                "/canary/z unknown_field",
                "/gate/dataset required",
                "/gate/evaluators required",
                "/gate/max_cases range",
                "/gate/max_drop type",
                "/gate/threshold range",
                "/gate/y unknown_field",
                "/x unknown_field",
            ]
        );
        assert_eq!(parse(&json!({"gate": 1, "canary": []})).unwrap_err(), ["/gate type", "/canary type"]);
    }
}
