//! The channels in `state`: the six rules in a whole run, and invalid writes.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{delay, graph, plan, template};
use crate::world::World;

fn writing(name: &str, state: Value) -> Value {
    let mut node = template(name, name);
    node["state"] = state;
    node
}

/// Returns the state after concurrent nodes have made these writes, in file order.
async fn after(channel: Value, writes: &[Value]) -> Result<Value, engine::RunError> {
    let nodes: Vec<Value> = writes
        .iter()
        .enumerate()
        .map(|(index, write)| {
            // The first node in the file ends last.
            let mut node = delay(&format!("n{index}"), writes.len() - index);
            node["state"] = json!({"x": write});
            node
        })
        .collect();
    let edges: Vec<Value> =
        (0..writes.len()).rev().map(|index| json!(["START", format!("n{index}")])).collect();
    let mut graph = graph(json!(nodes), json!(edges));
    graph["state"] = json!({"x": channel});
    graph["output"] = json!("{{ state.x }}");
    World::new().inputs(json!({"n": 2, "list": [8, 9]})).run(&plan(&graph)).await
}

#[tokio::test]
async fn each_rule_merges_in_file_order() {
    for (channel, writes, expected) in [
        (json!({}), vec![json!("a"), json!("b")], json!("b")),
        (
            json!({"merge": "append"}),
            vec![json!("a"), json!("{{ inputs.list }}"), json!(["b"])],
            json!(["a", 8, 9, "b"]),
        ),
        (json!({"merge": "append", "initial": [0]}), vec![json!({"a": 1})], json!([0, {"a": 1}])),
        (
            json!({"merge": "merge"}),
            vec![json!({"a": 1, "b": 1}), json!({"b": "{{ inputs.n }}"})],
            json!({"a": 1, "b": 2}),
        ),
        (json!({"merge": "sum", "initial": 0.5}), vec![json!(1), json!("{{ inputs.n }}")], json!(3.5)),
        (json!({"merge": "min"}), vec![json!(3), json!("{{ inputs.n }}"), json!(9)], json!(2)),
        (json!({"merge": "max", "initial": 4}), vec![json!(3), json!("{{ inputs.n }}")], json!(4)),
    ] {
        assert_eq!(after(channel.clone(), &writes).await, Ok(expected), "{channel} {writes:?}");
    }
}

#[tokio::test]
async fn a_channel_starts_with_its_initial_value_or_null() {
    let mut graph = graph(json!([template("a", "")]), json!([["START", "a"]]));
    graph["state"] = json!({"r": {}, "a": {"merge": "append"}, "m": {"merge": "merge"}, "s": {"merge": "sum"},
                            "i": {"merge": "min"}, "x": {"merge": "max"}, "given": {"initial": [1]}});
    graph["output"] = json!("{{ state }}");
    let output = World::new().run(&plan(&graph)).await.unwrap();
    assert_eq!(output, json!({"r": null, "a": [], "m": {}, "s": 0, "i": null, "x": null, "given": [1]}));
}

#[tokio::test]
async fn an_incompatible_write_fails_its_node() {
    for (rule, write, message) in [
        ("sum", json!("3"), "state.x accepts a number, not a string"),
        ("merge", json!([]), "state.x accepts an object, not a list"),
        ("min", json!(null), "state.x accepts a number, not null"),
        ("append", json!("{{ inputs.nobody }}"), "inputs.nobody"),
    ] {
        let error = after(json!({"merge": rule}), &[write]).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NodeFailed);
        assert!(error.message.contains(message), "{rule}: {error}");
        assert!(error.node.is_some());
    }
}

#[tokio::test]
async fn a_write_sees_the_result_of_its_node() {
    let nodes = json!([
        writing("a", json!({"texts": "{{ results.a.text }}", "seen": "{{ state.texts | length }}"})),
        writing("b", json!({"texts": "{{ results.b.text }}", "seen": "{{ state.texts | length }}"})),
    ]);
    let again =
        json!({"from": "b", "cases": [{"when": "state.texts | length < 6", "to": "a"}], "else": "END"});
    let mut graph = graph(nodes, json!([["START", "a"], ["a", "b"], again]));
    graph["state"] = json!({"texts": {"merge": "append"}, "seen": {"merge": "append"}});
    graph["output"] = json!("{{ state }}");
    let output = World::new().run(&plan(&graph)).await.unwrap();
    // Channels are written by name: `seen` first.
    assert_eq!(output, json!({"texts": ["a", "b", "a", "b", "a", "b"], "seen": [0, 1, 2, 3, 4, 5]}));
}

#[tokio::test]
async fn a_channel_above_its_size_limit_is_rejected() {
    let nodes = json!([writing("a", json!({"x": "{{ 'x' * 3000000 }}"}))]);
    let again = json!({"from": "a", "cases": [{"when": "state.x | length < 50", "to": "a"}], "else": "END"});
    let mut graph = graph(nodes, json!([["START", "a"], again]));
    graph["state"] = json!({"x": {"merge": "append"}});
    let world = World::new();
    let error = world.run(&plan(&graph)).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeResultTooLarge, Some("a")));
    assert_eq!(world.journal.lines().len(), 3);
}
