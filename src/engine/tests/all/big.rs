//! Graphs that are long or wide.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{graph, plan, reply, template};
use crate::world::World;

#[tokio::test]
async fn a_chain_of_500_compiles_and_is_too_long_to_run() {
    let name = |index: usize| format!("n{index}");
    let nodes: Vec<Value> = (0..500).map(|index| template(&name(index), "")).collect();
    let mut edges: Vec<Value> = (1..500).rev().map(|index| json!([name(index - 1), name(index)])).collect();
    edges.push(json!(["START", "n0"]));
    let world = World::new().config("recursion_limit", json!(250));
    let error = world.run(&plan(&graph(json!(nodes), json!(edges)))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RunRecursionLimit);
    assert_eq!(world.journal.lines().len(), 250);
}

#[test]
fn five_hundred_nodes_with_back_references_are_checked() {
    let name = |index: usize| format!("node_{index}");
    let back = |index: usize| template(&name(index), &format!("{{{{ results.{}.text }}}}", name(index - 1)));
    let mut nodes = vec![template(&name(0), "")];
    nodes.extend((1..500).map(back));
    let mut edges: Vec<Value> = (1..500).rev().map(|index| json!([name(index - 1), name(index)])).collect();
    edges.push(json!(["START", name(0)]));
    let mut long = graph(json!(nodes), json!(edges));
    assert!(engine::check(&long).is_ok());
    for index in 1..500 {
        long["nodes"][index]["template"] = json!(format!("{{{{ results.nodee_{index}.text }}}}"));
    }
    let problems = engine::check(&long).err().unwrap_or_default();
    assert_eq!(problems.len(), 499);
    assert_eq!(problems[7].suggestion.as_deref(), Some("did you mean 'results.node_8'?"));
    long["nodes"][1]["template"] = json!("{{ results.zebra }}");
    let listed = engine::check(&long).err().unwrap_or_default()[0].suggestion.clone().unwrap_or_default();
    assert!(
        listed.starts_with("nodes: node_0, ") && listed.ends_with(", …") && listed.len() < 300,
        "{listed}"
    );
}

#[tokio::test]
async fn a_fan_out_of_100_is_joined() {
    let names: Vec<String> = (0..100).map(|index| format!("n{index}")).collect();
    let mut nodes: Vec<Value> =
        names.iter().enumerate().map(|(index, name)| reply(name, &format!("{index} "))).collect();
    nodes.push(template("j", "{{ results|length }}"));
    let mut edges: Vec<Value> = names.iter().rev().map(|name| json!(["START", name])).collect();
    edges.extend([json!({"from": names, "to": "j"}), json!(["j", "END"])]);
    let world = World::new();
    let output = world.run(&plan(&graph(json!(nodes), json!(edges)))).await.unwrap();
    assert_eq!(output, json!({"j": {"text": "100"}}));
    let expected: String = (0..100).map(|index| format!("{index} ")).collect();
    assert_eq!(world.sink.text(), expected);
}
