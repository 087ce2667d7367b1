//! Tests every rule of both readers.

mod optimizer;

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::calls::BudgetLimits;

/// The pointer to the body in its message.
const AT: &str = "/body";

type Reader<T> = fn(&Value, &str, &mut Vec<FieldError>) -> Option<T>;

/// A body with these members, which replace or extend its defaults.
fn body(members: &Value) -> Value {
    let mut body = json!({
        "dataset": {"cases": [{"inputs": {}}, {"inputs": {}}]},
        "evaluators": [{"id": "valid", "entrypoint": "builtin:json_valid"}],
    });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn training(members: &Value) -> Value {
    let mut body = body(members);
    body.as_object_mut().unwrap().entry("optimizer").or_insert(json!({}));
    body
}

/// Each problem as `pointer code`, with the pointer below the body.
fn problems<T>(read: Reader<T>, body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let is_read = read(body, AT, &mut problems).is_some();
    assert_eq!(is_read, problems.is_empty(), "{body}");
    let below =
        |problem: FieldError| format!("{} {}", problem.pointer.strip_prefix(AT).unwrap(), problem.code);
    problems.into_iter().map(below).collect()
}

/// Reads an evaluation that must have no problems.
fn evaluation(members: &Value) -> EvaluationRequest {
    let mut problems = Vec::new();
    let read = read_evaluation(&body(members), AT, &mut problems);
    read.unwrap_or_else(|| panic!("{problems:?}"))
}

#[test]
fn bad_trainings_are_named() {
    for (body, expected) in [
        (json!([]), &[" type"][..]),
        (json!({}), &["/dataset required", "/evaluators required", "/optimizer required"]),
        (training(&json!({"optimizer": 3})), &["/optimizer type"]),
        (training(&json!({"evaluators": []})), &["/evaluators type"]),
        (training(&json!({"mocks": []})), &["/mocks type"]),
        (training(&json!({"effects": "send"})), &["/effects choice"]),
        (training(&json!({"max_cases": 0})), &["/max_cases range"]),
        (
            training(&json!({"max_case": 1, "epochs": 3})),
            &["/max_case unknown_field", "/epochs unknown_field"],
        ),
        (training(&json!({"max_cases": null, "mocks": null, "effects": null})), &[]),
    ] {
        assert_eq!(problems(read_training, &body), expected, "{body}");
    }
}

#[test]
fn bad_evaluations_are_named() {
    for (members, expected) in [
        (json!({"dataset": null}), &["/dataset required"][..]),
        (json!({"optimizer": {}}), &["/optimizer unknown_field"]),
        (
            json!({"epochs": 1, "validation_split": 0.2}),
            &["/epochs unknown_field", "/validation_split unknown_field"],
        ),
        (json!({"models": {"optimizer": {"model": "openai/x"}}}), &["/models/optimizer unknown_field"]),
        (
            json!({"repeats": 11, "case_timeout_seconds": 301}),
            &["/case_timeout_seconds range", "/repeats range"],
        ),
    ] {
        assert_eq!(problems(read_evaluation, &body(&members)), expected, "{members}");
    }
}

#[test]
fn bad_datasets_are_named() {
    let case = json!({"inputs": {}});
    for (dataset, expected) in [
        (json!([]), &["/dataset type"][..]),
        (json!({}), &["/dataset/cases required"]),
        (json!({"version": 2}), &["/dataset/cases required"]),
        (json!({"cases": []}), &["/dataset/cases dataset_empty"]),
        (json!({"cases": {}}), &["/dataset/cases type"]),
        (json!({"cases": [case, 1]}), &["/dataset/cases/1 type"]),
        (json!({"cases": [case], "id": "a"}), &[]),
        (json!({"cases": [case], "id": 1}), &["/dataset/id type"]),
        (json!({"cases": [case], "version": 1}), &["/dataset/version conflict"]),
        (json!({"id": ""}), &["/dataset/id length"]),
        (json!({"id": "x".repeat(201)}), &["/dataset/id length"]),
        (
            json!({"id": 7, "version": 0, "name": "a"}),
            &["/dataset/id type", "/dataset/version range", "/dataset/name unknown_field"],
        ),
    ] {
        let body = body(&json!({"dataset": dataset}));
        assert_eq!(problems(read_evaluation, &body), expected, "{dataset}");
    }
}

#[test]
fn an_empty_dataset_is_reported_with_other_problems() {
    let body = body(&json!({"dataset": {"cases": []}, "max_cases": "all"}));
    assert_eq!(problems(read_evaluation, &body), ["/max_cases range", "/dataset/cases dataset_empty"]);
}

#[test]
fn cases_are_inline_or_in_a_stored_dataset() {
    let inline = evaluation(&json!({"max_cases": 1})).workload;
    let DatasetSource::Inline(cases) = inline.dataset else { panic!("{inline:?}") };
    assert_eq!((cases.len(), inline.max_cases), (1, Some(1)));
    for (dataset, version) in
        [(json!({"id": "d1", "cases": null}), None), (json!({"id": "d1", "version": 3}), Some(3))]
    {
        let stored = evaluation(&json!({"dataset": dataset, "max_cases": 9})).workload;
        assert_eq!(stored.dataset, DatasetSource::Stored { id: "d1".into(), version });
        assert_eq!(stored.max_cases, Some(9));
    }
}

#[test]
fn nodes_have_results_or_may_send() {
    let default = evaluation(&json!({})).workload;
    assert_eq!((default.mocks, default.may_send), (None, false));
    let mocks = json!({"send": {"status": 201}, "each[3]": null});
    for (effects, may_send) in [("refuse", false), ("run", true)] {
        let workload = evaluation(&json!({"mocks": mocks, "effects": effects})).workload;
        assert_eq!((json!(workload.mocks), workload.may_send), (mocks.clone(), may_send));
    }
}

#[test]
fn an_evaluation_has_the_settings_of_a_run() {
    let default = evaluation(&json!({})).settings;
    assert_eq!((default.case_timeout, default.concurrency), (Duration::from_secs(30), 4));
    assert_eq!((default.repeats, default.seed, default.cache), (1, 0, CacheScope::Run));
    assert_eq!((default.limits, default.max_active), (BudgetLimits::default(), None));
    assert_eq!(default.models, RunModels::default());
    let given = evaluation(&json!({
        "case_timeout_seconds": 2.5, "max_concurrency": 99, "repeats": 3, "seed": 5, "cache": "off",
        "budget": {"max_llm_calls": 9, "max_cost": 0.1, "max_seconds": 1.5},
        "models": {"judge": {"model": "practice/judge"}},
    }));
    let settings = given.settings;
    assert_eq!((settings.case_timeout, settings.concurrency), (Duration::from_millis(2_500), 8));
    assert_eq!((settings.repeats, settings.seed, settings.cache), (3, 5, CacheScope::Off));
    let limits = BudgetLimits { max_llm_calls: Some(9), max_tokens: None, max_cost: Some(100_000_000) };
    assert_eq!((settings.limits, settings.max_active), (limits, Some(Duration::from_millis(1_500))));
    assert_eq!(settings.models.judge.unwrap().model, "practice/judge");
}
