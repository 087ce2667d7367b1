//! `for_each`: order, concurrency, failures, names, halting.

use std::time::Duration;

use models::{ModelError, ModelErrorKind};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, reply, template};
use crate::world::{World, recorded, refused, result, settle};

fn each(items: impl Into<Value>, body: Value, more: Value) -> Value {
    let mut node = json!({"name": "each", "type": "for_each", "items": items.into(), "body": body});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn ask() -> Value {
    json!({"type": "llm", "model": "test/x", "user": "{{ item }}"})
}

fn rejected(message: &str) -> ModelError {
    ModelError { kind: ModelErrorKind::Rejected, message: message.into(), retry_after: None }
}

#[tokio::test]
async fn results_keep_the_order_of_the_list() {
    // The first entries take longest.
    let body = json!({"type": "delay", "seconds": "{{ inputs.base - index }}"});
    let done = result(each(json!([7, 7, 7]), body, json!({})), json!({"base": 5})).await.unwrap();
    assert_eq!(done, json!({"items": [{"seconds": 5.0}, {"seconds": 4.0}, {"seconds": 3.0}], "errors": []}));
    let body =
        json!({"type": "set", "values": {"i": "{{ index }}", "it": "{{ item }}", "n": "{{ inputs.n }}"}});
    let done =
        result(each("{{ inputs.list }}", body, json!({})), json!({"n": 1, "list": [{"a": [1]}, null]})).await;
    assert_eq!(
        done.unwrap()["items"],
        json!([{"i": 0, "it": {"a": [1]}, "n": 1}, {"i": 1, "it": null, "n": 1}])
    );
    let nothing = result(each(json!([]), ask(), json!({})), json!({})).await;
    assert_eq!(nothing, Ok(json!({"items": [], "errors": []})));
}

#[tokio::test]
async fn concurrency_limits_parallel_entries() {
    for (concurrency, expected) in
        [(json!({}), 4), (json!({"concurrency": 1}), 1), (json!({"concurrency": 32}), 9)]
    {
        let world = World::new();
        let nine = json!([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let run =
            world.begin(&plan(&alone(&each(nine, json!({"type": "delay", "seconds": 1}), concurrency))));
        settle().await;
        assert_eq!(world.clock.sleepers(), expected);
        for _ in 0..9 {
            world.clock.advance(Duration::from_secs(1));
            settle().await;
            assert!(world.clock.sleepers() <= expected);
        }
        assert!(run.has_ended());
    }
}

#[tokio::test]
async fn a_failed_entry_ends_the_loop_and_is_named() {
    let body = json!({"type": "assert", "when": "item < 3", "message": "{{ item }} is too much"});
    let error = result(each(json!([1, 3, 4]), body, json!({})), json!({})).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("each[1]")));
    assert_eq!(error.message, "3 is too much");
}

#[tokio::test]
async fn no_entry_starts_after_a_failure() {
    let world = World::new().answers(&["a"], Ok(())).answers(&["b"], Err(rejected("no")));
    let node = each(json!([1, 2, 3, 4, 5]), ask(), json!({"concurrency": 1}));
    let error = world.run(&plan(&alone(&node))).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ModelRejected, "no"));
    assert_eq!(world.model.requests.lock().len(), 2);
    assert_eq!(
        world.journal.lines(),
        ["1 each[0].1 succeeded", "1 each[1].1 failed", "1 each.1 failed"],
        "finished work is kept"
    );
}

#[tokio::test]
async fn a_failed_entry_ends_the_waits_of_others() {
    let body = json!({"type": "delay", "seconds": "{{ item }}"});
    let world = World::new();
    let error = world.run(&plan(&alone(&each(json!([900, "x", 900]), body, json!({}))))).await.unwrap_err();
    assert_eq!(error.node.as_deref(), Some("each[1]"), "{error}");
    assert_eq!(world.clock.sleepers(), 0);
    assert!(kernel::Clock::monotonic(&world.clock) < Duration::from_secs(1));
}

#[tokio::test]
async fn continue_lists_the_errors() {
    let body = json!({"type": "transform", "expression": "10 // item"});
    let node = each(json!([5, 0, 2, "x"]), body, json!({"on_item_error": "continue"}));
    let done = result(node, json!({})).await.unwrap();
    assert_eq!(done["items"], json!([2, null, 5, null]));
    let errors = done["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2);
    for (error, index) in errors.iter().zip([1, 3]) {
        assert_eq!((&error["index"], &error["code"]), (&json!(index), &json!("node.failed")));
        assert!(error["message"].as_str().unwrap().starts_with("expression"), "{error}");
    }
}

#[tokio::test]
async fn each_entry_is_retried_separately() {
    let flaky = ModelError { kind: ModelErrorKind::Unavailable, message: "busy".into(), retry_after: None };
    let world = World::new().answers(&["a"], Ok(())).answers(&[], Err(flaky)).answers(&["c"], Ok(()));
    let node = each(json!([1, 2]), ask(), json!({"concurrency": 1}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(done["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        world.journal.lines(),
        ["1 each[0].1 succeeded", "1 each[1].1 failed", "1 each[1].1 succeeded", "1 each.1 succeeded"]
    );
}

#[tokio::test]
async fn a_retry_of_the_loop_runs_only_unfinished_entries() {
    let failing = ModelError { kind: ModelErrorKind::Unavailable, message: "busy".into(), retry_after: None };
    let world = World::new().answers(&["a"], Ok(())).answers(&[], Err(failing));
    let mut body = ask();
    body["retry"] = json!({"max_attempts": 1});
    let node = each(json!([1, 2]), body, json!({"concurrency": 1, "retry": {"max_attempts": 2}}));
    world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(
        world.journal.lines(),
        [
            "1 each[0].1 succeeded",
            "1 each[1].1 failed",
            "1 each.1 failed",
            "1 each~2[1].1 succeeded",
            "1 each.1 succeeded"
        ]
    );
    let nodes =
        json!([template("s", ""), each(json!([1]), json!({"type": "log", "message": ""}), json!({}))]);
    let again = json!({"from": "each", "cases": [{"when": "state.n < 2", "to": "s"}], "else": "END"});
    let mut twice = graph(nodes, json!([["START", "s"], ["s", "each"], again]));
    twice["state"] = json!({"n": {"merge": "sum"}});
    twice["nodes"][1]["state"] = json!({"n": 1});
    let world = World::new();
    world.run(&plan(&twice)).await.unwrap();
    assert!(
        world.journal.lines().contains(&"4 each#2[0].1 succeeded".to_owned()),
        "{:?}",
        world.journal.lines()
    );
}

#[tokio::test]
async fn text_of_entries_keeps_their_order() {
    let body = json!({"type": "reply", "text": "{{ item }} and ", "pieces": "words", "pause_ms": 100});
    let world = World::new();
    let nodes = json!([each(json!(["a", "b", "c"]), body, json!({})), reply("end", "end")]);
    world.run(&plan(&graph(nodes, json!([["START", "each"], ["each", "end"]])))).await.unwrap();
    assert_eq!(world.sink.text(), "a and b and c and end");
}

#[tokio::test]
async fn a_resumed_loop_runs_only_missing_entries() {
    let world = World::new();
    let graph = plan(&alone(&each(json!(["a", "b", "c"]), ask(), json!({"concurrency": 1}))));
    let output = world.run(&graph).await.unwrap();
    let rows = world.journal.rows.lock().clone();
    assert_eq!(rows.len(), 4);
    for crash in 0..=4 {
        let again = World::new().recorded(recorded(&rows[..crash]));
        assert_eq!(again.run(&graph).await, Ok(output.clone()));
        assert_eq!(again.model.requests.lock().len(), 3 - crash.min(3));
    }
}

#[tokio::test]
async fn a_failure_in_another_branch_ends_the_loop_after_its_running_entries() {
    let world = World::new();
    let nodes = json!([
        each(
            json!([1, 2, 3, 4]),
            json!({"type": "reply", "text": "a b", "pieces": "words", "pause_ms": 500}),
            json!({"concurrency": 2})
        ),
        template("bad", "{{ inputs.x }}"),
    ]);
    let error =
        world.run(&plan(&graph(nodes, json!([["START", "each"], ["START", "bad"]])))).await.unwrap_err();
    assert_eq!(error.node.as_deref(), Some("bad"), "halted entries are not blamed");
    let mut rows = world.journal.lines();
    rows.sort();
    assert_eq!(rows, ["1 bad.1 failed", "1 each[0].1 succeeded", "1 each[1].1 succeeded"]);
}

#[tokio::test]
async fn loop_fields_have_limits() {
    let body = || json!({"type": "log", "message": "{{ item }}"});
    for (node, problems) in [
        (json!({"name": "n", "type": "for_each"}), vec!["/body required", "/items required"]),
        (each(json!(5), body(), json!({})), vec!["/items type"]),
        (each(json!("plain"), body(), json!({})), vec!["/items type"]),
        (each(json!("{{ item }}"), body(), json!({})), vec!["/items unknown_name"]),
        (each(json!([]), body(), json!({"concurrency": 0})), vec!["/concurrency range"]),
        (each(json!([]), body(), json!({"concurrency": 33})), vec!["/concurrency range"]),
        (each(json!([]), body(), json!({"on_item_error": "skip"})), vec!["/on_item_error choice"]),
        (each(json!([]), json!("log"), json!({})), vec!["/body type"]),
        (each(json!([]), json!({}), json!({})), vec!["/body/type required"]),
        (each(json!([]), json!({"type": "lgo"}), json!({})), vec!["/body/type unknown_type"]),
        (each(json!([]), json!({"type": "for_each"}), json!({})), vec!["/body/type nested"]),
        (
            each(json!([]), json!({"type": "log", "message": "", "name": "x"}), json!({})),
            vec!["/body/name unknown_field"],
        ),
        (
            each(json!([]), json!({"type": "log", "message": "", "state": {}}), json!({})),
            vec!["/body/state unknown_field"],
        ),
        (
            each(json!([]), json!({"type": "log", "message": "", "on_error": "fail"}), json!({})),
            vec!["/body/on_error unknown_field"],
        ),
        (
            each(json!([]), json!({"type": "log", "massage": ""}), json!({})),
            vec!["/body/massage unknown_field", "/body/message required"],
        ),
        (
            each(json!([]), json!({"type": "log", "message": "{{ itm }}"}), json!({})),
            vec!["/body/message unknown_name"],
        ),
        (
            each(json!([]), json!({"type": "log", "message": "", "retry": {"max_attempts": 21}}), json!({})),
            vec!["/body/retry/max_attempts range"],
        ),
        (each(json!([]), body(), json!({"item": 1})), vec!["/item unknown_field"]),
        (each(json!([]), body(), json!({"cache_seconds": 5})), vec!["/cache_seconds not_pure"]),
    ] {
        assert_eq!(refused(&node), problems, "{node}");
    }
    let error = result(each("{{ inputs.n }}", body(), json!({})), json!({"n": {}})).await.unwrap_err();
    assert_eq!(error.message, "items must be a list, not an object");
    let many = json!({"n": vec![0; 10_001]});
    let error = result(each("{{ inputs.n }}", body(), json!({})), many).await.unwrap_err();
    assert_eq!(error.message, "10001 entries; at most 10000");
}

#[tokio::test]
async fn ten_thousand_entries_complete() {
    let many = json!({"n": (0..10_000).collect::<Vec<_>>()});
    let body = json!({"type": "transform", "expression": "item + index"});
    let done = result(each("{{ inputs.n }}", body, json!({"concurrency": 32})), many).await.unwrap();
    let items = done["items"].as_array().unwrap();
    assert!(items.iter().enumerate().all(|(index, item)| *item == json!(2 * index)));
}

#[tokio::test]
async fn a_nested_filter_has_a_separate_item() {
    let body = json!({"type": "filter", "items": "{{ item }}", "when": "item > 1 and index < 2"});
    let done = result(each(json!([[1, 2, 3], [4, 5, 6]]), body, json!({})), json!({})).await.unwrap();
    assert_eq!(done["items"], json!([[2], [4, 5]]));
}

#[tokio::test]
async fn a_delay_in_a_loop_survives_a_restart() {
    let graph =
        plan(&alone(&each(json!([10, 20]), json!({"type": "delay", "seconds": "{{ item }}"}), json!({}))));
    let world = World::new();
    let run = world.begin(&graph);
    settle().await;
    run.drop_it();
    let again = World::new().recorded(recorded(&world.journal.rows.lock()));
    again.clock.advance(Duration::from_secs(15));
    let run = again.begin(&graph);
    settle().await;
    assert_eq!(again.clock.sleepers(), 1, "the first has ended by now");
    again.clock.advance(Duration::from_secs(5));
    settle().await;
    assert!(run.has_ended());
}
