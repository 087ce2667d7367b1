//! `gemini/<model>` against a real endpoint, and embeddings in both dialects that support them.

use models::{Dialect, EmbedRequest, Message, ModelErrorKind, ModelRequest, NoPieces, Role, Tool, Usage};
use serde_json::{Value, json};

use crate::dialects::{event, whole};
use crate::endpoint::{Endpoint, request};

const DIALECT: Dialect = Dialect::Gemini;

fn parts(parts: Value, reason: Option<&str>) -> String {
    event(&json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]}))
}

#[tokio::test]
async fn the_request_follows_the_protocol() {
    let endpoint = Endpoint::streaming(&whole(DIALECT)).await;
    let sent = ModelRequest {
        model: "gemini-2.5-flash".into(),
        messages: vec![Message::text(Role::System, "Be short."), Message::text(Role::User, "hi")],
        temperature: Some(0.0),
        max_tokens: Some(5),
        seed: Some(7),
        response_schema: Some(json!({"type": "object"})),
        ..request()
    };
    endpoint.model_in(DIALECT).call(&sent, &NoPieces).await.unwrap();
    let seen = endpoint.requests.lock()[0].clone();
    assert!(
        seen.starts_with("POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n"),
        "{seen}"
    );
    assert_eq!(
        endpoint.request_body(),
        json!({"systemInstruction": {"parts": [{"text": "Be short."}]},
               "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
               "generationConfig": {"temperature": 0.0, "maxOutputTokens": 5, "seed": 7,
                                    "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}})
    );
}

#[tokio::test]
async fn calls_and_thoughts_are_distinguished_and_signatures_carried() {
    let body = [
        parts(json!([{"text": "Hm.", "thought": true}]), None),
        parts(json!([{"text": "Let me "}]), None),
        parts(json!([{"text": "see."}]), None),
        parts(
            json!([{"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "s1"},
                     {"functionCall": {"name": "add", "args": {"a": 2}}},
                     {"functionCall": {"name": "now"}}]),
            None,
        ),
        parts(json!([{"text": ""}]), Some("STOP")),
    ];
    let (answer, pieces) = Endpoint::streaming(&body.concat()).await.ask_in(DIALECT).await;
    let answer = answer.unwrap();
    let calls: Vec<_> =
        answer.tool_calls.iter().map(|call| (&*call.id, &*call.name, &call.arguments)).collect();
    assert_eq!(
        calls,
        [
            ("call_0", "add", &json!({"a": 1})),
            ("call_1", "add", &json!({"a": 2})),
            ("call_2", "now", &json!({}))
        ]
    );
    assert_eq!((answer.text.as_str(), pieces.concat().as_str()), ("Let me see.", "Let me see."));
    assert_eq!(answer.finish_reason.as_deref(), Some("tool_calls"));
    let carried = answer.carry.clone().unwrap();
    assert_eq!(
        (&carried[0], &carried[1]["thoughtSignature"]),
        (&json!({"text": "Let me see."}), &json!("s1"))
    );

    // The next request sends them back unchanged.
    let endpoint = Endpoint::streaming(&whole(DIALECT)).await;
    let tool =
        |id: &str, text: &str| Message { tool_call_id: Some(id.into()), ..Message::text(Role::Tool, text) };
    let message = Message {
        tool_calls: answer.tool_calls,
        carry: answer.carry,
        ..Message::text(Role::Assistant, answer.text)
    };
    let messages =
        vec![Message::text(Role::User, "hi"), message, tool("call_0", "1"), tool("call_2", "{\"at\": 5}")];
    let tools =
        vec![Tool { name: "add".into(), description: "Adds.".into(), parameters: json!({"type": "object"}) }];
    endpoint.model_in(DIALECT).call(&ModelRequest { messages, tools, ..request() }, &NoPieces).await.unwrap();
    let body = endpoint.request_body();
    assert_eq!(body["contents"][1], json!({"role": "model", "parts": carried}));
    assert_eq!(
        body["contents"][2]["parts"],
        json!([{"functionResponse": {"name": "add", "response": {"result": "1"}}},
               {"functionResponse": {"name": "now", "response": {"at": 5}}}])
    );
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"],
        json!({"type": "object"})
    );
}

#[tokio::test]
async fn withheld_answers_have_a_finish_reason() {
    for (reason, expected) in [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("OTHER", "other"),
    ] {
        let answer = Endpoint::streaming(&parts(json!([{"text": "half"}]), Some(reason)))
            .await
            .answer_in(DIALECT)
            .await;
        assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("half", Some(expected)));
    }
    let empty = event(&json!({"candidates": [{"finishReason": "SAFETY", "index": 0}]}));
    assert_eq!(Endpoint::streaming(&empty).await.answer_in(DIALECT).await.text, "");
    let blocked = event(
        &json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}),
    );
    let error = Endpoint::streaming(&blocked).await.error_in(DIALECT).await;
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert!(error.message.ends_with("the prompt was blocked: SAFETY"), "{error}");
    let malformed = Endpoint::streaming(&parts(json!([]), Some("MALFORMED_FUNCTION_CALL"))).await;
    assert_eq!(malformed.error_in(DIALECT).await.kind, ModelErrorKind::Unavailable);
}

#[tokio::test]
async fn a_non_streaming_response_is_accepted() {
    let document =
        json!({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]});
    let endpoint =
        Endpoint::answering(200, "Content-Type: application/json\r\n", &format!("{document:#}")).await;
    assert_eq!(endpoint.answer_in(DIALECT).await.text, "hello");
}

fn texts() -> EmbedRequest {
    EmbedRequest {
        model: "e".into(),
        texts: vec!["a".into(), "b".into()],
        dimensions: Some(2),
        idempotency_key: Some("k".into()),
    }
}

#[tokio::test]
async fn embeddings_are_in_the_order_of_their_texts() {
    let openai = json!({"object": "list", "model": "e-1", "usage": {"prompt_tokens": 4, "total_tokens": 4},
        "data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.5]}]});
    let gemini = json!({"embeddings": [{"values": [1.0, 0.5]}, {"values": [0.0, 1.0]}]});
    for (dialect, document, path) in [
        (Dialect::OpenAi, openai, "/embeddings"),
        (Dialect::Gemini, gemini, "/v1beta/models/e:batchEmbedContents"),
    ] {
        let endpoint = Endpoint::answering(200, "", &document.to_string()).await;
        let found = endpoint.model_in(dialect).embed(&texts()).await.unwrap();
        assert_eq!(found.vectors, [[1.0, 0.5], [0.0, 1.0]]);
        let usage = (dialect == Dialect::OpenAi).then(|| Usage { input_tokens: 4, ..Usage::default() });
        assert_eq!(found.usage, usage);
        let seen = endpoint.requests.lock()[0].clone();
        assert!(
            seen.starts_with(&format!("POST {path} HTTP/1.1\r\n")) && seen.contains("idempotency-key: k"),
            "{seen}"
        );
        let body = endpoint.request_body();
        match dialect {
            Dialect::OpenAi => assert_eq!(
                body,
                json!({"model": "e", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2})
            ),
            _ => assert_eq!(
                body["requests"][1],
                json!({"model": "models/e", "content": {"parts": [{"text": "b"}]}, "outputDimensionality": 2})
            ),
        }
    }
}

#[tokio::test]
async fn malformed_embeddings_are_bad_answers() {
    for dialect in [Dialect::OpenAi, Dialect::Gemini] {
        for body in ["", "[]", "{}", r#"{"data": [{"embedding": [1]}], "embeddings": [{"values": [1]}]}"#] {
            let endpoint = Endpoint::answering(200, "", body).await;
            let error = endpoint.model_in(dialect).embed(&texts()).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{body}");
        }
        let endpoint = Endpoint::answering(429, "", "").await;
        let error = endpoint.model_in(dialect).embed(&texts()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::RateLimited);
    }
}
