//! `sub_workflow`: versions, config, depth, failures, resuming.

use std::time::Duration;

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, delay, graph, plan, reply, template};
use crate::world::{World, recorded, refused, settle};

fn call(workflow: &str, more: Value) -> Value {
    let mut node = json!({"name": "call", "type": "sub_workflow", "workflow": workflow});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

/// A workflow with this output template.
fn says(output: Value) -> Value {
    let mut graph = graph(json!([template("a", "")]), json!([["START", "a"], ["a", "END"]]));
    graph["output"] = output;
    graph
}

#[tokio::test]
async fn the_result_is_the_output_with_its_types() {
    let world = World::new()
        .workflow("inner", &says(json!({"n": "{{ inputs.n }}", "list": ["{{ inputs }}"]})))
        .inputs(json!({"n": 3}));
    let node = call("inner", json!({"inputs": {"n": "{{ inputs.n }}"}}));
    assert_eq!(world.run(&plan(&alone(&node))).await, Ok(json!({"n": 3, "list": [{"n": 3}]})));
    let world = World::new().workflow("inner", &says(json!("{{ inputs }}")));
    assert_eq!(world.run(&plan(&alone(&call("inner", json!({}))))).await, Ok(json!({})));
}

#[tokio::test]
async fn a_version_may_be_pinned() {
    let world = || World::new().workflow("w", &says(json!("one"))).workflow("w", &says(json!("two")));
    for (more, expected) in
        [(json!({"version": 1}), "one"), (json!({"version": 2}), "two"), (json!({}), "two")]
    {
        assert_eq!(world().run(&plan(&alone(&call("w", more)))).await, Ok(json!(expected)));
    }
    for (workflow, more) in [("w", json!({"version": 3})), ("nobody", json!({}))] {
        let error = world().run(&plan(&alone(&call(workflow, more)))).await.unwrap_err();
        assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("call")));
    }
}

#[tokio::test]
async fn a_resumed_sub_workflow_keeps_its_version() {
    let slow = |text: &str| {
        graph(json!([delay("d", 10), reply("r", text)]), json!([["START", "d"], ["d", "r"], ["r", "END"]]))
    };
    let outer = plan(&alone(&call("w", json!({}))));
    let first = World::new().workflow("w", &slow("old"));
    let run = first.begin(&outer);
    settle().await;
    run.drop_it();
    let rows = recorded(&first.journal.rows.lock());
    let again = World::new().workflow("w", &slow("old")).workflow("w", &slow("new")).recorded(rows);
    again.clock.advance(Duration::from_secs(9));
    let run = again.begin(&outer);
    settle().await;
    again.clock.advance(Duration::from_secs(1));
    settle().await;
    assert_eq!(run.end().await, Ok(json!({"r": {"text": "old"}})));
}

#[tokio::test]
async fn a_sub_workflow_has_separate_config_limits_state_and_names() {
    let inner = json!({
        "format": "graph/1",
        "state": {"n": {"merge": "sum"}},
        "nodes": [{"name": "a", "type": "set", "state": {"n": 1},
                   "values": {"tone": "{{ config.tone }}", "run": "{{ run }}", "said": "{{ messages[0].content }}"}}],
        "edges": [{"from": "START", "to": "a"},
                  {"from": "a", "cases": [{"when": "state.n < 3", "to": "a"}], "else": "END"}],
        "output": {"a": "{{ results.a }}", "n": "{{ state.n }}"},
    });
    let world = World::new().configured("w", &inner, json!({"tone": "dry"})).config("tone", json!("outer"));
    let output = world.run(&plan(&alone(&call("w", json!({}))))).await.unwrap();
    let run = json!({"id": "run_1", "workflow_id": "w", "thread_id": null, "trigger": "workflow"});
    assert_eq!(output, json!({"n": 3, "a": {"tone": "dry", "run": run, "said": "hi"}}));
    assert_eq!(
        world.journal.lines(),
        [
            "1 call.1 started",
            "1 call/a.1 succeeded",
            "1 call/a.2 succeeded",
            "1 call/a.3 succeeded",
            "1 call.1 succeeded"
        ]
    );
    let world = World::new().configured("w", &inner, json!({"tone": "dry", "recursion_limit": 2}));
    let error = world.run(&plan(&alone(&call("w", json!({}))))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::RunRecursionLimit, Some("call")));
}

#[tokio::test]
async fn a_failed_inner_node_is_named_with_its_path() {
    let innermost = alone(&template("bad", "{{ inputs.x }}"));
    let middle = alone(&call("innermost", json!({})));
    let world = || World::new().workflow("innermost", &innermost).workflow("middle", &middle);
    let error = world().run(&plan(&alone(&call("middle", json!({}))))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("call/call/bad")));
    assert!(!error.message.contains("call") && error.message.contains("inputs.x"), "{error}");
    let output = world().run(&plan(&alone(&call("middle", json!({"on_error": "continue"}))))).await.unwrap();
    assert_eq!(output["error"]["code"], json!("node.failed"));
    assert_eq!(output["error"]["node"], json!("call/call/bad"));
}

#[tokio::test]
async fn inputs_that_do_not_match_the_schema_fail_the_node() {
    let mut inner = says(json!("x"));
    inner["inputs"] = json!({"type": "object", "required": ["order"]});
    let world = World::new().workflow("w", &inner);
    let error = world.run(&plan(&alone(&call("w", json!({}))))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::RunInputsInvalid, Some("call")));
    assert!(error.message.contains("order"), "{error}");
}

#[tokio::test]
async fn circular_workflow_calls_end() {
    let (a, b) = (alone(&call("b", json!({}))), alone(&call("a", json!({}))));
    let world = World::new().workflow("a", &a).workflow("b", &b);
    let error = world.run(&plan(&a)).await.unwrap_err();
    let path = ["call"; 17].join("/");
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::RunRecursionLimit, Some(path.as_str())));
    assert!(error.message.contains("16 nested workflows"), "{error}");
    let ends = |inputs: &str| {
        let mut graph = graph(
            json!([template("s", ""), call("w", json!({"inputs": {"n": inputs}}))]),
            json!([["START", "s"], {"from": "s", "cases": [{"when": "inputs.n > 0", "to": "call"}], "else": "END"}]),
        );
        graph["output"] = json!("{{ inputs.n }}:{{ results.call | default('') }}");
        graph
    };
    let world = World::new().workflow("w", &ends("{{ inputs.n - 1 }}")).inputs(json!({"n": 16}));
    let output = world.run(&plan(&ends("{{ inputs.n - 1 }}"))).await.unwrap();
    assert!(output.as_str().unwrap().ends_with(":1:0:"), "sixteen deep is allowed: {output}");
}

#[tokio::test]
async fn a_failure_in_another_branch_ends_the_inner_waits() {
    let world = World::new().workflow("w", &alone(&delay("d", 900)));
    let nodes = json!([call("w", json!({})), delay("short", 1), template("bad", "{{ inputs.x }}")]);
    let edges = json!([["START", "call"], ["START", "short"], ["START", "bad"]]);
    let error = world.run(&plan(&graph(nodes, edges))).await.unwrap_err();
    assert_eq!(error.node.as_deref(), Some("bad"));
    assert_eq!(world.clock.sleepers(), 0);
}

#[tokio::test]
async fn a_retry_undoes_the_text_of_the_sub_workflow() {
    let world = World::new();
    let inner = graph(
        json!([reply("r", "half "), json!({"name": "slow", "type": "delay", "seconds": 5})]),
        json!([["START", "r"], ["r", "slow"]]),
    );
    let world = world.workflow("w", &inner);
    let node = call("w", json!({"timeout_seconds": 2, "retry": {"max_attempts": 2, "jitter": false}}));
    let nodes = json!([reply("first", "1 "), node, reply("last", "3")]);
    let mut outer = graph(nodes, json!([["START", "first"], ["first", "call"], ["call", "last"]]));
    outer["nodes"][1]["on_error"] = json!("continue");
    world.run(&plan(&outer)).await.unwrap();
    assert_eq!(world.sink.text(), "1 3");
    let rows = world.journal.lines();
    assert!(rows.contains(&"2 call~2/r.1 succeeded".to_owned()), "{rows:?}");
}

#[test]
fn sub_workflow_fields_have_limits() {
    for (node, problem) in [
        (json!({"name": "n", "type": "sub_workflow"}), "/workflow required"),
        (json!({"name": "n", "type": "sub_workflow", "workflow": 5}), "/workflow type"),
        (call("w", json!({"version": 0})), "/version range"),
        (call("w", json!({"version": "2"})), "/version range"),
        (call("w", json!({"version": 1.5})), "/version range"),
        (call("w", json!({"inputs": {"a": "{{"}})), "/inputs/a template"),
        (call("w", json!({"inputs": {"a": "{{ results.b }}"}})), "/inputs/a unknown_node"),
        (call("w", json!({"input": {}})), "/input unknown_field"),
        (call("w", json!({"cache_seconds": 1})), "/cache_seconds not_pure"),
    ] {
        assert_eq!(refused(&node), [problem], "{node}");
    }
}
