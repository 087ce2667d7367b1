//! Prompt demos: their form in model requests, and the new demos that a rehearsal records.

use std::sync::Arc;

use engine::ports::{ExampleInputs, Rehearsal};
use models::Role;
use serde_json::{Value, json};

use crate::ports::{alone, plan};
use crate::world::World;

const SORT: &str = "{{ config.prompts.sort.text }}";

fn prompts() -> Value {
    json!({
        "sort": {"text": "Sort for {{ inputs.desk }}.", "demos_trainable": true,
                 "demos": [{"inputs": {"user": "lost"}, "output": "shipping"}, {"inputs": {"n": 2}, "output": {"label": "x"}}]},
        "outer": {"text": "Be kind. {{ config.prompts.sort.text }}"},
        "plain": {"text": "Sort."},
        "tagged": {"text": "Sort.", "demos": [{"inputs": {"user": "{{ 1 + 1 }} {% if %}"}, "output": "{# x #} [[key]]"}]},
        "broken": {"text": "Sort.", "demos": [7, {"inputs": {"user": "u"}}]},
    })
}

fn world() -> World {
    World::new().config("prompts", prompts()).inputs(json!({"desk": 3, "text": "where?"}))
}

/// Returns the first request's messages, each with its role.
async fn sent(node: &Value) -> Vec<String> {
    let world = world();
    // The request was sent, whatever the answer.
    let _ = world.run(&plan(&alone(node))).await;
    let requests = world.model.requests.lock();
    let line = |message: &models::Message| format!("{}: {}", message.role.as_str(), message.content);
    requests[0].messages.iter().map(line).collect()
}

fn ask(kind: &str, more: Value) -> Value {
    let mut node = json!({"name": "ask", "type": kind, "model": "test/x"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

const PAIRS: [&str; 4] =
    ["user: lost", "assistant: shipping", r#"user: {"n":2}"#, r#"assistant: {"label":"x"}"#];

#[tokio::test]
async fn demos_are_pairs_after_the_system_message_and_before_all_others() {
    for kind in ["llm", "agent"] {
        let node =
            ask(kind, json!({"system": SORT, "messages": "{{ messages }}", "user": "{{ inputs.text }}"}));
        let expected = [&["system: Sort for 3."], &PAIRS[..], &["user: hi", "user: where?"]].concat();
        assert_eq!(sent(&node).await, expected, "{kind}");
    }
    let through_another = ask("llm", json!({"system": "{{ config.prompts.outer.text }}", "user": "x"}));
    assert_eq!(sent(&through_another).await[1..5], PAIRS);
}

#[tokio::test]
async fn only_instructions_that_read_the_prompt_have_its_demos() {
    for (node, count) in [
        (json!({"system": "Sort.", "user": SORT}), 2),
        (json!({"system": "{{ config.prompts.plain.text }}", "user": SORT}), 2),
        (json!({"user": SORT}), 1),
        (json!({"system": "{{ config.prompts.sort.demos | length }}", "user": "x"}), 6),
        (json!({"system": "{{ config.prompts.broken.text }}", "user": "x"}), 2),
    ] {
        assert_eq!(sent(&ask("llm", node.clone())).await.len(), count, "{node}");
    }
}

#[tokio::test]
async fn tags_in_demos_reach_models_as_plain_text() {
    let tagged = "{{ config.prompts.tagged.text }}";
    let pair = ["user: {{ 1 + 1 }} {% if %}", "assistant: {# x #} [[key]]"];
    assert_eq!(sent(&ask("llm", json!({"system": tagged, "user": "x"}))).await[1..3], pair);
    let labels = json!({"input": "x", "labels": ["a", "b"], "instructions": tagged});
    let line = "{\"input\":\"{{ 1 + 1 }} {% if %}\",\"output\":\"{# x #} [[key]]\"}";
    let messages = sent(&ask("classify", labels)).await;
    assert!(messages.iter().any(|message| message.contains(line)), "{messages:?}");
}

#[tokio::test]
async fn nodes_without_messages_render_demos_as_lines() {
    let lines =
        "{\"input\":\"lost\",\"output\":\"shipping\"}\n{\"input\":{\"n\":2},\"output\":{\"label\":\"x\"}}";
    let schema = json!({"type": "object"});
    for node in [
        ask("classify", json!({"input": "{{ inputs.text }}", "labels": ["a", "b"], "instructions": SORT})),
        ask("extract", json!({"input": "{{ inputs.text }}", "schema": schema, "instructions": SORT})),
        ask("judge", json!({"output": "{{ inputs.text }}", "criteria": SORT})),
    ] {
        let sent = sent(&node).await;
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert!(sent[0].ends_with(&format!("\nSort for 3.\n{lines}")), "{sent:?}");
        assert!(sent[1].starts_with(Role::User.as_str()) && sent[1].ends_with("where?"), "{sent:?}");
    }
}

/// A rehearsal in which every node is executed.
struct Executed;

impl Rehearsal for Executed {
    fn mock(&self, _node: &str, _visit: u32) -> Option<Value> {
        None
    }

    fn may_send(&self) -> bool {
        false
    }
}

async fn examples(world: World, node: &Value) -> Vec<Option<ExampleInputs>> {
    world.run(&plan(&alone(node))).await.unwrap();
    let rows = world.journal.rows.lock();
    rows.iter().filter(|row| row.node == "ask").map(|row| row.example.clone()).collect()
}

#[tokio::test]
async fn a_rehearsal_records_model_inputs_without_the_demos() {
    let rehearsing = || World { rehearsal: Some(Arc::new(Executed)), ..world() };
    let example = |inputs: Value| Some(ExampleInputs { prompts: vec!["sort".into()], inputs });
    let node = |more: Value| ask("llm", more);
    let one = node(json!({"system": SORT, "user": "{{ inputs.text }}"}));
    assert_eq!(examples(rehearsing(), &one).await, [example(json!({"user": "where?"}))]);
    let talk = node(
        json!({"system": SORT, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "user": "c"}),
    );
    let messages = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    assert_eq!(examples(rehearsing(), &talk).await, [example(json!({"messages": messages}))]);
    // Nothing is recorded for a prompt whose demos are not trained, nor outside a rehearsal.
    let plain = node(json!({"system": "{{ config.prompts.plain.text }}", "user": SORT}));
    assert_eq!(examples(rehearsing(), &plain).await, [None]);
    assert_eq!(examples(world(), &one).await, [None]);
}
