//! No document makes the engine panic.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::ports::{delay, graph, reply, template};

/// Words with a meaning for the engine, and some without.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "format",
            "graph/1",
            "nodes",
            "edges",
            "output",
            "name",
            "type",
            "template",
            "delay",
            "reply",
            "seconds",
            "text",
            "pieces",
            "words",
            "from",
            "to",
            "cases",
            "else",
            "when",
            "START",
            "END",
            "a",
            "b",
            "{{ results.a }}",
            "{{",
            "}}",
            "{%",
            "{{-",
            "{{ '}}' }}",
            "{# #}",
            "{% raw %}",
            "",
            "a/b~c",
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn good() -> Value {
    let nodes =
        json!([template("a", "x{{ inputs.n }}"), delay("b", "{{ 1 }}"), reply("c", "{% if 1 %}{% endif %}")]);
    let cases = json!({"from": ["a", "b"], "cases": [{"when": "results.a", "to": "c"}], "else": "END"});
    let mut graph = graph(nodes, json!([["START", "a"], ["START", "b"], cases, ["c", "a"]]));
    graph["output"] = json!({"x": ["{{ results.c.text }}"]});
    graph
}

/// Collects JSON pointers to every value in a document.
pub(crate) fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                pointers(member, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// An accepted document can run.
fn compiles(document: &Value) -> bool {
    engine::parse(document).is_ok_and(|graph| engine::compile(&graph).is_ok())
}

proptest! {
    #[test]
    fn no_document_panics(document in any_json()) {
        prop_assert!(engine::check(&document).is_err() || compiles(&document));
        let _ = engine::digest(&document);
    }

    #[test]
    fn no_mutation_of_a_good_graph_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..4),
    ) {
        let mut document = good();
        for (place, value) in changes {
            let mut found = Vec::new();
            pointers(&document, "", &mut found);
            let place = place.get(&found);
            if let Some(at) = document.pointer_mut(place) {
                *at = value;
            }
        }
        let checked = engine::check(&document);
        prop_assert!(checked.is_err() || compiles(&document));
        for problem in checked.err().unwrap_or_default() {
            prop_assert!(problem.pointer.is_empty() || problem.pointer.starts_with('/'));
            prop_assert!(!problem.message.contains('\n'));
        }
    }
}

#[test]
fn deep_documents_do_not_overflow() {
    let mut deep = json!("{{ 1 }}");
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let mut document = good();
    document["output"] = deep;
    assert!(engine::check(&document).is_ok());
    for evil in ["-".repeat(100_000), "not ".repeat(100_000), "1+".repeat(100_000), "(".repeat(100_000)] {
        let mut document = good();
        document["nodes"][0]["template"] = json!(format!("{{{{ {evil}1 }}}}"));
        document["edges"][2]["cases"][0]["when"] = json!(format!("{evil}1"));
        assert_eq!(engine::check(&document).err().map(|problems| problems.len()), Some(2));
    }
}
