//! What a request may not ask for: values that are too large for a row, and what this service does not do yet.

use serde::Serialize;
use serde_json::{Map, Value};
use training::request::{CacheScope, Optimizer, RunSettings};
use wire::FieldError;

/// Bytes of the largest `inputs`, config, `mocks` and evaluator, as JSON.
const LARGEST: usize = 1 << 20;

/// Notes values of a request that are too large. They stand in each row of the run, or in memory as long as it executes.
pub(super) fn check_sizes(
    request: &Value,
    (inputs, config): (&Map<String, Value>, &Map<String, Value>),
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

/// Bytes of a value as JSON.
fn size(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// Notes what would be ignored: it is refused instead. `at`: of `optimizer`, or of `evaluation`.
pub(super) fn check_available(
    settings: &RunSettings,
    optimizer: Option<&Optimizer>,
    at: &str,
    problems: &mut Vec<FieldError>,
) {
    let mut refuse = |field: &str, suggestion: &str| {
        let problem = FieldError::new(format!("{at}/{field}"), "unavailable", "is not available yet");
        problems.push(problem.suggest(suggestion));
    };
    if settings.cache != CacheScope::Run {
        refuse("cache", "\"cache\": \"run\"");
    }
    let models = &settings.models;
    for (name, model) in [("optimizer", &models.optimizer), ("judge", &models.judge)] {
        if model.as_ref().is_some_and(|model| model.prices.is_some()) {
            refuse(&format!("models/{name}/prices"), "leave 'prices' out: known models have list prices");
        }
    }
    let objective = optimizer.map(|optimizer| &optimizer.objective);
    if objective.is_some_and(|objective| objective.cost_penalty > 0.0) {
        refuse("objective/cost_penalty", "\"cost_penalty\": 0");
    }
    if objective.is_some_and(|objective| objective.latency_penalty > 0.0) {
        refuse("objective/latency_penalty", "\"latency_penalty\": 0");
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
        check_sizes(&small, (&of(&json!("x")), &nothing), "/training", &mut problems);
        assert_eq!(problems, []);
        let request =
            json!({"mocks": {"a": large}, "evaluators": [{"id": "a"}, {"id": "b", "config": large}]});
        check_sizes(&request, (&of(&large), &of(&large)), "/training", &mut problems);
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        let expected = ["/inputs", "/runnable_config", "/training/mocks", "/training/evaluators/1"];
        assert_eq!(pointers, expected);
        // The quotes and the name of the member count, too.
        let most = json!("x".repeat(LARGEST - r#"{"text":""}"#.len()));
        let mut problems = Vec::new();
        check_sizes(&small, (&of(&most), &nothing), "/training", &mut problems);
        assert_eq!(problems, []);
    }
}
