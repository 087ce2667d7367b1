//! Behaviour common to the Anthropic and Google dialects: truncated streams, refusals, invalid answers, keys.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Secret, SystemClock};
use models::{Dialect, EndpointSettings, ModelErrorKind, ModelRequest, NoPieces, Tool, Usage};
use net::{Client, Egress, Guard, SystemResolver};
use serde_json::{Value, json};

use crate::endpoint::{Act, EVENTS, Endpoint, KEY, request};

const BOTH: [Dialect; 2] = [Dialect::Anthropic, Dialect::Gemini];

pub(crate) fn event(data: &Value) -> String {
    let kind = data["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
    format!("{kind}data: {data}\n\n")
}

/// "Grüße, 日本 🎉" in the form shown in each protocol's documentation.
pub(crate) fn whole(dialect: Dialect) -> String {
    let events = match dialect {
        Dialect::Anthropic => vec![
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
                   "model": "m-1", "content": [], "stop_reason": null, "stop_sequence": null,
                   "usage": {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße, "}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "日本 🎉"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                   "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ],
        _ => vec![
            json!({"candidates": [{"content": {"parts": [{"text": "Grüße, "}], "role": "model"}, "index": 0}],
                   "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11}, "modelVersion": "m-1", "responseId": "r"}),
            json!({"candidates": [{"content": {"parts": [{"text": "日本 🎉"}], "role": "model"}, "finishReason": "STOP", "index": 0}],
                   "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 2, "thoughtsTokenCount": 1,
                                     "cachedContentTokenCount": 4, "totalTokenCount": 14}, "modelVersion": "m-1"}),
        ],
    };
    events.iter().map(event).collect()
}

#[tokio::test]
async fn schemas_keep_the_order_of_their_members() {
    let properties = r#""properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}}"#;
    let schema: Value = serde_json::from_str(&format!(
        r#"{{"type":"object","required":["reasoning","answer"],{properties}}}"#
    ))
    .unwrap();
    let tool = Tool { name: "add".into(), description: "Adds.".into(), parameters: schema.clone() };
    for (name, dialect) in Dialect::ALL {
        for sent in [
            ModelRequest { response_schema: Some(schema.clone()), ..request() },
            ModelRequest { tools: vec![tool.clone()], ..request() },
        ] {
            let endpoint = Endpoint::streaming(&whole(dialect)).await;
            // Only the request matters.
            let _ = endpoint.model_in(dialect).call(&sent, &NoPieces).await;
            let seen = endpoint.requests.lock()[0].clone();
            assert!(seen.contains(properties), "{name}: {seen}");
        }
    }
}

#[tokio::test]
async fn tool_arguments_keep_their_numbers_or_the_answer_is_bad() {
    let body = |dialect: Dialect, number: &str| {
        let arguments = format!(r#"{{"id": {number}}}"#);
        match dialect {
            Dialect::Anthropic => format!(
                r#"{{"type": "message", "model": "m", "stop_reason": "tool_use",
                    "content": [{{"type": "tool_use", "id": "t", "name": "add", "input": {arguments}}}]}}"#
            ),
            Dialect::Gemini => format!(
                r#"{{"candidates": [{{"content": {{"parts": [{{"functionCall": {{"name": "add", "args": {arguments}}}}}]}},
                    "finishReason": "STOP"}}]}}"#
            ),
            Dialect::OpenAi => format!(
                r#"{{"choices": [{{"message": {{"tool_calls": [{{"id": "t", "function": {{"name": "add", "arguments": {arguments}}}}}]}},
                    "finish_reason": "tool_calls"}}]}}"#
            ),
        }
    };
    for (name, dialect) in Dialect::ALL {
        let endpoint = async |number: &str| {
            Endpoint::answering(200, "Content-Type: application/json\r\n", &body(dialect, number)).await
        };
        let kept = endpoint("9007199254740993").await.ask_in(dialect).await.0.unwrap();
        assert_eq!(kept.tool_calls[0].arguments, json!({"id": 9_007_199_254_740_993_u64}), "{name}");
        let error = endpoint("123456789012345678901").await.error_in(dialect).await;
        assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{name}");
        let expected = "the arguments of the tool 'add' in the answer cannot be read: the number 123456789012345678901 would be rounded";
        assert!(error.message.contains(expected), "{name}: {error}");
    }
}

#[tokio::test]
async fn an_answer_is_the_same_for_every_split_of_its_bytes() {
    for dialect in BOTH {
        let body = whole(dialect).into_bytes();
        let check = async |chunks: Vec<Act>| {
            let acts = [vec![Act::Head(200, EVENTS)], chunks, vec![Act::End]].concat();
            let (answer, pieces) = Endpoint::new(acts).await.ask_in(dialect).await;
            let answer = answer.unwrap();
            assert_eq!(
                (answer.text.as_str(), &pieces[..]),
                ("Grüße, 日本 🎉", &["Grüße, ".to_owned(), "日本 🎉".to_owned()][..])
            );
            assert_eq!(answer.usage, Some(Usage { input_tokens: 11, output_tokens: 3, cached_tokens: 4 }));
            assert_eq!(
                (answer.finish_reason.as_deref(), answer.model.as_deref()),
                (Some("stop"), Some("m-1"))
            );
            assert!(answer.tool_calls.is_empty() && answer.carry.is_none());
        };
        for at in 1..body.len() {
            let (one, two) = body.split_at(at);
            check(vec![Act::Chunk(one.into()), Act::Chunk(two.into())]).await;
        }
        check(body.iter().map(|byte| Act::Chunk(vec![*byte])).collect()).await;
    }
}

#[tokio::test]
async fn a_truncated_answer_is_never_accepted() {
    for dialect in BOTH {
        let body = whole(dialect);
        // From here on, the finish reason has been sent.
        let complete = body.find(if dialect == Dialect::Gemini { "STOP" } else { "end_turn" }).unwrap();
        for at in (0..body.len()).filter(|at| body.is_char_boundary(*at)).step_by(7) {
            for end in [Act::Cut, Act::End] {
                let begun = vec![Act::Head(200, EVENTS), Act::Chunk(body[..at].into()), end];
                let (answer, _) = Endpoint::new(begun).await.ask_in(dialect).await;
                match answer {
                    Ok(answer) => assert!(at > complete && answer.text == "Grüße, 日本 🎉", "{at}"),
                    Err(error) => assert!(
                        matches!(error.kind, ModelErrorKind::Unavailable | ModelErrorKind::BadAnswer),
                        "{at}: {error}"
                    ),
                }
            }
        }
    }
}

#[tokio::test]
async fn refusals_have_their_kinds() {
    use ModelErrorKind::{Overloaded, RateLimited, Rejected, Unavailable};
    for dialect in BOTH {
        for (status, kind) in
            [(400, Rejected), (401, Rejected), (404, Rejected), (413, Rejected), (429, RateLimited)]
                .into_iter()
                .chain([(500, Unavailable), (503, Overloaded), (529, Overloaded), (302, Rejected)])
        {
            let body = json!({"type": "error", "error": {"type": "x", "code": status, "message": format!("no, {KEY}")}});
            let endpoint = Endpoint::answering(status, "Retry-After: 7\r\n", &body.to_string()).await;
            let error = endpoint.error_in(dialect).await;
            assert_eq!(error.kind, kind, "{status}");
            assert!(error.message.ends_with(&format!("answered {status}: no, ***")), "{error}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        }
    }
}

#[tokio::test]
async fn a_malformed_response_is_a_bad_answer() {
    for dialect in BOTH {
        for body in [
            "<html>hello</html>",
            "",
            "hello",
            "data: {\n\n",
            "data: [1]\n\n",
            "data: {}\n\n",
            "{\"candidates\": [",
        ] {
            let endpoint = Endpoint::streaming(body).await;
            let kind = endpoint.error_in(dialect).await.kind;
            // An empty document does not show whether more was to follow.
            let broken = body == "data: {}\n\n" && kind == ModelErrorKind::Unavailable;
            assert!(kind == ModelErrorKind::BadAnswer || broken, "{dialect:?} {body}");
        }
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_the_call() {
    for (kind, code, expected) in [
        ("overloaded_error", 503, ModelErrorKind::Overloaded),
        ("api_error", 500, ModelErrorKind::Unavailable),
        ("rate_limit_error", 429, ModelErrorKind::RateLimited),
        ("invalid_request_error", 400, ModelErrorKind::Rejected),
        ("authentication_error", 401, ModelErrorKind::Rejected),
    ] {
        for dialect in BOTH {
            let error = match dialect {
                Dialect::Anthropic => json!({"type": "error", "error": {"type": kind, "message": "no"}}),
                _ => json!({"error": {"code": code, "status": "X", "message": "no"}}),
            };
            let found = Endpoint::streaming(&event(&error)).await.error_in(dialect).await;
            assert_eq!(found.kind, expected, "{error}");
            assert!(found.message.ends_with(": no"), "{found}");
        }
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    for dialect in BOTH {
        let begun = whole(dialect).split_inclusive("\n\n").next().unwrap().to_owned();
        let endpoint = Endpoint::new(vec![Act::Head(200, EVENTS), Act::Chunk(begun.into()), Act::Hold]).await;
        endpoint.drop_call(endpoint.model_in(dialect)).await;
    }
}

#[tokio::test]
async fn the_key_is_sent_only_in_its_header() {
    for (dialect, header) in [(Dialect::Anthropic, "x-api-key"), (Dialect::Gemini, "x-goog-api-key")] {
        let endpoint = Endpoint::streaming(&whole(dialect)).await;
        endpoint.answer_in(dialect).await;
        let seen = endpoint.requests.lock()[0].clone();
        assert!(seen.contains(&format!("\r\n{header}: {KEY}\r\n")), "{seen}");
        assert_eq!(seen.matches(KEY).count(), 1);
        assert!(!seen.contains("authorization"));
    }
}

#[tokio::test]
async fn endpoints_of_users_are_guarded() {
    for (_, dialect) in Dialect::ALL {
        let endpoint = Endpoint::streaming(&whole(dialect)).await;
        let clock = Arc::new(SystemClock::new());
        let guard = Guard::new(Egress::default(), Arc::new(SystemResolver));
        let client = Client::guarded(Arc::new(guard), clock.clone()).unwrap();
        let base_url = Some(format!("http://{}/v1", endpoint.at));
        let settings =
            EndpointSettings { base_url, api_key: Some(Secret::from(KEY)), ..EndpointSettings::default() };
        let model = dialect.at(settings, client, clock).unwrap();
        let error = model.call(&request(), &NoPieces).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::EgressRefused);
        assert!(endpoint.requests.lock().is_empty());
    }
}

#[tokio::test]
async fn a_model_name_cannot_change_the_path() {
    let endpoint = Endpoint::answering(404, "", "").await;
    for (name, path) in [
        ("../../evil?x=1#y", "/v1beta/evil%3Fx=1%23y:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"),
    ] {
        let model_request = ModelRequest { model: name.into(), ..request() };
        let _ = endpoint.model_in(Dialect::Gemini).call(&model_request, &NoPieces).await.unwrap_err();
        let seen = endpoint.requests.lock().pop().unwrap();
        assert!(seen.starts_with(&format!("POST {path} ")), "{seen}");
    }
}
