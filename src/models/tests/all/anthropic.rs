//! `anthropic/<model>` against a real endpoint: requests, and the dialect's special answers.

use models::{Dialect, Message, ModelAnswer, ModelErrorKind, ModelRequest, NoPieces, Role, Tool};
use serde_json::{Value, json};

use crate::dialects::{event, whole};
use crate::endpoint::{CollectedPieces, Endpoint, request};

const DIALECT: Dialect = Dialect::Anthropic;

/// A stream with these blocks, each given as its start and its deltas.
fn blocks(blocks: &[(Value, &[Value])], reason: &str) -> String {
    let mut events =
        vec![json!({"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 1}}})];
    for (index, (opened, deltas)) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": opened}));
        events.extend(
            deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}),
    );
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}

fn part(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn tool(name: &str) -> Tool {
    Tool { name: name.into(), description: "Adds.".into(), parameters: json!({"type": "object"}) }
}

async fn call_endpoint(body: &str, request: &ModelRequest) -> (ModelAnswer, Vec<String>, Value) {
    let endpoint = Endpoint::streaming(body).await;
    let pieces = CollectedPieces::default();
    let answer = endpoint.model_in(DIALECT).call(request, &pieces).await.unwrap();
    (answer, pieces.0.into_inner(), endpoint.request_body())
}

#[tokio::test]
async fn the_request_follows_the_protocol() {
    let endpoint = Endpoint::streaming(&whole(DIALECT)).await;
    let messages = vec![Message::text(Role::System, "Be short."), Message::text(Role::User, "hi")];
    let sent = ModelRequest {
        messages,
        temperature: Some(0.0),
        max_tokens: Some(5),
        seed: Some(7),
        tools: vec![tool("add")],
        ..request()
    };
    endpoint.model_in(DIALECT).call(&sent, &NoPieces).await.unwrap();
    let seen = endpoint.requests.lock()[0].clone();
    assert!(seen.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nanthropic-version: 2023-06-01\r\n"), "{seen}");
    assert_eq!(
        endpoint.request_body(),
        json!({"model": "m", "max_tokens": 5, "stream": true, "temperature": 0.0, "system": "Be short.",
               "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
               "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}]})
    );
}

#[tokio::test]
async fn tool_calls_are_assembled_from_their_parts() {
    let text = json!({"type": "text_delta", "text": "Let me see."});
    let body = blocks(
        &[
            (json!({"type": "text", "text": ""}), &[text]),
            (tool_use("t0", "add"), &[part(""), part("{\"a\""), part(": 1, \"b\": \"é"), part("\"}")]),
            (tool_use("t1", "now"), &[]),
        ],
        "tool_use",
    );
    let (answer, pieces, _) = call_endpoint(&body, &request()).await;
    let calls: Vec<_> =
        answer.tool_calls.iter().map(|call| (&*call.id, &*call.name, &call.arguments)).collect();
    assert_eq!(calls, [("t0", "add", &json!({"a": 1, "b": "é"})), ("t1", "now", &json!({}))]);
    assert_eq!((answer.finish_reason.as_deref(), answer.text.as_str()), (Some("tool_calls"), "Let me see."));
    assert_eq!(pieces, ["Let me see."]);

    let broken = blocks(&[(tool_use("t0", "add"), &[part("{\"a\"")])], "tool_use");
    let error = Endpoint::streaming(&broken).await.error_in(DIALECT).await;
    assert_eq!(error.kind, ModelErrorKind::BadAnswer);
    assert!(error.message.contains("the tool 'add'"), "{error}");
}

#[tokio::test]
async fn a_schema_answer_in_a_tool_call_becomes_the_text() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let sent = ModelRequest { response_schema: Some(schema), ..request() };
    let body = blocks(&[(tool_use("t0", "answer"), &[part("{\"n\":"), part(" 3}")])], "tool_use");
    let (answer, pieces, body_sent) = call_endpoint(&body, &sent).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("{\"n\": 3}", Some("stop")));
    assert!(answer.tool_calls.is_empty() && pieces.concat() == answer.text);
    assert_eq!(body_sent["tool_choice"], json!({"type": "tool", "name": "answer"}));

    // With other tools, the answer tool is optional, and calls to other tools precede the answer.
    let sent = ModelRequest { tools: vec![tool("add")], ..sent };
    let body = blocks(&[(tool_use("t0", "add"), &[part("{}")])], "tool_use");
    let (answer, _, body_sent) = call_endpoint(&body, &sent).await;
    assert_eq!((answer.tool_calls.len(), answer.finish_reason.as_deref()), (1, Some("tool_calls")));
    assert_eq!(body_sent["tool_choice"], json!({"type": "any"}));

    // If the model writes text instead, the text is returned; the caller detects that it is not JSON.
    let delta = json!({"type": "text_delta", "text": "Three."});
    let (answer, ..) =
        call_endpoint(&blocks(&[(json!({"type": "text"}), &[delta])], "end_turn"), &sent).await;
    assert_eq!(answer.text, "Three.");
}

#[tokio::test]
async fn thoughts_are_carried_but_not_shown() {
    let thinking = [
        json!({"type": "thinking_delta", "thinking": "Hm"}),
        json!({"type": "signature_delta", "signature": "s1"}),
    ];
    let body = blocks(
        &[
            (json!({"type": "thinking", "thinking": "", "signature": ""}), &thinking),
            (tool_use("t0", "add"), &[part("{\"a\": 1}")]),
        ],
        "tool_use",
    );
    let (answer, pieces, _) = call_endpoint(&body, &request()).await;
    assert!(pieces.is_empty() && answer.text.is_empty());
    assert_eq!(
        answer.carry,
        Some(json!([{"type": "thinking", "thinking": "Hm", "signature": "s1"},
                    {"type": "tool_use", "id": "t0", "name": "add", "input": {"a": 1}}]))
    );
}

#[tokio::test]
async fn a_non_streaming_response_is_accepted() {
    let document = json!({"type": "message", "model": "m-2", "stop_reason": "max_tokens",
        "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [{"type": "text", "text": "hello"}, {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 2}}]});
    let endpoint =
        Endpoint::answering(200, "Content-Type: application/json\r\n", &document.to_string()).await;
    let answer = endpoint.answer_in(DIALECT).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("hello", Some("length")));
    assert_eq!(answer.tool_calls[0].arguments, json!({"a": 2}));
}

#[tokio::test]
async fn unknown_events_are_skipped_and_finish_reasons_mapped() {
    for (reason, expected) in [
        ("refusal", "content_filter"),
        ("stop_sequence", "stop"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
    ] {
        let new = json!({"type": "something_new", "text": "?"});
        let delta = json!({"type": "new_delta", "x": 1});
        let body = event(&json!({"type": "new_event", "a": 1})) + &blocks(&[(new, &[delta])], reason);
        let (answer, ..) = call_endpoint(&body, &request()).await;
        assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("", Some(expected)));
    }
    let stray = event(
        &json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}),
    );
    assert_eq!(Endpoint::streaming(&stray).await.error_in(DIALECT).await.kind, ModelErrorKind::BadAnswer);
}

#[tokio::test]
async fn embeddings_are_not_supported() {
    let endpoint = Endpoint::streaming("").await;
    let error = endpoint.model_in(DIALECT).embed(&models::EmbedRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Rejected);
}
