//! Checks the catalogue's description of each node type: its example passes the check, and its schema and the check
//! accept the same members.

use std::collections::BTreeSet;

use engine::nodes::{CATALOGUE, NodeType};
use serde_json::{Value, json};

use crate::ports::{graph, template};

/// A small graph around a node.
fn graph_with(node: &Value) -> Value {
    let name = node["name"].as_str().unwrap();
    graph(
        json!([template("defaults", ""), node]),
        json!([["START", "defaults"], ["defaults", name], [name, "END"]]),
    )
}

fn fits(kind: &NodeType, node: &Value) -> bool {
    jsonschema::draft202012::new(&kind.whole_schema()).unwrap().is_valid(node)
}

fn is_accepted(node: &Value) -> bool {
    engine::check(&graph_with(node)).is_ok()
}

#[test]
fn each_example_is_accepted_and_matches_its_schema() {
    for kind in CATALOGUE {
        let example = (kind.example)();
        assert_eq!(example["type"], json!(kind.name));
        let problems = engine::check(&graph_with(&example)).err();
        assert!(problems.is_none(), "{}: {problems:#?}", kind.name);
        assert!(fits(kind, &example), "{}", kind.name);
        for (name, value) in [
            ("zebra", json!(1)),
            ("type", json!("zebra")),
            ("name", json!("a b")),
            ("timeout_seconds", json!(0)),
            ("timeout_seconds", json!(0.0005)),
            ("retry", json!({"max_attempts": 21})),
            ("retry", json!({"times": 2})),
            ("on_error", json!("ignore")),
            ("on_error", json!({"to": "END", "too": 1})),
            ("on_unknown", json!("guess")),
            ("state", json!([])),
            ("description", json!(5)),
        ] {
            let mut wrong = example.clone();
            wrong[name] = value;
            assert!(!fits(kind, &wrong), "{} with {name}: the schema accepts it", kind.name);
            assert!(!is_accepted(&wrong), "{} with {name}: the check accepts it", kind.name);
        }
        for required in kind.whole_schema()["required"].as_array().unwrap() {
            let mut wrong = example.clone();
            wrong.as_object_mut().unwrap().remove(required.as_str().unwrap());
            assert!(!fits(kind, &wrong), "{} without {required}", kind.name);
            // No edge can lead to a node without a name.
            assert!(required == "name" || !is_accepted(&wrong), "{} without {required}", kind.name);
        }
    }
}

/// Returns the members that the check knows, from its suggestion for an unknown member.
fn known_members(kind: &NodeType) -> BTreeSet<String> {
    let mut node = (kind.example)();
    node["zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"] = json!(1);
    let problems = engine::check(&graph_with(&node)).err().unwrap_or_default();
    let suggestion = problems[0].suggestion.clone().unwrap();
    suggestion.trim_start_matches("allowed: ").split(", ").map(str::to_owned).collect()
}

#[test]
fn schemas_name_every_member_known_to_the_check() {
    for kind in CATALOGUE {
        let schema = kind.whole_schema();
        let mut named: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        let later: &[&str] = match kind.name {
            "llm" => &["tools"],
            "document_read" => &["attachment"],
            "reply" => &["annotations", "widget"],
            "show" => &["more", "image", "progress"],
            _ => &[],
        };
        named.extend(later.iter().map(|name| (*name).to_owned()));
        assert_eq!(named, known_members(kind), "{}", kind.name);
    }
}

#[test]
fn each_type_is_described() {
    let mut names = BTreeSet::new();
    for kind in CATALOGUE {
        assert!(names.insert(kind.name), "{} occurs twice", kind.name);
        assert!(kind.summary.ends_with('.') && !kind.summary.contains('\n'), "{}", kind.name);
        assert!(!kind.result.is_empty() && !kind.group.is_empty(), "{}", kind.name);
        for (name, property) in kind.whole_schema()["properties"].as_object().unwrap() {
            let description = property.get("description").or(property.get("const")).and_then(Value::as_str);
            // These members are the usual model settings.
            if ["temperature", "max_tokens", "seed"].contains(&name.as_str()) {
                continue;
            }
            assert!(
                description.is_some_and(|description| !description.is_empty()),
                "{}.{name} is not described",
                kind.name
            );
        }
    }
}

#[test]
fn members_of_results_are_documented() {
    for kind in CATALOGUE {
        let words: Vec<&str> =
            kind.result.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        for member in kind.members {
            assert!(words.contains(member), "{}: '{member}' is not in its result's text", kind.name);
        }
        let documented = kind.result.starts_with("`{");
        assert_eq!(documented, !kind.members.is_empty(), "{}", kind.name);
    }
}
