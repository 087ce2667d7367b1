//! The chat's responses, parsed with the models in the public package `openai-chatkit`.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use client::ChatOptions;
use integration_tests::{AnswerExt, JSON, TestService, chat, graphs};
use serde_json::{Map, Value, json};
use wire::chat::{ChatOperation, ChatRequest, Dialect, UserMessageInput};

/// A node for each kind of item and event.
fn gallery() -> Vec<Value> {
    let source = |kind: &str, more: Value| {
        let mut source = json!({"type": kind, "title": "S", "description": "d", "timestamp": "2026-01-02T03:04:05Z", "group": "g"});
        source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        source
    };
    let url = source("url", json!({"url": "https://example.org/a", "attribution": "A"}));
    let file = source("file", json!({"filename": "a.pdf"}));
    let entity = source(
        "entity",
        json!({"id": "e", "icon": "user", "label": "L", "inline_label": "l", "interactive": true, "data": {"x": "1"}}),
    );
    let tasks = json!([
        {"type": "custom", "title": "t", "icon": "lucide:upload", "content": "c", "status_indicator": "complete"},
        {"type": "web_search", "title": "t", "title_query": "q", "queries": ["q"], "sources": [url]},
        {"type": "thought", "content": "c"}, {"type": "file", "sources": [file]}, {"type": "image"}]);
    let card = |text: &str, streaming: bool, title: &str, badge: &str| {
        json!({"type": "Card", "size": "md", "status": {"text": "s", "icon": "check"}, "children": [
        {"type": "Title", "value": title},
        {"type": "Row", "id": "row", "gap": 2, "children": [{"type": "Badge", "label": badge}]},
        {"type": "Markdown", "id": "text", "value": text, "streaming": streaming},
        {"type": "Form", "onSubmitAction": {"type": "save", "payload": {"id": 7}}, "children": [
            {"type": "Input", "name": "a.b"}, {"type": "Select", "name": "s", "options": [{"label": "l", "value": "v"}]},
            {"type": "Button", "label": "Save", "submit": true, "iconStart": "check"}]},
        {"type": "Chart", "data": [{"x": "a", "y": 1}], "series": [{"type": "bar", "dataKey": "y"}], "xAxis": "x"},
        {"type": "Table", "children": [{"type": "Table.Row", "children": [{"type": "Table.Cell", "children": []}]}]}]})
    };
    let widget = |name: &str, widget: Value, more: bool| json!({"name": name, "type": "widget", "key": "w", "widget": widget, "more": more, "copy_text": "c"});
    let list = |name: &str, count: usize, more: bool| {
        let tasks: Vec<Value> = tasks.as_array().unwrap().iter().take(count).cloned().collect();
        json!({"name": name, "type": "show", "kind": "workflow", "key": "l", "more": more,
               "workflow": {"type": "reasoning", "tasks": tasks, "summary": {"duration": 3}, "expanded": true}})
    };
    let image = |name: &str, url: &str, more: bool| {
        json!({"name": name, "type": "show", "kind": "image", "key": "i", "more": more, "progress": 0.5,
        "image": {"url": url}})
    };
    vec![
        json!({"name": "said", "type": "reply", "text": "Hi [there", "pieces": "words", "annotations": [{"index": 2, "source": url}, {"source": file}, {"source": entity}]}),
        widget("w1", card("a", true, "t", "b"), true),
        widget("w2", card("ab", true, "t", "b"), true),
        widget("w2b", card("ab", true, "t", "B"), true),
        widget("w3", card("ab", false, "u", "B"), true),
        widget(
            "w4",
            json!({"type": "ListView", "children": [{"type": "ListViewItem", "children": []}]}),
            false,
        ),
        widget("w5", card("replaced", false, "t", "b"), false),
        list("l1", 1, true),
        list("l2", 5, true),
        list("l3", 5, false),
        image("i1", "https://example.org/1", true),
        image("i2", "https://example.org/2", true),
        image("i3", "https://example.org/3", false),
        json!({"name": "none", "type": "show", "kind": "image"}),
        json!({"name": "task", "type": "show", "kind": "task", "key": "t", "task": tasks[0]}),
        json!({"name": "gone", "type": "show", "kind": "task", "key": "t", "task": null}),
        json!({"name": "p", "type": "progress", "text": "Working …"}),
        json!({"name": "n", "type": "notice", "message": "m", "level": "warning", "title": "t"}),
        json!({"name": "e", "type": "client_effect", "effect": "f", "data": {"none": null}}),
        json!({"name": "h", "type": "hidden", "content": "h"}),
        json!({"name": "thread", "type": "thread", "title": "T", "status": "locked", "reason": "r", "image_domains": ["example.org"]}),
        json!({"name": "end", "type": "show", "kind": "end_of_turn"}),
        json!({"name": "more", "type": "reply", "text": "Bye", "new_message": true}),
    ]
}

/// Asserts that the models accept all lines, and lose no member.
fn assert_parsed_by_models(lines: &[Value]) {
    if let Ok(line) = std::env::var("CALLBOARD_MISSING_CHATKIT") {
        panic!("openai-chatkit is not installed: run `{line}`");
    }
    let folder =
        std::env::var("CALLBOARD_CHATKIT").expect("CALLBOARD_CHATKIT is set: run `cargo xtask test`");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/chatkit_models.py");
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", folder).args(["-B", "-W", "ignore", script]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{found}");
    let first = &lines[0]["kind"];
    assert!(found.contains(&first.to_string()), "{found}");
}

#[tokio::test]
async fn every_event_and_response_fits_the_public_models() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::chain(&gallery(), None)).published().create().await;
    let failing = json!({"name": "a", "type": "assert", "when": "false", "message": "no"});
    let failing = t.workflow().graph(graphs::chain(&[failing], None)).published().create().await;
    let client = t.visitor();
    let options = ChatOptions { dialect: Some(Dialect::Chatkit), ..ChatOptions::default() };
    let mut lines = Vec::new();
    let mut thread = String::new();
    for workflow in [&workflow, &failing] {
        let input = UserMessageInput::text("Hello");
        let request = ChatRequest { operation: ChatOperation::CreateThread { input }, metadata: Map::new() };
        let mut turn = client.follow(&workflow.id, &request, &options).await.unwrap();
        while let Some(event) = turn.next().await.unwrap() {
            let event = serde_json::to_value(&event.event).unwrap();
            if let Some(id) = event.pointer("/thread/id").filter(|_| thread.is_empty()) {
                thread = id.as_str().unwrap().to_owned();
            }
            lines.push(json!({"kind": "event", "value": event}));
        }
    }
    let kind = |line: &Value| {
        let event = &line["value"];
        event.pointer("/update/type").or(event.get("type")).and_then(Value::as_str).unwrap().to_owned()
    };
    let kinds: BTreeSet<String> = lines.iter().map(kind).collect();
    for expected_kind in [
        "assistant_message.content_part.added",
        "assistant_message.content_part.annotation_added",
        "assistant_message.content_part.done",
        "assistant_message.content_part.text_delta",
        "client_effect",
        "error",
        "generated_image.updated",
        "notice",
        "progress_update",
        "stream_options",
        "thread.created",
        "thread.item.added",
        "thread.item.done",
        "thread.item.removed",
        "thread.item.replaced",
        "thread.updated",
        "widget.component.updated",
        "widget.root.updated",
        "widget.streaming_text.value_delta",
        "workflow.task.added",
    ] {
        assert!(kinds.contains(expected_kind), "{expected_kind} is not among {kinds:?}");
    }
    for (kind, operation, params) in [
        ("thread", "threads.get_by_id", json!({"thread_id": thread})),
        ("items", "items.list", json!({"thread_id": thread, "limit": 50})),
        ("threads", "threads.list", json!({})),
    ] {
        let cookie = format!("callboard_visitor={}", client.cookie("callboard_visitor").unwrap());
        let headers = [JSON, ("cookie", cookie.as_str())];
        let answer =
            t.send("POST", "/api/chat", &headers, &chat::ask(&workflow, operation, params).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        lines.push(json!({"kind": kind, "value": answer.json().unwrap()}));
    }
    assert_parsed_by_models(&lines);
}

/// A card that an action changes; otherwise a reply.
fn desk() -> Value {
    let card = |text: &str| json!({"type": "Card", "children": [{"type": "Text", "id": "t", "value": text}]});
    json!({"format": "graph/1",
        "nodes": [
            {"name": "said", "type": "reply", "text": "You said: {{ inputs.message }}"},
            {"name": "card", "type": "widget", "key": "card", "widget": card("new")},
            {"name": "acted", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card("{{ inputs.action.payload.to }}")},
        ],
        "edges": [{"from": "START", "cases": [{"when": "inputs.action", "to": "acted"}], "else": "said"},
                  {"from": "said", "to": "card"}, {"from": ["card", "acted"], "to": "END"}]})
}

#[tokio::test]
async fn requests_of_the_public_models_are_served() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(desk()).published().create().await;
    t.execute("UPDATE workflows SET chat = '{\"transcription\": {\"model\": \"practice/transcribe\"}}'")
        .await;
    let client = t.visitor();
    client.say(&workflow.id, "hi").await.unwrap();
    let cookie = format!("callboard_visitor={}", client.cookie("callboard_visitor").unwrap());
    let headers = [JSON, ("cookie", cookie.as_str())];
    let mut lines = Vec::new();
    let mut ask = async |kind: &str, params: Value| {
        lines.push(
            json!({"kind": "request", "value": {"type": kind, "params": params, "metadata": {"a": 1}}}),
        );
        let mut body = chat::ask(&workflow, kind, params);
        body["metadata"] = json!({"a": 1});
        t.send("POST", "/api/chat", &headers, &body.to_string()).await
    };
    let made = ask("attachments.create", json!({"name": "a.txt", "size": 5, "mime_type": "text/plain"}))
        .await
        .value();
    let address =
        made["upload_descriptor"]["url"].as_str().unwrap().split_once("/api/").unwrap().1.to_owned();
    let sent = t.send("PUT", &format!("/api/{address}"), &[], "hello").await;
    let spare = ask("attachments.create", json!({"name": "b.png", "size": 5, "mime_type": "image/png"}))
        .await
        .value();
    let deleted = ask("attachments.delete", json!({"attachment_id": spare["id"]})).await;
    assert_eq!((sent.status, deleted.value()), (200, json!({})));
    let input = json!({"content": [{"type": "input_text", "text": "hi"},
                                   {"type": "input_tag", "id": "x", "text": "Ada", "data": {}, "group": "g", "interactive": true}],
                       "attachments": [made["id"]], "quoted_text": "q",
                       "inference_options": {"tool_choice": {"id": "t"}, "model": "m"}});
    let mut plain = input.clone();
    plain["attachments"] = json!([]);
    let stream_events =
        integration_tests::events(&ask("threads.create", json!({"input": input})).await.text());
    let item = |kind: &str| {
        stream_events.iter().find(|event| event["item"]["type"] == kind).unwrap()["item"].clone()
    };
    let (message, card) = (item("user_message"), item("widget"));
    let (thread, widget) = (message["thread_id"].clone(), card["id"].clone());
    ask("threads.add_user_message", json!({"thread_id": thread, "input": plain})).await.expect(200);
    let action = json!({"type": "change", "payload": {"to": "other"}});
    let acted =
        ask("threads.sync_custom_action", json!({"thread_id": thread, "item_id": widget, "action": action}))
            .await;
    let streamed =
        ask("threads.custom_action", json!({"thread_id": thread, "item_id": widget, "action": action})).await;
    assert_eq!((acted.status, streamed.status), (200, 200), "{} {}", acted.text(), streamed.text());
    let audio = json!({"audio_base64": "cHJhY3RpY2U6aGk=", "mime_type": "audio/webm;codecs=opus"});
    let transcript = ask("input.transcribe", audio).await;
    assert_eq!(transcript.value(), json!({"text": "hi"}));
    for (kind, params) in [
        ("threads.retry_after_item", json!({"thread_id": thread, "item_id": message["id"]})),
        ("threads.get_by_id", json!({"thread_id": thread})),
        ("threads.list", json!({"limit": 5, "order": "asc"})),
        ("items.list", json!({"thread_id": thread, "limit": 5, "order": "asc"})),
        ("threads.update", json!({"thread_id": thread, "title": "T"})),
        ("items.feedback", json!({"thread_id": thread, "item_ids": [message["id"]], "kind": "positive"})),
        ("threads.delete", json!({"thread_id": thread})),
    ] {
        let answer = ask(kind, params).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
    }
    for (kind, value) in [
        ("attachment", made.clone()),
        ("attachment", spare),
        ("attachment", sent.value()),
        ("acted", acted.value()),
        ("transcript", transcript.value()),
    ] {
        lines.push(json!({"kind": kind, "value": value}));
    }
    lines.extend(question_lines(&t, &headers).await);
    assert_parsed_by_models(&lines);
}

/// Questions and a page tool: their requests and events.
async fn question_lines(t: &TestService, headers: &[(&str, &str)]) -> Vec<Value> {
    let questions = json!([
        {"id": "ok", "type": "multiple_choice", "question": "Go?", "options": [{"value": "yes"}], "multiple": true},
        {"id": "why", "type": "freeform", "question": "Why?", "description": "d"}]);
    let nodes = [
        json!({"name": "confirm", "type": "ask", "inputs": questions}),
        json!({"name": "where", "type": "client_tool", "tool": "place", "arguments": {"none": null, "deep": {"a": [1]}}}),
        json!({"name": "said", "type": "reply", "text": "{{ results.where.output | tojson }}"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let mut lines = Vec::new();
    let mut ask = async |kind: &str, params: Value| {
        let body = chat::ask(&workflow, kind, params.clone());
        let mut headers = headers.to_vec();
        headers.push(("accept", "text/event-stream;dialect=chatkit"));
        let answer = t.send("POST", "/api/chat", &headers, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
        let stream_events = integration_tests::events(&answer.text());
        lines.push(json!({"kind": "request", "value": {"type": kind, "params": params, "metadata": {}}}));
        lines.extend(stream_events.iter().map(|event| json!({"kind": "event", "value": event})));
        stream_events.last().unwrap()["item"].clone()
    };
    let input = json!({"content": [{"type": "input_text", "text": "hi"}], "attachments": [], "inference_options": {}});
    let question = ask("threads.create", json!({"input": input})).await;
    let (thread, answers) =
        (question["thread_id"].clone(), json!({"ok": {"values": ["yes", "own"], "skipped": false}}));
    let input = json!({"status": "answered", "answers": answers});
    let params = json!({"thread_id": thread, "item_id": question["id"], "input": input});
    let call = ask("threads.add_structured_input", params).await;
    assert_eq!(call["type"], "client_tool_call");
    let reply =
        ask("threads.add_client_tool_output", json!({"thread_id": thread, "result": {"city": null}})).await;
    assert_eq!(reply["content"][0]["text"], r#"{"city": null}"#);
    lines
}
