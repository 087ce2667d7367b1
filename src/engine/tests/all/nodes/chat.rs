//! `reply`, `progress`, `notice`, `show`, `hidden`, `thread`, `client_effect`.

use std::sync::atomic::Ordering;

use engine::ports::ThreadChange;
use serde_json::{Value, json};
use wire::ErrorCode;
use wire::chat::ThreadStatus;

use crate::ports::{alone, graph, plan, reply};
use crate::world::{World, recorded, refused};

#[tokio::test]
async fn progress_and_notices_are_not_part_of_the_message() {
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
        (json!({"text": null}), "/text required"),
        (json!({"key": "k"}), "/text required"),
        (json!({"text": "", "widget": {}}), "/widget required"),
        (json!({"widget": {"type": "Basic"}}), "/widget/type choice"),
        (json!({"text": "", "copy_text": "c"}), "/copy_text widget"),
        (json!({"text": "", "key": "k", "pause_ms": 1}), "/pause_ms key"),
        (json!({"text": "", "annotations": {}}), "/annotations schema"),
        (
            json!({"text": "", "annotations": [{"source": {"type": "url", "title": "t", "url": "javascript:x"}}]}),
            "/annotations/0/source/url schema",
        ),
        (
            json!({"text": "", "annotations": [{"source": {"type": "page", "title": "t"}}]}),
            "/annotations/0/source/type schema",
        ),
        (
            json!({"text": "", "annotations": [{"source": {"type": "file", "title": "t", "filename": "f"}, "index": -1}]}),
            "/annotations/0/index schema",
        ),
        (json!({"text": "", "txt": ""}), "/txt unknown_field"),
    ] {
        assert_eq!(of("reply", fields), [problem]);
    }
}

#[tokio::test]
async fn a_reply_may_start_a_new_message() {
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
async fn text_that_cannot_be_rendered_is_not_sent() {
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

#[tokio::test]
async fn items_and_texts_keep_the_file_order() {
    let nodes = json!([
        reply("said", "Hello {{ inputs.name }}"),
        {"name": "one", "type": "show", "kind": "task", "key": "of {{ inputs.name }}",
         "task": {"type": "custom", "title": "{{ inputs.name }}", "icon": "lucide:upload"}},
        {"name": "whole", "type": "show", "kind": "task", "task": "{{ inputs.task }}"},
        {"name": "gone", "type": "show", "kind": "workflow", "workflow": null, "key": "w"},
        {"name": "h", "type": "hidden", "content": {"for": "{{ inputs.name }}"}},
        {"name": "end", "type": "show", "kind": "end_of_turn"},
    ]);
    let edges = json!([
        ["START", "said"],
        ["said", "one"],
        ["one", "whole"],
        ["whole", "gone"],
        ["gone", "h"],
        ["h", "end"]
    ]);
    let mut graph = graph(nodes, edges);
    graph["output"] = json!({"one": "{{ results.one }}", "h": "{{ results.h }}"});
    let inputs = json!({"name": "Ada", "task": {"type": "thought", "content": "why"}});
    let expected = [
        "Hello Ada",
        r#"<of Ada: {"type":"task","task":{"status_indicator":"none","type":"custom","title":"Ada","icon":"lucide:upload"}}>"#,
        r#"<{"type":"task","task":{"status_indicator":"none","type":"thought","content":"why"}}>"#,
        "<w: >",
        r#"<{"type":"hidden_context_item","content":{"for":"Ada"}}>"#,
        r#"<{"type":"end_of_turn"}>"#,
    ];
    let world = World::new().in_a_chat().inputs(inputs.clone());
    let output = world.run(&plan(&graph)).await.unwrap();
    assert_eq!(output, json!({"one": {"kind": "task", "key": "of Ada"}, "h": {}}));
    assert_eq!(world.sink.text(), expected.concat());
    // A resumed run produces them again.
    let rows = world.journal.rows.lock().clone();
    let resumed = World::new().in_a_chat().inputs(inputs.clone()).recorded(recorded(&rows));
    resumed.run(&plan(&graph)).await.unwrap();
    assert_eq!(resumed.sink.text(), expected.concat());
    // Outside a chat, items are only results.
    let alone = World::new().inputs(inputs);
    assert_eq!(alone.run(&plan(&graph)).await.unwrap(), output);
    assert_eq!(alone.sink.text(), "Hello Ada");
}

#[test]
fn bad_items_are_named_when_they_are_saved() {
    let of = |fields: Value| {
        let mut node = json!({"name": "n", "type": "show"});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        refused(&node)
    };
    for (fields, problems) in [
        (json!({}), vec!["/kind required"]),
        (json!({"kind": "tasks"}), vec!["/kind choice"]),
        (json!({"kind": "task"}), vec!["/task required"]),
        (json!({"kind": "task", "task": null}), vec!["/key required"]),
        (json!({"kind": "task", "task": {"type": "thought"}}), vec!["/task schema"]),
        (json!({"kind": "task", "task": {"type": "custom", "icon": "upload"}}), vec!["/task/icon schema"]),
        (json!({"kind": "task", "task": {"type": "custom", "titel": "x"}}), vec!["/task schema"]),
        (
            json!({"kind": "workflow", "workflow": {"type": "custom", "tasks": [{"type": "x"}]}}),
            vec!["/workflow/tasks/0/type schema"],
        ),
        (
            json!({"kind": "workflow", "workflow": {"type": "custom", "tasks": [], "summary": {}}}),
            vec!["/workflow/summary schema"],
        ),
        (
            json!({"kind": "task", "task": {"type": "custom", "titel": "{{ inputs.x }}"}}),
            vec!["/task schema"],
        ),
        (json!({"kind": "task", "task": {"type": "custom", "icon": "{{ inputs.x }}"}}), vec![]),
        (json!({"kind": "task", "task": "{{ inputs.x }}"}), vec![]),
        (
            json!({"kind": "workflow", "workflow": {"type": "custom", "tasks": "{{ inputs.x }}",
                "summary": {"title": "{{ inputs.x }}", "icon": "{{ inputs.x }}"}}}),
            vec![],
        ),
        (
            json!({"kind": "task", "task": {"type": "web_search", "queries": [], "sources": [
                {"type": "url", "title": "t", "url": "javascript:x"}]}}),
            vec!["/task/sources/0/url schema"],
        ),
        (
            json!({"kind": "task", "task": {"type": "file", "sources": [{"type": "file", "title": "t", "file": "f"}]}}),
            vec!["/task/sources/0 schema", "/task/sources/0 schema"],
        ),
        (json!({"kind": "end_of_turn", "key": 1}), vec!["/key type"]),
        (json!({"kind": "end_of_turn", "more": true}), vec!["/key required"]),
        (json!({"kind": "image"}), vec![]),
        (json!({"kind": "image", "image": {"url": "http://example.org/a.png"}}), vec!["/image/url schema"]),
        (json!({"kind": "image", "image": {"url": "https://e.org/a", "base64": "x"}}), vec!["/image schema"]),
        (json!({"kind": "image", "image": {}}), vec!["/image schema"]),
        (json!({"kind": "image", "image": {"attachment": 7}}), vec!["/image/attachment schema"]),
        (json!({"kind": "image", "image": {"base64": "{{ inputs.x }}"}}), vec![]),
        (json!({"kind": "end_of_turn", "key": ""}), vec!["/key length"]),
        (json!({"kind": "end_of_turn", "key": "k".repeat(65)}), vec!["/key length"]),
        (json!({"kind": "end_of_turn", "key": "{{ inputs.x }}".repeat(9)}), vec![]),
        (
            json!({"kind": "task", "task": {"type": "web_search", "queries": [], "sources": [
                {"type": "url", "title": "t", "url": "https://e.org/", "timestamp": "yesterday"}]}}),
            vec!["/task/sources/0/timestamp schema"],
        ),
        (
            json!({"kind": "task", "task": {"type": "web_search", "queries": [], "sources": [
                {"type": "url", "title": "t", "url": "https://e.org/", "timestamp": "2026-11-26T09:00:00.5+01:00"}]}}),
            vec![],
        ),
        (json!({"kind": "image", "image": null}), vec!["/key required"]),
        (json!({"kind": "image", "progress": 2}), vec!["/progress schema"]),
        (json!({"kind": "image", "progress": "{{ inputs.x }}"}), vec![]),
        (json!({"kind": "task", "task": {"type": "custom"}, "progress": 0.5}), vec!["/progress kind"]),
        (json!({"kind": "end_of_turn", "task": {}}), vec!["/task kind"]),
    ] {
        assert_eq!(of(fields.clone()), problems, "{fields}");
    }
    assert_eq!(refused(&json!({"name": "n", "type": "hidden"})), ["/content required"]);
}

#[tokio::test]
async fn bad_items_fail_their_node() {
    for (node, message) in [
        (json!({"name": "n", "type": "show", "kind": "task", "task": "{{ inputs.x }}"}), "/task/type: "),
        (json!({"name": "n", "type": "show", "kind": "end_of_turn", "key": "{{ inputs.long }}"}), "/key: "),
        (json!({"name": "n", "type": "hidden", "content": "{{ inputs.large }}"}), "content of 65538 bytes"),
        (
            json!({"name": "n", "type": "widget", "widget": "{{ inputs.x }}"}),
            "/widget/type: must be Card or ListView",
        ),
        (json!({"name": "n", "type": "widget", "widget": "{{ inputs.long }}"}), "/widget: "),
        (json!({"name": "n", "type": "reply", "text": "t", "widget": "{{ inputs.x }}"}), "/widget/type: "),
        (
            json!({"name": "n", "type": "reply", "text": "t", "annotations": "{{ inputs.x }}"}),
            "/annotations: ",
        ),
        (
            json!({"name": "n", "type": "show", "kind": "image", "image": {"url": "{{ inputs.long }}"}}),
            "/image/url: ",
        ),
        (
            json!({"name": "n", "type": "show", "kind": "image", "progress": "{{ inputs.long }}"}),
            "/progress: ",
        ),
    ] {
        let inputs = json!({"x": {"type": "none"}, "long": "k".repeat(65), "large": "x".repeat(65_536)});
        let world = World::new().in_a_chat().inputs(inputs);
        let error = world.run(&plan(&alone(&node))).await.unwrap_err();
        assert!(error.message.starts_with(message), "{error:?}");
        assert_eq!(world.sink.text(), "");
    }
}

#[tokio::test]
async fn a_run_sends_at_most_a_thousand_items() {
    let body = json!({"type": "hidden", "content": "{{ item }}"});
    let node =
        json!({"name": "all", "type": "for_each", "items": "{{ range(inputs.n) | list }}", "body": body});
    for (count, good) in [(1_000, true), (1_001, false)] {
        let world = World::new().in_a_chat().inputs(json!({"n": count}));
        let ran = world.run(&plan(&alone(&node))).await;
        assert_eq!(ran.is_ok(), good, "{count}: {ran:?}");
        if let Err(error) = ran {
            assert_eq!(error.code, ErrorCode::NodeResultTooLarge);
        }
    }
}

#[tokio::test]
async fn threads_are_changed_and_actions_sent_at_once() {
    let nodes = json!([
        {"name": "t", "type": "thread", "title": "Order {{ inputs.n }}", "status": "locked", "reason": "r{{ inputs.n }}",
         "image_domains": "{{ inputs.hosts }}"},
        {"name": "none", "type": "thread", "image_domains": null},
        {"name": "e", "type": "client_effect", "effect": "mark{{ inputs.n }}", "data": {"n": "{{ inputs.n }}"}},
        {"name": "plain", "type": "client_effect", "effect": "close"},
    ]);
    let mut graph = graph(nodes, json!([["START", "t"], ["t", "none"], ["none", "e"], ["e", "plain"]]));
    graph["output"] = json!("{{ results }}");
    let inputs = json!({"n": 2, "hosts": ["a.example", "B.example"]});
    let expected = json!({
        "t": {"title": "Order 2", "status": "locked", "reason": "r2", "image_domains": ["a.example", "B.example"]},
        "none": {"image_domains": null}, "e": {"effect": "mark2", "data": {"n": 2}}, "plain": {"effect": "close", "data": {}}});
    let world = World::new().in_a_chat().inputs(inputs.clone());
    assert_eq!(world.run(&plan(&graph)).await.unwrap(), expected);
    let locked = ThreadStatus::Locked { reason: Some("r2".to_owned()) };
    let hosts = Some(Some(vec!["a.example".to_owned(), "b.example".to_owned()]));
    let first =
        ThreadChange { title: Some("Order 2".to_owned()), status: Some(locked), image_domains: hosts };
    let second = ThreadChange { image_domains: Some(None), ..ThreadChange::default() };
    let effects = ["mark2 {\"n\":2}".to_owned(), "close {}".to_owned()];
    let [effect, plain_effect] = effects.clone();
    let all = [format!("{first:?}"), format!("{second:?}"), effect, plain_effect];
    assert_eq!(*world.sink.aside.lock(), all);
    // Finished changes are not sent again.
    let rows = world.journal.rows.lock().clone();
    let resumed = World::new().in_a_chat().inputs(inputs.clone()).recorded(recorded(&rows));
    assert_eq!(resumed.run(&plan(&graph)).await.unwrap(), expected);
    assert!(resumed.sink.aside.lock().is_empty());
    // Without a thread, nothing changes.
    let alone = World::new().inputs(inputs);
    assert_eq!(alone.run(&plan(&graph)).await.unwrap(), expected);
    assert_eq!(*alone.sink.aside.lock(), effects);
}

#[test]
fn bad_changes_of_threads_are_named() {
    let of = |kind: &str, fields: &Value| {
        let mut node = json!({"name": "n", "type": kind});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        refused(&node)
    };
    for (fields, problems) in [
        (json!({}), vec!["/status required"]),
        (json!({"title": null, "status": null}), vec!["/status required"]),
        (json!({"title": ""}), vec!["/title schema"]),
        (json!({"title": " \n"}), vec!["/title schema"]),
        (json!({"title": "x".repeat(201)}), vec!["/title schema"]),
        (json!({"title": 1}), vec!["/title type"]),
        (json!({"title": "{{ x }}"}), vec!["/title unknown_name"]),
        (json!({"title": "{{ inputs.x }}"}), vec![]),
        (json!({"status": "open"}), vec!["/status choice"]),
        (json!({"status": "{{ inputs.x }}"}), vec!["/status choice"]),
        (json!({"status": "active", "reason": "r"}), vec!["/reason status"]),
        (json!({"reason": "r"}), vec!["/reason status"]),
        (json!({"status": "locked", "reason": "r".repeat(501)}), vec!["/reason schema"]),
        (json!({"status": "locked", "reason": ""}), vec![]),
        (json!({"image_domains": null}), vec![]),
        (json!({"image_domains": []}), vec![]),
        (json!({"image_domains": "a.example"}), vec!["/image_domains type"]),
        (json!({"image_domains": "{{ inputs.x }}"}), vec![]),
        (json!({"image_domains": ["https://a.example"]}), vec!["/image_domains/0 schema"]),
        (json!({"image_domains": ["a.example", "{{ inputs.x }}"]}), vec![]),
        (json!({"image_domains": vec!["a.example"; 51]}), vec!["/image_domains schema"]),
        (json!({"image_domains": {}}), vec!["/image_domains schema"]),
        (json!({"status": "locked", "lock": true}), vec!["/lock unknown_field"]),
    ] {
        assert_eq!(of("thread", &fields), problems, "{fields}");
    }
    for (fields, problems) in [
        (json!({}), vec!["/effect required"]),
        (json!({"effect": 1}), vec!["/effect type"]),
        (json!({"effect": ""}), vec!["/effect length"]),
        (json!({"effect": "e".repeat(65)}), vec!["/effect length"]),
        (json!({"effect": "{{ inputs.x }}"}), vec![]),
        (json!({"effect": "e", "data": []}), vec!["/data type"]),
        (json!({"effect": "e", "data": "x"}), vec!["/data type"]),
        (json!({"effect": "e", "data": "{{ inputs.x }}"}), vec![]),
        (json!({"effect": "e", "date": {}}), vec!["/date unknown_field"]),
    ] {
        assert_eq!(of("client_effect", &fields), problems, "{fields}");
    }
}

#[tokio::test]
async fn bad_values_change_no_thread() {
    for (node, message) in [
        (json!({"type": "thread", "title": "{{ inputs.long }}"}), "/title: "),
        (json!({"type": "thread", "title": "{{ inputs.empty }}"}), "/title: "),
        (json!({"type": "thread", "status": "locked", "reason": "{{ inputs.long * 3 }}"}), "/reason: "),
        (json!({"type": "thread", "image_domains": "{{ inputs.long }}"}), "/image_domains: "),
        (json!({"type": "thread", "image_domains": ["{{ inputs.empty }}"]}), "/image_domains/0: "),
        (json!({"type": "client_effect", "effect": "{{ inputs.empty }}"}), "/effect: "),
        (json!({"type": "client_effect", "effect": "{{ inputs.long }}"}), "/effect: "),
        (json!({"type": "client_effect", "effect": "e", "data": "{{ inputs.long }}"}), "/data: "),
        (
            json!({"type": "client_effect", "effect": "e", "data": {"x": "{{ inputs.large }}"}}),
            "data of 65544 bytes",
        ),
    ] {
        let mut node = node;
        node["name"] = json!("n");
        let inputs = json!({"long": "k".repeat(201), "empty": "", "large": "x".repeat(65_536)});
        let world = World::new().in_a_chat().inputs(inputs);
        let error = world.run(&plan(&alone(&node))).await.unwrap_err();
        assert!(error.message.starts_with(message), "{node}: {error:?}");
        assert!(world.sink.aside.lock().is_empty());
    }
}

/// Another node's output survives when an item is abandoned before it is sent.
#[tokio::test]
async fn an_item_with_a_slow_lookup_is_not_sent() {
    let show = json!({"name": "n", "type": "show", "kind": "end_of_turn", "key": "k", "timeout_seconds": 1, "on_error": "continue"});
    let edges = json!([["START", "said"], ["said", "n"], ["n", "more"]]);
    let graph = graph(json!([reply("said", "said"), show, reply("more", " more")]), edges);
    let world = World::new().in_a_chat();
    world.sink.is_stuck.store(true, Ordering::Relaxed);
    world.run(&plan(&graph)).await.unwrap();
    assert_eq!(world.sink.text(), "said more");
}
