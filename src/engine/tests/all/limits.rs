//! Limits for a whole run: time, slots, sizes.

use std::time::Duration;

use chrono::TimeDelta;
use kernel::Clock;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, delay, graph, noon, plan, template};
use crate::world::{World, recorded, settle};

fn too_large(error: engine::RunError, node: Option<&str>) {
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeResultTooLarge, node), "{error}");
    assert!(!error.retryable && error.message.len() < 300, "{error}");
}

/// Inputs with a little more than half the maximum value size.
fn half() -> Value {
    json!({"half": "x".repeat(4_200_000)})
}

#[tokio::test]
async fn a_result_over_8_mib_is_rejected() {
    let two =
        json!({"name": "n", "type": "set", "values": {"a": "{{ inputs.half }}", "b": "{{ inputs.half }}"}});
    let text = template("n", "{{ inputs.half }}{{ inputs.half }}");
    let items = json!({"name": "n", "type": "for_each", "items": [1, 2],
                       "body": {"type": "template", "template": "{{ inputs.half }}"}});
    for node in [two, text, items] {
        let world = World::new().inputs(half());
        too_large(world.run(&plan(&alone(&node))).await.unwrap_err(), Some("n"));
        assert_eq!(world.journal.lines().last().unwrap(), "1 n.1 failed");
    }
    let mut lenient = json!({"name": "n", "type": "json", "stringify": "{{ '\"' * 3000000 }}"});
    lenient["on_error"] = json!("continue");
    let output = World::new().run(&plan(&alone(&lenient))).await.unwrap();
    assert_eq!(output["error"]["code"], json!("node.result_too_large"));
}

#[tokio::test]
async fn an_output_over_8_mib_is_rejected() {
    let mut graph = graph(
        json!([template("a", "{{ inputs.half }}"), template("b", "{{ inputs.half }}")]),
        json!([["START", "a"], ["START", "b"], ["a", "END"], ["b", "END"]]),
    );
    too_large(World::new().inputs(half()).run(&plan(&graph)).await.unwrap_err(), None);
    graph["nodes"] = json!([template("a", ""), template("b", "")]);
    for output in
        [json!(["{{ inputs.half }}", "{{ inputs.half }}"]), json!("{{ inputs.half ~ inputs.half }}")]
    {
        graph["output"] = output;
        too_large(World::new().inputs(half()).run(&plan(&graph)).await.unwrap_err(), None);
    }
}

#[tokio::test]
async fn a_result_too_deep_for_the_journal_is_rejected() {
    let values = json!({"in": "{{ results.n if results.n is defined else 0 }}"});
    let nodes = json!([{"name": "n", "type": "set", "values": values}]);
    let grow = graph(nodes, json!([["START", "n"], ["n", "n"]]));
    let world = World::new().config("recursion_limit", json!(250));
    let error = world.run(&plan(&grow)).await.unwrap_err();
    too_large(error, Some("n"));
    // Every row can be read back.
    assert!(!recorded(&world.journal.rows.lock()).is_empty());
}

#[tokio::test]
async fn a_run_ends_at_its_deadline() {
    let mut world = World::new();
    world.deadline = Some(noon() + TimeDelta::seconds(5));
    let run = world.begin(&plan(&alone(&delay("d", 60))));
    settle().await;
    world.clock.advance(Duration::from_millis(4_999));
    settle().await;
    assert!(!run.has_ended());
    world.clock.advance(Duration::from_millis(1));
    settle().await;
    let error = run.end().await.unwrap_err();
    assert_eq!((error.code, error.node.as_ref(), error.retryable), (ErrorCode::RunTimeout, None, true));
    assert_eq!(error.message, "the run had not ended at 2027-01-15T08:00:05Z");
    assert_eq!((world.clock.sleepers(), world.journal.lines().len()), (0, 1));
    world.deadline = Some(noon());
    let late = world.run(&plan(&alone(&delay("d", 60)))).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::RunTimeout, "also when it is past at the start");
}

#[tokio::test]
async fn concurrent_nodes_are_limited() {
    let names: Vec<String> = (0..40).map(|index| format!("n{index}")).collect();
    let nodes: Vec<Value> = names.iter().map(|name| delay(name, 1)).collect();
    let edges: Vec<Value> = names.iter().map(|name| json!(["START", name])).collect();
    let wide = plan(&graph(json!(nodes), json!(edges)));
    for (allowed, seconds) in [(Some(1), 40), (Some(7), 6), (Some(32), 2), (None, 2)] {
        let mut world = World::new();
        if let Some(allowed) = allowed {
            world = world.config("max_concurrency", json!(allowed));
        }
        let run = world.begin(&wide);
        settle().await;
        assert_eq!(world.clock.sleepers(), allowed.unwrap_or(32));
        let mut waited = 0;
        while !run.has_ended() {
            assert!(world.clock.sleepers() <= allowed.unwrap_or(32));
            world.clock.advance(Duration::from_secs(1));
            settle().await;
            waited += 1;
        }
        assert_eq!(waited, seconds);
        assert_eq!(world.clock.monotonic(), Duration::from_secs(seconds));
    }
    for wrong in [json!(0), json!(33), json!("4"), json!(1.5)] {
        let error = World::new().config("max_concurrency", wrong).run(&wide).await.unwrap_err();
        assert!(error.message.contains("from 1 to 32"), "{error}");
    }
}

#[tokio::test]
async fn inputs_must_match_their_schema() {
    let mut graph = graph(json!([template("a", "")]), json!([["START", "a"]]));
    graph["inputs"] =
        json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}});
    let world = World::new().inputs(json!({"order": 5}));
    let error = world.run(&plan(&graph)).await.unwrap_err();
    assert_eq!((error.code, error.node.as_ref()), (ErrorCode::RunInputsInvalid, None));
    assert!(error.message.starts_with("inputs/order: "), "{error}");
    assert!(world.journal.lines().is_empty());
    let checked = plan(&graph).check_inputs(&json!({}));
    assert_eq!((checked.len(), checked[0].code.as_str()), (1, "schema"));
}
