//! Turns a run into a case: the data that its nodes sent and read is replayed from its journal.

use std::collections::BTreeMap;

use engine::RecordedStep;
use serde_json::{Map, Value, json};

use crate::mocks::{VISITS, full_name, names_of, visit_of};

/// The results of a run's nodes that send or read outside, in the form of `metadata.mocks`: with them, a repeated run
/// calls only models. `outside`: these nodes by their names in traces; a name includes nested nodes.
///
/// # Errors
/// The name of a node without a result in some visit: it failed, which a mock cannot repeat.
pub fn recorded_mocks(steps: &[RecordedStep], outside: &[String]) -> Result<Map<String, Value>, String> {
    // The results by name and visit.
    let mut found: BTreeMap<String, BTreeMap<u32, Option<&Value>>> = BTreeMap::new();
    for step in steps {
        let names = names_of(&step.node);
        if !names.iter().any(|name| outside.iter().any(|outside| is_inside(name, outside))) {
            continue;
        }
        let visit = visit_of(&step.node, step.visit);
        let mut keep = |name: &str| {
            let known = found.entry(name.to_owned()).or_default().entry(visit).or_default();
            // Among several attempts, only one has a result.
            *known = step.result.as_ref().or(*known);
        };
        keep(&full_name(&step.node));
        // A model may call a tool at another step than in the run.
        if let Some(every) = names.last() {
            keep(every);
        }
    }
    let result = |(name, results): (String, BTreeMap<u32, Option<&Value>>)| match mock(&results) {
        Some(mock) => Ok((name, mock)),
        None => Err(name),
    };
    found.into_iter().map(result).collect()
}

/// Whether a name is the node itself or a node inside it.
fn is_inside(name: &str, node: &str) -> bool {
    name.strip_prefix(node).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
}

/// A single result, or one per visit; `None` if any visit has none.
fn mock(results: &BTreeMap<u32, Option<&Value>>) -> Option<Value> {
    let last = results.keys().next_back().copied()?;
    let result = |visit: u32| results.get(&visit).copied().flatten().cloned();
    let all: Vec<Value> = (1..=last).map(result).collect::<Option<_>>()?;
    match &all[..] {
        // A single result that looks like a list of visits must be wrapped.
        [only] if only.get(VISITS).is_none() => Some(only.clone()),
        _ => Some(json!({VISITS: all})),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn step(node: &str, visit: u32, result: Option<Value>) -> RecordedStep {
        RecordedStep {
            node: node.to_owned(),
            visit,
            attempt: 1,
            input_digest: [0; 32],
            result,
            error: None,
            note: None,
            started_at: DateTime::UNIX_EPOCH,
            finished_at: None,
        }
    }

    #[test]
    fn only_external_results_are_replayed() {
        let steps = [
            step("think", 1, Some(json!("a model's answer"))),
            step("get", 1, None),
            step("get", 1, Some(json!({"status": 200}))),
            step("again", 1, Some(json!(1))),
            step("again", 2, None),
            step("again", 2, Some(json!(2))),
            step("odd", 1, Some(json!({"$visits": 7}))),
            step("mail/send", 1, Some(json!("sent"))),
            step("each[2]", 1, Some(json!("second"))),
            step("help[0].weather[1]", 1, Some(json!("rain"))),
            step("help[1].weather[0]", 1, Some(json!("sun"))),
            step("help[1].add[1]", 1, Some(json!(2))),
            step("getter", 1, Some(json!("another node"))),
        ];
        let outside = ["get", "again", "odd", "mail/send", "each", "help.weather"].map(str::to_owned);
        assert_eq!(
            Value::Object(recorded_mocks(&steps, &outside).unwrap()),
            json!({
                "get": {"status": 200},
                "again": {"$visits": [1, 2]},
                "odd": {"$visits": [{"$visits": 7}]},
                "mail/send": "sent",
                "each[2]": "second", "each": "second",
                "help[0].weather[1]": "rain", "help[1].weather[0]": "sun", "help.weather": "sun",
            })
        );
        let all = recorded_mocks(&steps, &["help".to_owned()]).unwrap();
        assert_eq!(all.len(), 5, "all tools of an agent: {all:?}");
        let failed = [step("get", 1, Some(json!(1))), step("get", 2, None), step("get", 3, Some(json!(3)))];
        assert_eq!(recorded_mocks(&failed, &outside), Err("get".to_owned()));
        let missing = [step("get", 2, Some(json!(2)))];
        assert_eq!(recorded_mocks(&missing, &outside), Err("get".to_owned()));
    }
}
