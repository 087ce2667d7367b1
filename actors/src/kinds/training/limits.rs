//! Rejects requests with values too large for a row, or inputs that do not match the graph.

use engine::Plan;
use serde::Serialize;
use serde_json::{Map, Value};
use training::Case;
use training::request::{read_evaluation, read_training};
use wire::{FieldError, TrainingKind};

/// Maximum bytes of `inputs`, config, `mocks` and each evaluator, as JSON.
const LARGEST: usize = 1 << 20;

/// Maximum cases with wrong inputs that are listed one by one.
const MOST_WRONG: usize = 20;

/// Reports values in a request that are too large. They are stored in each of the run's rows, or in memory while it
/// executes.
pub(super) fn check_sizes(
    request: &Value,
    inputs: &Map<String, Value>,
    config: &Map<String, Value>,
    at: &str,
    problems: &mut Vec<FieldError>,
) {
    let mut check = |pointer: String, size: usize| {
        if size > LARGEST {
            problems.push(FieldError::new(pointer, "too_large", "may have 1 MiB as JSON"));
        }
    };
    check("/inputs".to_owned(), size(inputs));
    check("/runnable_config".to_owned(), size(config));
    check(format!("{at}/mocks"), request.get("mocks").map_or(0, size));
    let evaluators = request.get("evaluators").and_then(Value::as_array);
    for (place, evaluator) in evaluators.into_iter().flatten().enumerate() {
        check(format!("{at}/evaluators/{place}"), size(evaluator));
    }
}

/// Size of a value as JSON, in bytes.
fn size(value: &impl Serialize) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// The problems in the object `training` or `evaluation` that need no other data, for a request that is refused anyway.
#[must_use]
pub fn request_problems(kind: TrainingKind, request: &Value) -> Vec<FieldError> {
    let at = format!("/{}", kind.as_str());
    let mut problems = Vec::new();
    let nothing = Map::new();
    check_sizes(request, &nothing, &nothing, &at, &mut problems);
    match kind {
        TrainingKind::Training => drop(read_training(request, &at, &mut problems)),
        TrainingKind::Evaluation => drop(read_evaluation(request, &at, &mut problems)),
    }
    problems
}

/// Reports cases whose inputs, laid over the request's inputs, do not match the graph's schema. `is_stored`: whether
/// the cases come from a stored dataset.
pub(super) fn check_inputs(
    plan: &Plan,
    inputs: &Map<String, Value>,
    cases: &[Case],
    is_stored: bool,
    at: &str,
    problems: &mut Vec<FieldError>,
) {
    let mut wrong = 0_usize;
    for case in cases {
        let found = plan.check_inputs(&case.inputs(inputs));
        if found.is_empty() {
            continue;
        }
        wrong += 1;
        if wrong > MOST_WRONG {
            continue;
        }
        problems.extend(found.into_iter().take(MOST_WRONG).map(|problem| match is_stored {
            false => {
                let pointer = format!("{at}/cases/{}/inputs{}", case.index, problem.pointer);
                FieldError { pointer, ..problem }
            }
            // The dataset's cases are not in the request.
            true => {
                let message = format!("case '{}': inputs{}: {}", case.id, problem.pointer, problem.message);
                FieldError { pointer: format!("{at}/id"), message, ..problem }
            }
        }));
    }
    if wrong > MOST_WRONG {
        let message = format!(
            "the inputs of {wrong} of {} cases do not match the workflow's schema; the first {MOST_WRONG} are listed",
            cases.len()
        );
        problems.push(FieldError::new(at, "inputs", message));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_values_are_named_by_their_pointers() {
        let large = json!("x".repeat(LARGEST));
        let of = |value: &Value| Map::from_iter([("text".to_owned(), value.clone())]);
        let small = json!({"mocks": {"a": 1}, "evaluators": [{"id": "a"}]});
        let mut problems = Vec::new();
        let nothing = Map::new();
        check_sizes(&small, &of(&json!("x")), &nothing, "/training", &mut problems);
        assert_eq!(problems, []);
        let request =
            json!({"mocks": {"a": large}, "evaluators": [{"id": "a"}, {"id": "b", "config": large}]});
        check_sizes(&request, &of(&large), &of(&large), "/training", &mut problems);
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        let expected = ["/inputs", "/runnable_config", "/training/mocks", "/training/evaluators/1"];
        assert_eq!(pointers, expected);
        // The quotes and the member's name count as well.
        let most = json!("x".repeat(LARGEST - r#"{"text":""}"#.len()));
        let mut problems = Vec::new();
        check_sizes(&small, &of(&most), &nothing, "/training", &mut problems);
        assert_eq!(problems, []);
    }
}
