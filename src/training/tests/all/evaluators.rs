//! The built-in evaluators: scores, helpful reasons, and configs refused before the first call.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use training::evaluators::{BUILTINS, Evaluator, Measured, NoBench, Subject, Verdict, read_evaluators};
use training::{Case, CaseStep};

use crate::world::case;

fn problems(evaluators: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    read_evaluators(evaluators, "/training/evaluators", &mut problems);
    let below = |pointer: &str| pointer.trim_start_matches("/training/evaluators").to_owned();
    problems.iter().map(|problem| format!("{} {}", below(&problem.pointer), problem.code)).collect()
}

/// The verdict of an evaluator that only compares.
fn at_once(evaluator: &Evaluator, subject: &Subject<'_>) -> Verdict {
    evaluator.judge(subject, &NoBench::default()).now_or_never().unwrap().unwrap()
}

struct Given {
    output: Value,
    expected: Value,
    trace: Vec<CaseStep>,
    measured: Measured,
}

fn given(output: Value, expected: Value) -> Given {
    Given { output, expected, trace: Vec::new(), measured: Measured::default() }
}

impl Given {
    fn judged(&self, entrypoint: &str, config: &Value) -> Verdict {
        let mut problems = Vec::new();
        let request = json!([{"id": "e", "entrypoint": format!("builtin:{entrypoint}"), "config": config}]);
        let evaluators = read_evaluators(&request, "", &mut problems);
        assert_eq!(problems, [], "{entrypoint} {config}");
        let text = self.output.as_str().map_or_else(|| self.output.to_string(), str::to_owned);
        let case = Case { expected_output: self.expected.clone(), ..case(0, &json!({}), &json!({})) };
        let subject = Subject {
            output: &self.output,
            text: &text,
            case: &case,
            split: None,
            epoch: None,
            trace: &self.trace,
            measured: self.measured,
        };
        at_once(&evaluators[0], &subject)
    }
}

/// Score and pass result of a text.
fn scored(output: Value, expected: Value, entrypoint: &str, config: Value) -> (f64, bool) {
    let verdict = given(output, expected).judged(entrypoint, &config);
    assert_eq!(verdict.error, None, "{entrypoint}");
    assert_eq!(verdict.reason.is_some(), verdict.score < 1.0, "{entrypoint}: {:?}", verdict.reason);
    (verdict.score, verdict.passed)
}

#[test]
fn text_evaluators_compare_texts() {
    let all = (1.0, true);
    let none = (0.0, false);
    for (output, expected, entrypoint, config, score) in [
        (json!(" A  b\n"), json!("A b"), "exact_match", json!({}), all),
        (json!("a b"), json!("A b"), "exact_match", json!({}), none),
        (json!("a b"), json!("A b"), "exact_match", json!({"case_sensitive": false}), all),
        (json!("A  b"), json!("A b"), "exact_match", json!({"whitespace": true}), none),
        (json!("x"), json!("y"), "exact_match", json!({"expected": "x"}), all),
        (json!({"n": 1}), json!({"n": 1}), "exact_match", json!({}), all),
        (json!("{\"n\": 1}"), json!({"n": 1}), "exact_match", json!({}), all),
        (json!({"n": 2}), json!({"n": 1}), "exact_match", json!({}), none),
        (json!("The red cat."), json!("red"), "contains", json!({}), all),
        (json!("The red cat."), json!(null), "contains", json!({"values": ["red", "dog"]}), (0.5, false)),
        (json!("The red cat."), json!(["red", "cat"]), "contains_all", json!({}), all),
        (
            json!("The red cat."),
            json!(null),
            "contains_any",
            json!({"values": ["dog", "CAT"], "case_sensitive": false}),
            all,
        ),
        (json!("The red cat."), json!(null), "contains_any", json!({"values": ["dog"]}), none),
        (json!("The red cat."), json!(null), "not_contains", json!({"values": ["dog"]}), all),
        (json!("The red cat."), json!(null), "not_contains", json!({"values": "red"}), none),
        (json!("Dear Ada"), json!(null), "starts_with", json!({"values": ["Hi", "Dear"]}), all),
        (json!("Ada, dear"), json!("Dear"), "starts_with", json!({}), none),
        (json!("order 77"), json!(null), "regex", json!({"pattern": "[0-9]+"}), all),
        (json!("order 77"), json!(null), "regex", json!({"pattern": "[0-9]+", "whole": true}), none),
        (json!(" 77 "), json!(null), "regex", json!({"pattern": "[0-9]+", "whole": true}), all),
        (json!("yes please"), json!(null), "regex", json!({"pattern": "yes|yes please", "whole": true}), all),
        (json!("forty"), json!(42), "exact_match", json!({}), none),
        (json!("42.0"), json!(42), "exact_match", json!({}), all),
        (json!("ORDER"), json!(null), "regex", json!({"pattern": "order", "case_sensitive": false}), all),
        (json!("one two"), json!(null), "length", json!({"max": 2, "unit": "words"}), all),
        (
            json!("one two three four"),
            json!(null),
            "length",
            json!({"max": 2, "unit": "words"}),
            (0.5, false),
        ),
        (json!("ab"), json!(null), "length", json!({"min": 4}), (0.5, false)),
        (json!("a\nb"), json!(null), "length", json!({"min": 2, "max": 2, "unit": "lines"}), all),
    ] {
        assert_eq!(
            scored(output.clone(), expected, entrypoint, config.clone()),
            score,
            "{entrypoint} {config} {output}"
        );
    }
}

#[test]
fn numeric_evaluators_compare_numbers() {
    for (output, expected, config, passed) in [
        (json!("It costs 1,200.50 EUR"), json!(1_200.5), json!({}), true),
        (json!("2 + 2 = 4"), json!("4"), json!({}), true),
        (json!("2 + 2 = 4"), json!(2), json!({"which": "first"}), true),
        (json!("about 104"), json!(100), json!({"relative": 0.05}), true),
        (json!("about 106"), json!(100), json!({"relative": 0.05}), false),
        (json!("99"), json!(null), json!({"expected": 100, "tolerance": 1}), true),
        (json!(7), json!(7), json!({}), true),
        (json!("none"), json!(7), json!({}), false),
        (json!("-3e2"), json!(-300), json!({}), true),
        (json!("from 3,4"), json!(4), json!({}), true),
        (json!("3-5"), json!(5), json!({}), true),
        (json!("it is -5"), json!(-5), json!({}), true),
    ] {
        assert_eq!(scored(output.clone(), expected, "numeric", config).1, passed, "{output}");
    }
    let error = given(json!("7"), json!(null)).judged("numeric", &json!({})).error.unwrap();
    assert!(error.contains("no number"), "{error}");
}

#[test]
fn json_is_compared_leaf_by_leaf() {
    let order = json!({"id": 7, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]});
    let close = json!({"id": 7.0, "lines": [{"sku": "a", "n": 1}, {"sku": "c", "n": 2}]});
    for (output, expected, entrypoint, config, score) in [
        (order.clone(), order.clone(), "json_equal", json!({}), (1.0, true)),
        (json!(order.to_string()), json!(order.to_string()), "json_equal", json!({}), (1.0, true)),
        (close, order.clone(), "json_equal", json!({}), (0.8, false)),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), "json_equal", json!({}), (0.5, false)),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), "json_equal", json!({"allow_extra": true}), (1.0, true)),
        (json!([1, 2, 3]), json!([1]), "json_equal", json!({}), (1.0 / 3.0, false)),
        (json!("no"), json!({"a": 1}), "json_equal", json!({}), (0.0, false)),
        (json!("```json\n{\"a\": 1}\n```"), json!(null), "json_valid", json!({}), (1.0, true)),
        (json!("{"), json!(null), "json_valid", json!({}), (0.0, false)),
        (json!({"a": 1}), json!(null), "json_schema", json!({"schema": {"required": ["a"]}}), (1.0, true)),
        (json!({"b": 1}), json!(null), "json_schema", json!({"schema": {"required": ["a"]}}), (0.0, false)),
        (
            order.clone(),
            json!(null),
            "json_path",
            json!({"path": "$.lines[1].sku", "expected": "b"}),
            (1.0, true),
        ),
        (order.clone(), order.clone(), "json_path", json!({"path": "$.lines[0].n"}), (1.0, true)),
        (order.clone(), json!("a"), "json_path", json!({"path": "$.lines[1].sku"}), (0.0, false)),
        (order.clone(), json!(null), "json_path", json!({"path": "$.total"}), (0.0, false)),
        (json!(["red", "blue"]), json!("red, green"), "set_f1", json!({}), (0.5, true)),
    ] {
        let (got, passed) = scored(output.clone(), expected, entrypoint, config.clone());
        assert!(
            (got - score.0).abs() < 1e-9 && passed == score.1,
            "{entrypoint} {config} {output}: {got} {passed}"
        );
    }
}

#[test]
fn reasons_name_the_expected_and_actual_values_and_the_difference() {
    for (output, expected, entrypoint, config, parts) in [
        (
            json!("the cat"),
            json!("the dog"),
            "exact_match",
            json!({}),
            &["“the dog”", "“the cat”", "character 5"][..],
        ),
        (json!("  "), json!("x"), "exact_match", json!({}), &["“x”", "empty"]),
        (json!("a"), json!(null), "contains", json!({"values": ["b", "c"]}), &["“b”, “c”", "“a”"]),
        (
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 2, "c": 3}}),
            "json_equal",
            json!({}),
            &["/a/b: expected 2, got 1", "/a/c is missing"],
        ),
        (
            json!({"n": "x"}),
            json!(null),
            "json_schema",
            json!({"schema": {"properties": {"n": {"type": "number"}}}}),
            &["/n"],
        ),
        (
            json!("red, blue"),
            json!("red, green"),
            "set_f1",
            json!({}),
            &["Missing: “green”", "Not expected: “blue”"],
        ),
        (json!("x".repeat(1_000)), json!("y"), "exact_match", json!({}), &["…"]),
    ] {
        let verdict = given(output, expected).judged(entrypoint, &config);
        let reason = verdict.feedback.unwrap();
        assert!(
            parts.iter().all(|part| reason.contains(part)) && reason.len() < 1_500,
            "{entrypoint}: {reason}"
        );
    }
}

#[test]
fn latency_and_cost_are_scored() {
    let measured = Measured { duration: Duration::from_millis(200), cost: Some(0.02) };
    let given = Given { measured, ..given(json!("x"), json!(null)) };
    for (entrypoint, config, score) in [
        ("latency", json!({"max_ms": 200}), 1.0),
        ("latency", json!({"max_ms": 50}), 0.25),
        ("cost", json!({"max_usd": 0.02}), 1.0),
        ("cost", json!({"max_usd": 0.01}), 0.5),
    ] {
        assert_eq!(given.judged(entrypoint, &config).score, score, "{entrypoint} {config}");
    }
    let unknown = Given { measured: Measured::default(), ..given };
    assert!(unknown.judged("cost", &json!({"max_usd": 1})).error.unwrap().contains("unknown"));
}

#[test]
fn tool_calls_are_read_from_agents() {
    let step = |node: &str, calls: [Value; 2]| {
        let output = Some(json!({"text": "x", "tool_calls": calls}));
        CaseStep { node: node.into(), visit: 1, attempt: 1, output, ..CaseStep::default() }
    };
    let asks = |tool: &str| json!({"id": "call_1", "name": tool, "arguments": {}});
    let lists = |tool: &str| json!({"tool": tool, "arguments": {}, "error": null});
    let trace = vec![step("help[0]", ["find", "pay"].map(asks)), step("help", ["find", "pay"].map(lists))];
    let given = Given { trace, ..given(json!("x"), json!(["find", "pay"])) };
    for (config, score) in [
        (json!({}), 1.0),
        (json!({"tools": ["pay", "find"]}), 1.0),
        (json!({"tools": ["pay", "find"], "in_order": true}), 0.5),
        (json!({"tools": ["find"]}), 2.0 / 3.0),
        (json!({"tools": ["mail"]}), 0.0),
    ] {
        assert_eq!(given.judged("tool_calls", &config).score, score, "{config}");
    }
}

#[test]
fn several_evaluators_are_combined() {
    let parts = json!([{"entrypoint": "builtin:contains", "config": {"values": ["a"]}, "weight": 3},
                       {"entrypoint": "builtin:length", "config": {"max": 1}}]);
    for (entrypoint, score, passed) in [("all", 0.5, false), ("any", 1.0, true), ("weighted", 0.875, true)] {
        let verdict = given(json!("ab"), json!(null)).judged(entrypoint, &json!({"evaluators": parts}));
        assert_eq!((verdict.score, verdict.passed), (score, passed), "{entrypoint}");
    }
    let nested = |depth: usize| {
        (0..depth).fold(
            json!({"entrypoint": "builtin:json_valid"}),
            |inner, _| json!({"entrypoint": "builtin:all", "config": {"evaluators": [inner]}}),
        )
    };
    let named = |mut evaluator: Value| {
        evaluator["id"] = json!("e");
        json!([evaluator])
    };
    assert_eq!(problems(&named(nested(4))), Vec::<String>::new());
    assert_eq!(problems(&named(nested(5))).len(), 1);
    let wide = json!({"entrypoint": "builtin:all", "config": {"evaluators": vec![nested(1); 20]}});
    let many: Vec<Value> = (0..6).map(|_| wide.clone()).collect();
    assert_eq!(problems(&json!(many)), [" size"]);
}

#[test]
fn a_missing_expected_value_is_an_error_and_scores_zero() {
    for entrypoint in
        ["exact_match", "contains", "starts_with", "token_f1", "json_equal", "set_f1", "tool_calls"]
    {
        let verdict = given(json!("x"), json!(null)).judged(entrypoint, &json!({}));
        assert!(verdict.error.is_some() && verdict.score == 0.0 && !verdict.passed, "{entrypoint}");
    }
}

#[test]
fn a_threshold_from_the_request_decides_passing() {
    let mut refused = Vec::new();
    let request = json!([{"id": "e", "entrypoint": "builtin:contains", "config": {"values": ["a", "b"]}, "threshold": 0.5}]);
    let evaluators = read_evaluators(&request, "", &mut refused);
    let case = case(0, &json!({}), &json!({}));
    let subject = Subject {
        output: &json!("a"),
        text: "a",
        case: &case,
        split: None,
        epoch: None,
        trace: &[],
        measured: Measured::default(),
    };
    let verdict = at_once(&evaluators[0], &subject);
    assert_eq!((verdict.score, verdict.passed), (0.5, true));
}

#[test]
fn bad_evaluators_are_named() {
    let one = |entry: Value| json!([entry]);
    for (evaluators, expected) in [
        (json!(null), &[" type"][..]),
        (json!([]), &[" type"]),
        (json!([1]), &["/0 type"]),
        (one(json!({})), &["/0/id required", "/0/entrypoint required"]),
        (one(json!({"id": "a", "entrypoint": "builtin:exact"})), &["/0/entrypoint evaluator_not_found"]),
        (one(json!({"id": "a", "entrypoint": "exact_match"})), &["/0/entrypoint evaluator_not_found"]),
        (one(json!({"id": "a", "entrypoint": "builtin:regex"})), &["/0/config/pattern required"]),
        (
            one(json!({"id": "a", "entrypoint": "builtin:regex", "config": {"pattern": "("}})),
            &["/0/config/pattern pattern"],
        ),
        (
            one(json!({"id": "a", "entrypoint": "builtin:json_schema", "config": {"schema": {"type": "x"}}})),
            &["/0/config/schema schema"],
        ),
        (
            one(json!({"id": "a", "entrypoint": "builtin:json_path", "config": {"path": "["}})),
            &["/0/config/path path"],
        ),
        (
            one(json!({"id": "a", "entrypoint": "builtin:contains", "config": {"value": "x"}})),
            &["/0/config/value unknown_field"],
        ),
        (
            one(json!({"id": "a", "entrypoint": "builtin:contains", "config": {"values": []}})),
            &["/0/config/values type"],
        ),
        (
            one(json!({"id": "a", "entrypoint": "builtin:length", "config": {"min": 3, "max": 2}})),
            &["/0/config/min range"],
        ),
        (one(json!({"id": "a", "entrypoint": "builtin:all", "config": {}})), &["/0/config/evaluators type"]),
        (
            one(
                json!({"id": "a", "entrypoint": "builtin:any", "config": {"evaluators": [{"entrypoint": "builtin:nothing"}]}}),
            ),
            &["/0/config/evaluators/0/entrypoint evaluator_not_found"],
        ),
        (
            one(
                json!({"id": "a", "entrypoint": "builtin:json_valid", "threshold": 2, "weight": -1, "role": "boss", "x": 1}),
            ),
            &["/0/weight range", "/0/threshold range", "/0/role choice", "/0/x unknown_field"],
        ),
        (
            json!([{"id": "a", "entrypoint": "builtin:json_valid"}, {"id": "a", "entrypoint": "builtin:json_valid"}]),
            &["/1/id duplicate"],
        ),
    ] {
        assert_eq!(problems(&evaluators), expected, "{evaluators}");
    }
    let mut found = Vec::new();
    read_evaluators(&json!([{"id": "a", "entrypoint": "builtin:exactmatch"}]), "", &mut found);
    assert_eq!(found[0].suggestion.as_deref(), Some("did you mean 'builtin:exact_match'?"));
    assert!(BUILTINS.iter().all(|known| found[0].message.contains(known.name)), "{}", found[0].message);
}
