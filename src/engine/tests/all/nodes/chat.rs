//! `reply`, `progress`, `notice`.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, reply};
use crate::world::{World, refused};

#[tokio::test]
async fn progress_and_notices_stand_outside_the_message() {
    let nodes = json!([
        {"name": "p", "type": "progress", "text": "Reading {{ inputs.n }} …"},
        {"name": "i", "type": "notice", "message": "m"},
        {"name": "w", "type": "notice", "message": "{{ inputs.n }}", "level": "warning", "title": "t{{ inputs.n }}"},
        {"name": "d", "type": "notice", "message": "m", "level": "danger"},
    ]);
    let mut graph = graph(nodes, json!([["START", "p"], ["p", "i"], ["i", "w"], ["w", "d"]]));
    graph["output"] = json!("{{ results }}");
    let world = World::new().inputs(json!({"n": 2}));
    let output = world.run(&plan(&graph)).await.unwrap();
    assert_eq!(
        output,
        json!({"p": {"text": "Reading 2 …"}, "i": {"level": "info", "message": "m", "title": null},
               "w": {"level": "warning", "message": "2", "title": "t2"},
               "d": {"level": "danger", "message": "m", "title": null}})
    );
    assert_eq!(
        *world.sink.aside.lock(),
        ["Reading 2 …", "Info m None", "Warning 2 Some(\"t2\")", "Danger m None"]
    );
    assert_eq!(world.sink.text(), "");
}

#[test]
fn bad_fields_are_named() {
    let of = |kind: &str, fields: Value| {
        let mut node = json!({"name": "n", "type": kind});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        refused(&node)
    };
    for (fields, problem) in [
        (json!({}), "/text required"),
        (json!({"text": 1}), "/text type"),
        (json!({"text": "{{ x }}"}), "/text unknown_name"),
        (json!({"text": "", "level": "info"}), "/level unknown_field"),
    ] {
        assert_eq!(of("progress", fields), [problem]);
    }
    for (fields, problem) in [
        (json!({}), "/message required"),
        (json!({"message": []}), "/message type"),
        (json!({"message": "", "title": 5}), "/title type"),
        (json!({"message": "", "level": "warn"}), "/level choice"),
        (json!({"message": "", "text": ""}), "/text unknown_field"),
    ] {
        assert_eq!(of("notice", fields), [problem]);
    }
    for (fields, problem) in [
        (json!({}), "/text required"),
        (json!({"text": ["a"]}), "/text type"),
        (json!({"text": "", "pieces": "letters"}), "/pieces choice"),
        (json!({"text": "", "pause_ms": -1}), "/pause_ms range"),
        (json!({"text": "", "pause_ms": "1"}), "/pause_ms range"),
        (json!({"text": "", "new_message": "yes"}), "/new_message type"),
        (json!({"text": "", "widget": {}}), "/widget not_yet"),
        (json!({"text": "", "annotations": []}), "/annotations not_yet"),
        (json!({"text": "", "txt": ""}), "/txt unknown_field"),
    ] {
        assert_eq!(of("reply", fields), [problem]);
    }
}

#[tokio::test]
async fn a_reply_may_begin_another_message() {
    let another = json!({"name": "b", "type": "reply", "text": "second", "new_message": true});
    let edges = json!([["START", "a"], ["a", "b"], ["b", "c"]]);
    let world = World::new();
    world
        .run(&plan(&graph(json!([reply("a", "first"), another, reply("c", ", more")]), edges)))
        .await
        .unwrap();
    assert_eq!(world.sink.text(), "first|second, more");
}

#[tokio::test]
async fn what_cannot_be_filled_is_not_said() {
    for node in [
        reply("n", "a {{ inputs.x }}"),
        json!({"name": "n", "type": "progress", "text": "{{ inputs.x }}"}),
        json!({"name": "n", "type": "notice", "message": "m", "title": "{{ inputs.x }}"}),
    ] {
        let world = World::new();
        let error = world.run(&plan(&alone(&node))).await.unwrap_err();
        assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("n")));
        assert!(world.sink.text().is_empty() && world.sink.aside.lock().is_empty());
    }
}
