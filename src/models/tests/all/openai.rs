//! `openai/<model>` against a real endpoint: requests, answers and streamed pieces.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Secret, SystemClock};
use models::{Model as _, ModelErrorKind, ModelRequest, NoPieces, OpenAi, Pieces, Usage};
use serde_json::{Value, json};

use crate::endpoint::{Act, CollectedPieces, DONE, EVENTS, Endpoint, KEY, ends, now, request, says};

/// A complete answer with characters of one to four bytes.
fn whole() -> String {
    let usage =
        r#"data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}"#;
    format!(": hello\n\n{}{}{}{usage}\n\n{DONE}", says("Grüße, "), says("日本 🎉"), ends("stop"))
}

#[tokio::test]
async fn the_request_follows_the_protocol() {
    let endpoint = Endpoint::streaming(&whole()).await;
    let model_request =
        ModelRequest { seed: Some(7), temperature: Some(0.0), max_tokens: Some(5), ..request() };
    endpoint.model().call(&model_request, &NoPieces).await.unwrap();
    let seen = endpoint.requests.lock()[0].clone();
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    for line in [format!("authorization: Bearer {KEY}"), "content-type: application/json".into()]
        .into_iter()
        .chain(["idempotency-key: key-1".into(), format!("host: {}", endpoint.at)])
    {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true, "seed": 7,
               "stream_options": {"include_usage": true}, "temperature": 0.0, "max_tokens": 5})
    );
}

#[tokio::test]
async fn no_authorization_is_sent_without_a_key_and_base_slashes_are_ignored() {
    let endpoint = Endpoint::streaming(&whole()).await;
    let model = endpoint.model_at(&format!("{}/", endpoint.base()), None);
    let model_request = ModelRequest { idempotency_key: None, ..request() };
    model.call(&model_request, &NoPieces).await.unwrap();
    let seen = endpoint.requests.lock()[0].to_lowercase();
    assert!(seen.starts_with("post /v1/chat/completions "), "{seen}");
    assert!(!seen.contains("authorization") && !seen.contains("idempotency"), "{seen}");
}

#[tokio::test]
async fn an_answer_is_the_same_for_every_split_of_its_bytes() {
    let body = whole().into_bytes();
    let check = async |chunks: Vec<Act>| {
        let acts = [vec![Act::Head(200, EVENTS)], chunks, vec![Act::End]].concat();
        let (answer, pieces) = Endpoint::new(acts).await.ask().await;
        let answer = answer.unwrap();
        assert_eq!(answer.text, "Grüße, 日本 🎉");
        assert_eq!(pieces, ["Grüße, ", "日本 🎉"]);
        assert_eq!(answer.usage, Some(Usage { input_tokens: 11, output_tokens: 3, cached_tokens: 0 }));
        assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
        assert_eq!(answer.model.as_deref(), Some("m-1"));
        assert!(answer.tool_calls.is_empty());
    };
    for at in 1..body.len() {
        let (one, two) = body.split_at(at);
        check(vec![Act::Chunk(one.into()), Act::Chunk(two.into())]).await;
    }
    check(body.iter().map(|byte| Act::Chunk(vec![*byte])).collect()).await;
}

#[tokio::test]
async fn line_ends_boms_and_comments_make_no_difference() {
    let plain = whole();
    for body in [plain.replace('\n', "\r\n"), plain.replace('\n', "\r"), format!("\u{feff}{plain}")]
        .into_iter()
        .chain([plain.replace("data: ", "data:"), plain.replace("data: ", "id: 1\nevent: message\ndata: ")])
    {
        let answer = Endpoint::streaming(&body).await.answer().await;
        assert_eq!(answer.text, "Grüße, 日本 🎉", "{body:?}");
    }
}

#[tokio::test]
async fn a_piece_is_delivered_before_the_next_is_sent() {
    let acts = ["one", "two", "three"].iter().flat_map(|text| [Act::Chunk(says(text).into()), Act::Met]);
    let mut acts: Vec<Act> = std::iter::once(Act::Head(200, EVENTS)).chain(acts).collect();
    acts.extend([Act::Chunk(DONE.into()), Act::End]);
    let endpoint = Endpoint::new(acts).await;
    struct Tells(Arc<Endpoint>);
    #[async_trait]
    impl Pieces for Tells {
        async fn piece(&self, _text: &str) {
            self.0.met.notify_one();
        }
    }
    let answer = endpoint.model().call(&request(), &Tells(Arc::clone(&endpoint))).await.unwrap();
    assert_eq!(answer.text, "onetwothree");
}

#[tokio::test]
async fn tool_calls_are_assembled_from_their_parts() {
    let delta =
        |calls: Value| format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": calls}}]}));
    let body = [
        delta(
            json!([{"index": 0, "id": "c0", "type": "function", "function": {"name": "add", "arguments": ""}}]),
        ),
        delta(json!([{"index": 0, "function": {"arguments": "{\"a\":"}}])),
        delta(json!([{"index": 1, "id": "c1", "function": {"name": "now", "arguments": ""}},
                     {"index": 0, "function": {"arguments": " 1}"}}])),
        ends("tool_calls"),
        DONE.into(),
    ];
    let answer = Endpoint::streaming(&body.concat()).await.answer().await;
    let calls: Vec<_> = answer.tool_calls.iter().map(|c| (&*c.id, &*c.name, &c.arguments)).collect();
    assert_eq!(calls, [("c0", "add", &json!({"a": 1})), ("c1", "now", &json!({}))]);
    assert_eq!(answer.finish_reason.as_deref(), Some("tool_calls"));

    // Endpoints that omit the index, send arguments as JSON values, or omit the id.
    let body = [
        delta(json!([{"id": "x", "function": {"name": "add", "arguments": {"a": 2}}}])),
        delta(json!([{"id": "y", "function": {"name": "add", "arguments": "{\"a\""}}])),
        delta(json!([{"function": {"arguments": ":3}"}}])),
        DONE.into(),
    ];
    let answer = Endpoint::streaming(&body.concat()).await.answer().await;
    let calls: Vec<_> = answer.tool_calls.iter().map(|c| (&*c.id, &c.arguments)).collect();
    assert_eq!(calls, [("x", &json!({"a": 2})), ("y", &json!({"a": 3}))]);

    let broken = delta(json!([{"index": 0, "function": {"name": "add", "arguments": "{\"a\""}}])) + DONE;
    let error = Endpoint::streaming(&broken).await.error().await;
    assert_eq!(error.kind, ModelErrorKind::BadAnswer);
    assert!(error.message.contains("the tool 'add'"), "{error}");
}

#[tokio::test]
async fn a_non_streaming_response_is_accepted() {
    let document = json!({"model": "m-2", "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello there"}}]});
    for headers in ["Content-Type: application/json\r\n", EVENTS, ""] {
        let endpoint = Endpoint::answering(200, headers, &format!(" \n{document:#}")).await;
        let (answer, pieces) = endpoint.ask().await;
        let answer = answer.unwrap();
        assert_eq!((answer.text.as_str(), &pieces[..]), ("hello there", &["hello there".to_owned()][..]));
        assert_eq!(answer.usage, Some(Usage { input_tokens: 1, output_tokens: 2, cached_tokens: 0 }));
        assert_eq!(answer.model.as_deref(), Some("m-2"));
    }
    let empty = Endpoint::answering(200, "", "{\"object\": \"list\"}").await.error().await;
    assert_eq!(empty.kind, ModelErrorKind::BadAnswer);
}

#[tokio::test]
async fn omitted_members_are_accepted() {
    // No usage, no model, no index, no `[DONE]`, `null` members and unknown finish reasons.
    let body = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"usage\":null}\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}],\"error\":null}\n\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos\"}]}\n\n";
    let answer = Endpoint::streaming(body).await.answer().await;
    assert_eq!((answer.text.as_str(), answer.usage, answer.model), ("hi", None, None));
    assert_eq!(answer.finish_reason.as_deref(), Some("eos"));
    // A refusal has its own text member.
    let body =
        "data: {\"choices\":[{\"delta\":{\"refusal\":\"I must not\"},\"finish_reason\":\"stop\"}]}\n\n";
    let answer = Endpoint::streaming(body).await.answer().await;
    assert_eq!(
        (answer.text.as_str(), answer.finish_reason.as_deref()),
        ("I must not", Some("content_filter"))
    );
}

#[tokio::test]
async fn a_connection_is_reused() {
    let endpoint = Endpoint::streaming(&whole()).await;
    let model = endpoint.model();
    let began = now();
    for _ in 0..3 {
        model.call(&request(), &CollectedPieces::default()).await.unwrap();
    }
    assert_eq!(endpoint.requests.lock().len(), 3);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_invalid_base_url_is_rejected() {
    let clock = Arc::new(SystemClock::new());
    let client = net::Client::operator(clock.clone()).unwrap();
    for base in ["", "api.example.com/v1", "ftp://api.example.com/v1", "mailto:x@example.com", "http://"] {
        let key = Some(Secret::from(KEY));
        let error = OpenAi::new(client.clone(), base, key, clock.clone());
        assert_eq!(error.err().unwrap().kind, ModelErrorKind::NotConfigured, "{base}");
    }
}
