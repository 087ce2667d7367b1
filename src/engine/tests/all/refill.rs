//! Rebuilt inputs of recorded steps.

use serde_json::{Value, json};

use crate::ports::{alone, graph, plan, template};
use crate::world::{World, recorded};

/// A chain with a `for_each` and a sub-workflow.
fn nested() -> Value {
    let each = json!({"name": "each", "type": "for_each", "items": "{{ range(inputs.n) }}",
                      "body": {"type": "template", "template": "{{ item }} of {{ results.a.text }}"}});
    let call = json!({"name": "call", "type": "sub_workflow", "workflow": "inner", "inputs": {"of": "{{ results.each.items | length }}"}});
    graph(
        json!([template("a", "{{ inputs.word }}"), each, call, template("never", "{{ 1 / 0 }}")]),
        json!([["START", "a"], ["a", "each"], ["each", "call"], ["call", "never"], ["never", "END"]]),
    )
}

#[tokio::test]
async fn refilled_inputs_equal_the_inputs_of_each_step() {
    let world = World::new()
        .workflow("inner", &alone(&template("said", "{{ inputs.of }} it is")))
        .inputs(json!({"n": 2, "word": "sesame"}));
    let plan = plan(&nested());
    world.run(&plan).await.unwrap_err();
    let rows = world.journal.rows.lock().clone();
    let world = world.recorded(recorded(&rows));
    let found = world.refill(&plan).await;
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["a 1", "call 1", "call/said 1", "each 1", "each[0] 1", "each[1] 1"]);
    assert_eq!(found["a 1"], json!("sesame"), "{found:?}");
    assert_eq!(found["each[1] 1"], json!("1 of sesame"));
    assert_eq!(found["call 1"], json!({"of": 2}));
    assert_eq!(world.journal.rows.lock().len(), rows.len(), "nothing is stored");
}

#[tokio::test]
async fn steps_with_other_inputs_are_left_out() {
    let world = World::new()
        .workflow("inner", &alone(&template("said", "{{ inputs.of }} it is")))
        .inputs(json!({"n": 2, "word": "sesame"}));
    let plan = plan(&nested());
    world.run(&plan).await.unwrap_err();
    let rows = recorded(&world.journal.rows.lock());
    let world = world.inputs(json!({"n": 2, "word": "changed"})).recorded(rows);
    let found = world.refill(&plan).await;
    assert!(!found.contains_key("a 1") && found.contains_key("call/said 1"), "{found:?}");
}

#[tokio::test]
async fn entries_of_a_loop_without_a_row_are_refilled_too() {
    let world = World::new()
        .workflow("inner", &alone(&template("said", "{{ inputs.of }} it is")))
        .inputs(json!({"n": 2, "word": "sesame"}));
    let plan = plan(&nested());
    world.run(&plan).await.unwrap_err();
    let mut rows = recorded(&world.journal.rows.lock());
    // Another node has failed meanwhile, or the service was killed.
    rows.retain(|row| ["a", "each[0]", "each[1]"].contains(&row.node.as_str()));
    let found = world.recorded(rows).refill(&plan).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["a 1", "each[0] 1", "each[1] 1"]);
    assert_eq!(found["each[0] 1"], json!("0 of sesame"));
}

#[tokio::test]
async fn a_secret_in_the_inputs_is_masked() {
    let calls = json!({"name": "call", "type": "http_request", "url": "https://127.0.0.1:1/{{ inputs.word }}",
                       "headers": {"authorization": "Bearer [[key]]"}, "on_error": "continue"});
    let plan = plan(&alone(&calls));
    let world =
        World::new().credential("key", "sesame-canary-77x").inputs(json!({"word": "sesame-canary-77x"}));
    world.run(&plan).await.unwrap();
    let rows = recorded(&world.journal.rows.lock());
    let found = world.recorded(rows).refill(&plan).await;
    let input = found["call 1"].to_string();
    assert!(
        input.contains("[[key]]") && input.contains("[redacted]") && !input.contains("sesame"),
        "{input}"
    );
}
