//! Differences between two versions.

use engine::{diff, diff_config};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wire::Change;

fn graph() -> Value {
    json!({
        "format": "graph/1",
        "state": {"notes": {"merge": "append"}, "best": {"merge": "max"}},
        "nodes": [
            {"name": "a", "type": "llm", "model": "x/y", "user": "{{ inputs.q }}", "temperature": 1, "title": null},
            {"name": "b", "type": "reply", "text": "one"},
            {"name": "c", "type": "reply", "text": "two"},
        ],
        "edges": [
            {"from": "START", "to": "a"},
            {"from": "a", "cases": [{"when": "inputs.q", "to": "b"}], "else": "c"},
            {"from": "b", "to": "END"},
            {"from": "c", "to": "END"},
        ],
        "output": {"x": "{{ results.a.text }}"},
    })
}

/// One line per change.
fn lines(changes: Vec<Change>) -> Vec<String> {
    let line = |change: Change| {
        let (node, field) = (change.node.unwrap_or("-".into()), change.field.unwrap_or("-".into()));
        format!("{node} {field}: {} -> {}", change.before, change.after)
    };
    changes.into_iter().map(line).collect()
}

fn changed(edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut target = graph();
    edit(&mut target);
    lines(diff(&graph(), &target))
}

#[test]
fn nodes_are_compared_field_by_field() {
    assert_eq!(
        changed(|graph| {
            graph["nodes"][0] = json!({"name": "a", "type": "llm", "model": "x/z", "user": "{{ inputs.q }}",
                                       "temperature": 1.0, "retry": {"max_attempts": 2}});
            graph["nodes"][1] = json!({"name": "d", "type": "set", "values": {}});
        }),
        [
            r#"a model: "x/y" -> "x/z""#,
            r#"a retry: null -> {"max_attempts":2}"#,
            r#"d -: null -> {"name":"d","type":"set","values":{}}"#,
            r#"b -: {"name":"b","type":"reply","text":"one"} -> null"#,
        ]
    );
    assert_eq!(
        changed(|graph| graph["nodes"].as_array_mut().unwrap().swap(1, 2)),
        [r#"- nodes.order: ["a","b","c"] -> ["a","c","b"]"#]
    );
}

#[test]
fn edges_are_matched_by_their_source_nodes() {
    assert_eq!(
        changed(|graph| {
            graph["edges"][1]["else"] = json!("END");
            graph["edges"][3] = json!({"from": ["c", "b"], "to": "END"});
        }),
        [
            r#"- edges: {"from":"a","cases":[{"when":"inputs.q","to":"b"}],"else":"c"} -> {"from":"a","cases":[{"when":"inputs.q","to":"b"}],"else":"END"}"#,
            r#"- edges: null -> {"from":["c","b"],"to":"END"}"#,
            r#"- edges: {"from":"c","to":"END"} -> null"#,
        ]
    );
    assert_eq!(
        changed(|graph| graph["edges"].as_array_mut().unwrap().push(json!({"from": "b", "to": "c"}))),
        [r#"- edges: null -> {"from":"b","to":"c"}"#]
    );
    assert_eq!(
        changed(|graph| {
            graph["edges"].as_array_mut().unwrap().swap(2, 3);
            graph["edges"].as_array_mut().unwrap().drain(..2);
        })[2..],
        [
            r#"- edges.order: [{"from":"b","to":"END"},{"from":"c","to":"END"}] -> [{"from":"c","to":"END"},{"from":"b","to":"END"}]"#
        ]
    );
}

#[test]
fn graph_parts_and_config_are_compared_too() {
    assert_eq!(
        changed(|graph| {
            graph["inputs"] = json!({"type": "object"});
            graph["state"] = json!({"notes": {"merge": "replace"}, "best": {"merge": "max"}});
            graph["output"] = json!("x");
        }),
        [
            r#"- inputs: null -> {"type":"object"}"#,
            r#"- state.notes: {"merge":"append"} -> {"merge":"replace"}"#,
            r#"- output: {"x":"{{ results.a.text }}"} -> "x""#,
        ]
    );
    let config = |value: Value| value.as_object().unwrap().clone();
    let base =
        config(json!({"prompts": {"p": {"text": "a", "role": "system"}, "q": {"text": "b"}}, "tags": ["x"]}));
    let target =
        config(json!({"prompts": {"p": {"text": "A", "role": "system"}, "r": {"text": "b"}}, "tags": ["x"],
                               "recursion_limit": 9}));
    assert_eq!(
        lines(diff_config(Some(&base), Some(&target))),
        [
            r#"- runnable_config.prompts.p.text: "a" -> "A""#,
            r#"- runnable_config.prompts.q: {"text":"b"} -> null"#,
            r#"- runnable_config.prompts.r: null -> {"text":"b"}"#,
            "- runnable_config.recursion_limit: null -> 9",
        ]
    );
    assert_eq!(diff_config(None, Some(&Map::new())), []);
    let gone = lines(diff_config(Some(&base), None));
    assert_eq!(gone[0], r#"- runnable_config.prompts.p: {"text":"a","role":"system"} -> null"#);
    assert_eq!(gone.len(), 3);
    assert_eq!(diff(&json!({"state": {}}), &json!({})), []);
    assert_eq!(diff(&json!(null), &json!([1])), []);
}

/// A field of a node, or its absence.
fn field() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        (0..3_i32).prop_map(|n| Some(json!(n))),
        "[a-b]{1,2}".prop_map(|text| Some(json!({"text": text}))),
    ]
}

/// A graph with up to five nodes in any order, up to three fields each, and some edges.
fn any_graph() -> impl Strategy<Value = Value> {
    let node = proptest::collection::vec(field(), 3);
    let nodes = proptest::collection::btree_map(0..5_usize, node, 0..5);
    let nodes = nodes.prop_map(|nodes| nodes.into_iter().collect::<Vec<_>>()).prop_shuffle();
    let edges = proptest::collection::vec((0..5_usize, 0..5_usize), 0..6);
    (nodes, edges, field()).prop_map(|(nodes, edges, output)| {
        let nodes: Vec<Value> = nodes
            .into_iter()
            .map(|(name, fields)| {
                let mut node = json!({"name": format!("n{name}")});
                for (index, value) in fields.into_iter().enumerate() {
                    if let Some(value) = value {
                        node[format!("f{index}")] = value;
                    }
                }
                node
            })
            .collect();
        let edges: Vec<Value> = edges
            .into_iter()
            .map(|(from, to)| json!({"from": format!("n{from}"), "to": format!("n{to}")}))
            .collect();
        json!({"format": "graph/1", "nodes": nodes, "edges": edges, "output": output})
    })
}

fn node<'a>(graph: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    let nodes = graph["nodes"].as_array().unwrap();
    nodes.iter().find(|node| node["name"] == name)?.as_object()
}

proptest! {
    #[test]
    fn a_diff_is_empty_only_for_equal_graphs(a in any_graph(), b in any_graph()) {
        prop_assert_eq!(diff(&a, &a), []);
        prop_assert_eq!(diff(&a, &b).is_empty(), a == b, "{:?}", diff(&a, &b));
        // The same locations differ in the other direction.
        prop_assert_eq!(diff(&a, &b).len(), diff(&b, &a).len());
    }

    #[test]
    fn exactly_the_differing_fields_are_listed(a in any_graph(), b in any_graph()) {
        let changes = diff(&a, &b);
        for index in 0..5 {
            let name = format!("n{index}");
            let of_node: Vec<&Change> = changes.iter().filter(|change| change.node.as_deref() == Some(&name)).collect();
            match (node(&a, &name), node(&b, &name)) {
                (Some(before), Some(after)) => {
                    for field in ["f0", "f1", "f2"] {
                        let listed = of_node.iter().find(|change| change.field.as_deref() == Some(field));
                        prop_assert_eq!(listed.is_some(), before.get(field) != after.get(field));
                        if let Some(listed) = listed {
                            prop_assert_eq!(&listed.before, before.get(field).unwrap_or(&Value::Null));
                            prop_assert_eq!(&listed.after, after.get(field).unwrap_or(&Value::Null));
                        }
                    }
                }
                (None, None) => prop_assert!(of_node.is_empty()),
                (before, after) => {
                    prop_assert!(of_node.len() == 1 && of_node[0].field.is_none());
                    prop_assert_eq!(of_node[0].before.is_null(), before.is_none());
                    prop_assert_eq!(of_node[0].after.is_null(), after.is_none());
                }
            }
        }
    }
}
