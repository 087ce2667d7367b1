//! Limits of a check: problems, names, suggestions and their cost.

use std::time::Duration;

use engine::{check, warnings};
use kernel::{Clock, SystemClock};
use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::ports::{alone, graph, plan, template};
use crate::template_limits::peak;

/// A name that makes long pointers.
fn long() -> String {
    "k".repeat(1 << 20)
}

fn found(document: &Value) -> Vec<FieldError> {
    check(document).err().unwrap_or_default()
}

fn codes(problems: &[FieldError]) -> Vec<&str> {
    problems.iter().map(|problem| &*problem.code).collect()
}

/// A graph with one node, whose only value has this name.
fn with_value(name: &str, value: &Value) -> Value {
    alone(&json!({"name": "n", "type": "set", "values": {name: value}}))
}

#[test]
fn unknown_inputs_are_reported_up_to_a_maximum_with_few_names() {
    let used: String = (0..1_500).map(|n| format!("{{{{ inputs.unknown_name_{n} }}}}")).collect();
    let mut document = alone(&template("n", &used));
    let properties: Map<String, Value> = (0..500).map(|n| (format!("p{n}"), json!({}))).collect();
    document["inputs"] = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let problems = found(&document);
    assert_eq!(problems.len(), 1_000);
    let suggestion = problems[0].suggestion.as_deref().unwrap();
    assert!(suggestion.starts_with("inputs: p0, p1, ") && suggestion.ends_with("p19, …"), "{suggestion}");
}

#[test]
fn unknown_fields_and_calls_are_reported_up_to_a_maximum() {
    let mut node = template("n", "x");
    node.as_object_mut().unwrap().extend((0..1_500).map(|n| (format!("unknown_{n}"), json!(1))));
    assert_eq!(found(&alone(&node)).len(), 1_000);
    let calls = format!("{{{{ inputs.a{} }}}}", "|zz".repeat(300)).repeat(5);
    assert_eq!(found(&alone(&template("n", &calls))).len(), 1_000);
}

#[test]
fn calls_in_texts_that_are_too_long_are_not_searched() {
    let long = "{{ inputs.a|zz }}".repeat(20_000);
    assert_eq!(codes(&found(&alone(&template("n", &long)))), ["template"]);
    let when = format!("inputs.a{}", "|zz".repeat(400));
    let edges = json!([{"from": "START", "cases": [{"when": when, "to": "n"}], "else": "END"}]);
    assert_eq!(codes(&found(&graph(json!([template("n", "x")]), edges))), ["condition"]);
}

#[test]
fn long_pointers_are_not_repeated_for_each_name_and_problem() {
    let before = peak();
    let used: String = (0..6_000).map(|n| format!("{{{{ config.a{n} }}}}")).collect();
    assert!(check(&with_value(&"k".repeat(32 << 10), &json!(used))).is_ok());
    assert!(peak() - before < 64 << 20, "{} MiB", (peak() - before) >> 20);
    assert!(found(&with_value(&long(), &json!(vec!["{{"; 50]))).len() < 10);
    let many = found(&with_value(&long(), &json!(vec!["{{ config.a }}"; 40])));
    assert_eq!(codes(&many), ["too_large"]);
    let mut document = alone(&template("n", "x"));
    let unknown: Map<String, Value> = (0..50).map(|n| (format!("unknown_{n}"), json!(1))).collect();
    document["state"] = json!({long(): unknown});
    assert_eq!(codes(&found(&document)), ["name"]);
}

#[test]
fn suggestions_leave_out_names_that_are_too_long() {
    let edges = json!([["START", "zebra"], ["START", "n"]]);
    let problems = found(&graph(json!([template("n", "x"), template(&long(), "x")]), edges));
    let unknown = problems.iter().find(|problem| problem.code == "unknown_node").unwrap();
    assert_eq!(unknown.suggestion.as_deref(), Some("nodes: n"));
}

#[test]
fn channels_are_found_without_a_search_through_all() {
    let clock = SystemClock::new();
    let names = || (0..30_000).map(|n| format!("c{n}"));
    let mut node = template("n", "x");
    node["state"] = names().map(|name| (name, json!("x"))).collect::<Map<_, _>>().into();
    let mut document = alone(&node);
    document["state"] = names().map(|name| (name, json!({}))).collect::<Map<_, _>>().into();
    assert!(check(&document).is_ok());
    assert!(clock.monotonic() < Duration::from_secs(20), "{:?}", clock.monotonic());
}

#[test]
fn unknown_channels_of_a_patch_are_reported_up_to_a_maximum() {
    let plan = plan(&alone(&template("n", "x")));
    let patch: Map<String, Value> = (0..200).map(|n| (format!("unknown_channel_{n}"), json!(1))).collect();
    assert_eq!(plan.check_patch(&patch, "/patch").len(), 101);
}

#[test]
fn graphs_with_many_misspelt_names_have_no_warnings_about_joins() {
    let warned = |misspelt: usize| {
        let mut edges = vec![
            json!(["START", "a"]),
            json!({"from": "a", "cases": [{"when": "inputs.go", "to": "b"}], "else": "END"}),
            json!(["a", "c"]),
            json!({"from": ["b", "c"], "to": "d"}),
            json!(["d", "END"]),
        ];
        edges.extend(vec![json!(["aa", "c"]); misspelt]);
        let nodes: Value = ["a", "b", "c", "d"].iter().map(|name| template(name, name)).collect();
        warnings(&graph(nodes, json!(edges))).len()
    };
    assert_eq!([warned(0), warned(20), warned(21)], [1, 1, 0]);
}
