//! Every request type with invalid input: its code and its pointer; and that it stores nothing.

use std::collections::BTreeMap;

use integration_tests::{Answer, AnswerExt, TestService, Workflow, chat, events, within};
use serde_json::{Value, json};

/// Lines `type | pointer | value or - | status code | problems`: a well-formed request with one member changed or
/// removed. `$name` is an id from [`ids`], `$201` means 201 letters.
const TABLE: &str = include_str!("chat_bad_input.txt");

/// Tables that a rejected request must not change.
const STORED: [&str; 16] = [
    "threads",
    "thread_items",
    "thread_cuts",
    "streams",
    "stream_events",
    "runs",
    "run_steps",
    "run_queue",
    "run_questions",
    "question_items",
    "turns_sent",
    "item_feedback",
    "feedback_turns",
    "attachments",
    "chat_usage",
    "idempotency_keys",
];

fn graph() -> Value {
    json!({"format": "graph/1", "nodes": [
        {"name": "greet", "type": "reply", "text": "Welcome."},
        {"name": "confirm", "type": "ask", "inputs": [
            {"id": "ok", "type": "multiple_choice", "question": "Send it back?", "options": [{"value": "yes"}, {"value": "no"}]},
            {"id": "why", "type": "freeform", "question": "Why?"}]},
        {"name": "where", "type": "client_tool", "tool": "get_location", "arguments": {}}],
      "edges": [
        {"from": "START", "cases": [{"when": "inputs.message == 'ask'", "to": "confirm"},
                                    {"when": "inputs.message == 'where'", "to": "where"}], "else": "greet"},
        {"from": "greet", "to": "END"}, {"from": "confirm", "to": "END"}, {"from": "where", "to": "END"}]})
}

/// Well-formed `params` for each type.
fn well_formed() -> Vec<(&'static str, Value)> {
    let message = json!({"content": [{"type": "input_text", "text": "hi"}]});
    let answers = json!({"answers": {"ok": {"values": ["yes"]}, "why": {"values": ["broken"]}}});
    vec![
        ("threads.create", json!({"input": message})),
        ("threads.add_user_message", json!({"thread_id": "$thread", "input": message})),
        ("threads.retry_after_item", json!({"thread_id": "$thread", "item_id": "$message"})),
        (
            "threads.add_structured_input",
            json!({"thread_id": "$asked", "item_id": "$question", "input": answers}),
        ),
        ("threads.add_client_tool_output", json!({"thread_id": "$calling", "result": {"city": "Paris"}})),
        ("threads.get_by_id", json!({"thread_id": "$thread"})),
        ("threads.list", json!({})),
        ("items.list", json!({"thread_id": "$thread"})),
        ("threads.update", json!({"thread_id": "$thread", "title": "Orders"})),
        ("threads.delete", json!({"thread_id": "$thread"})),
        ("items.feedback", json!({"thread_id": "$thread", "item_ids": ["$reply"], "kind": "positive"})),
        ("threads.custom_action", json!({"thread_id": "$thread", "action": {"type": "order.cancel"}})),
        ("threads.sync_custom_action", json!({"thread_id": "$thread", "action": {"type": "order.cancel"}})),
        ("attachments.create", json!({"name": "plan.pdf", "size": 2_048, "mime_type": "application/pdf"})),
        ("attachments.delete", json!({"attachment_id": "atc_01890000000000000000000000000000"})),
        ("input.transcribe", json!({"audio_base64": "AAAA", "mime_type": "audio/webm"})),
    ]
}

/// Requests for which the test's chat has no action, file or model.
const NOT_HERE: [&str; 4] =
    ["threads.custom_action", "threads.sync_custom_action", "attachments.delete", "input.transcribe"];

/// Invalid input that every type rejects alike.
fn common() -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, params) in well_formed() {
        for line in [
            "/workflow_id | - | 400 chat.workflow_id_required",
            "/workflow_id | 7 | 400 chat.workflow_id_invalid",
            r#"/workflow_id | "01890000-0000-7000-8000-000000000000" | 404 workflow.not_found"#,
            "/metadata | [] | 422 chat.invalid_request | /metadata type",
            "/params | - | 422 chat.invalid_request | /params required",
            "/params | [1] | 422 chat.invalid_request | /params type",
        ] {
            lines.push(format!("{kind} | {line}"));
        }
        let of_thread = [
            "/params/thread_id | - | 422 chat.invalid_request | /params/thread_id required",
            "/params/thread_id | 7 | 422 chat.invalid_request | /params/thread_id type",
            r#"/params/thread_id | "thr_x" | 404 thread.not_found"#,
            r#"/params/thread_id | "$unknown_thread" | 404 thread.not_found"#,
            r#"/params/thread_id | "$foreign" | 404 thread.not_found"#,
        ];
        for line in of_thread.iter().filter(|_| !params["thread_id"].is_null()) {
            lines.push(format!("{kind} | {line}"));
        }
    }
    lines
}

/// A new thread's id and its item ids.
async fn start_thread(t: &TestService, workflow: &Workflow, text: &str) -> (String, Vec<String>) {
    let answer = within("the turn ends", t.chat(&chat::create(workflow, text))).await;
    let events = events(&answer.text());
    let of = |kind: &str, path: &str| -> Vec<String> {
        let matching = events.iter().filter(|event| event["type"] == kind);
        matching.filter_map(|event| event.pointer(path)?.as_str().map(str::to_owned)).collect()
    };
    (of("thread.created", "/thread/id").remove(0), of("thread.item.done", "/item/id"))
}

async fn ids(t: &TestService, workflow: &Workflow) -> BTreeMap<&'static str, String> {
    let other = t.workflow().graph(graph()).published().create().await;
    let (first, items) = start_thread(t, workflow, "hello").await;
    let (question_thread, of_asked) = start_thread(t, workflow, "ask").await;
    let (calling, _) = start_thread(t, workflow, "where").await;
    let (foreign, of_foreign) = start_thread(t, &other, "hello").await;
    BTreeMap::from([
        ("$thread", first),
        ("$message", items[0].clone()),
        ("$reply", items[1].clone()),
        ("$asked", question_thread),
        ("$question", of_asked.last().unwrap().clone()),
        ("$calling", calling),
        ("$foreign", foreign),
        ("$foreign_message", of_foreign[0].clone()),
        ("$unknown_thread", "thr_01890000000000000000000000000000".to_owned()),
        ("$unknown_item", "msg_01a214736250000346f8b0bc4a52bbdd4f593b64f8c4a2cc".to_owned()),
    ])
}

fn fill_ids(value: &mut Value, ids: &BTreeMap<&str, String>) {
    match value {
        Value::String(text) => {
            if let Some(id) = ids.get(text.as_str()) {
                text.clone_from(id);
            } else if let Some(count) = text.strip_prefix('$').and_then(|count| count.parse().ok()) {
                *text = "x".repeat(count);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| fill_ids(entry, ids)),
        Value::Object(members) => members.values_mut().for_each(|member| fill_ids(member, ids)),
        _ => {}
    }
}

/// The request for a line.
fn request(workflow: &Workflow, [kind, pointer, value]: [&str; 3]) -> Value {
    let params = well_formed().into_iter().find(|(of, _)| *of == kind).map(|(_, params)| params);
    let mut body = chat::ask(workflow, kind, params.expect(kind));
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).and_then(Value::as_object_mut).expect(pointer);
    match value {
        "-" => parent.remove(name),
        value => parent.insert(name.to_owned(), serde_json::from_str(value).expect(value)),
    };
    body
}

fn outcome(answer: &Answer) -> String {
    let problems = answer.problems();
    let parts = std::iter::once(answer.refusal()).chain((!problems.is_empty()).then(|| problems.join(" ")));
    parts.collect::<Vec<_>>().join(" | ")
}

async fn row_counts(t: &TestService) -> String {
    let mut digests = Vec::new();
    for table in STORED {
        let rows =
            format!("SELECT md5(coalesce(string_agg(x::text, ',' ORDER BY x::text), '')) FROM {table} x");
        digests.push(format!("{table} {}", t.scalar(&rows).await));
    }
    digests.join("\n")
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_their_code_and_store_nothing() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graph()).published().create().await;
    let ids = ids(&t, &workflow).await;
    let before = row_counts(&t).await;
    let common = common();
    let lines: Vec<&str> = common.iter().map(String::as_str).chain(TABLE.lines()).collect();
    assert!(lines.len() >= 300, "{}", lines.len());
    let mut wrong = Vec::new();
    for line in lines {
        let mut parts = line.splitn(4, " | ");
        let [kind, pointer, value, expected] = std::array::from_fn(|_| parts.next().expect(line));
        let mut body = request(&workflow, [kind, pointer, value]);
        fill_ids(&mut body, &ids);
        let answer = t.chat(&body).await;
        assert!(!answer.message().is_empty(), "{line}");
        let outcome = outcome(&answer);
        if outcome != expected {
            wrong.push(format!("{line}\n  {outcome}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(row_counts(&t).await, before);
    // The requests that the table modifies are accepted unmodified by a chat with these resources.
    let mut rest = well_formed();
    rest.retain(|(kind, _)| !NOT_HERE.contains(kind));
    rest.sort_by_key(|(kind, _)| {
        ["threads.retry_after_item", "threads.delete"].iter().position(|last| last == kind)
    });
    for (kind, params) in rest {
        let mut body = chat::ask(&workflow, kind, params);
        fill_ids(&mut body, &ids);
        let answer = within(kind, t.chat(&body)).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
    }
}
