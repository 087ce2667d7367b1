//! Transcription in the dialects that support it.

use models::{Dialect, ModelErrorKind, TranscribeRequest, Transcript, Usage};
use serde_json::json;

use crate::endpoint::{Endpoint, KEY};

const JSON: &str = "Content-Type: application/json\r\n";

fn recording() -> TranscribeRequest {
    TranscribeRequest {
        model: "m".into(),
        audio: b"sound\r\n--\r\n".as_slice().into(),
        mime_type: "audio/webm".into(),
        language: Some("de".into()),
        prompt: Some("Callboard".into()),
    }
}

#[tokio::test]
async fn openai_receives_a_form() {
    let answer = json!({"text": " Guten Tag. ", "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 5,
                        "input_token_details": {"text_tokens": 0, "audio_tokens": 14}, "total_tokens": 19}});
    let endpoint = Endpoint::answering(200, JSON, &answer.to_string()).await;
    let model = endpoint.model_in(Dialect::OpenAi);
    let usage = Some(Usage { input_tokens: 14, output_tokens: 5, cached_tokens: 0 });
    let transcript = model.transcribe(&recording()).await;
    assert_eq!(transcript, Ok(Transcript { text: "Guten Tag.".into(), usage }));
    let seen = endpoint.requests.lock()[0].clone();
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /audio/transcriptions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}")), "{head}");
    let (_, boundary) = head.split_once("content-type: multipart/form-data; boundary=").unwrap();
    let boundary = boundary.lines().next().unwrap();
    let field = |name: &str, value: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let expected = [
        field("model", "m"),
        field("response_format", "json"),
        field("language", "de"),
        field("prompt", "Callboard"),
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.webm\"\r\n"),
        format!("Content-Type: audio/webm\r\n\r\nsound\r\n--\r\n\r\n--{boundary}--\r\n"),
    ];
    assert_eq!(body, expected.concat());
}

#[tokio::test]
async fn openai_accepts_known_types_and_omits_blank_members() {
    // An endpoint that reports seconds has no token counts.
    let answer = json!({"text": "", "usage": {"type": "duration", "seconds": 3}}).to_string();
    let endpoint = Endpoint::answering(200, JSON, &answer).await;
    let model = endpoint.model_in(Dialect::OpenAi);
    for (mime_type, name) in [
        ("audio/mp4", "audio.mp4"),
        ("audio/ogg", "audio.ogg"),
        ("audio/mpeg", "audio.mp3"),
        ("audio/wav", "audio.wav"),
    ] {
        let sent = TranscribeRequest {
            mime_type: mime_type.into(),
            language: None,
            prompt: Some(" ".into()),
            ..recording()
        };
        assert_eq!(model.transcribe(&sent).await, Ok(Transcript::default()));
        let seen = endpoint.requests.lock().pop().unwrap();
        assert!(seen.contains(&format!("filename=\"{name}\"\r\nContent-Type: {mime_type}\r\n")), "{seen}");
        assert!(!seen.contains("language") && !seen.contains("prompt"), "{seen}");
    }
    let other = TranscribeRequest { mime_type: "text/plain\r\nX: y".into(), ..recording() };
    let error = model.transcribe(&other).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert!(error.message.contains("audio/webm"), "{error}");
    assert!(endpoint.requests.lock().is_empty());
}

#[tokio::test]
async fn gemini_receives_the_audio_and_an_instruction() {
    let answer = |reason: &str| {
        json!({"candidates": [{"content": {"role": "model", "parts": [
                   {"text": "Hm.", "thought": true}, {"text": "Guten Tag.\n"}]}, "finishReason": reason, "index": 0}],
               "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 4, "totalTokenCount": 44}})
    };
    let endpoint = Endpoint::answering(200, JSON, &format!("{:#}", answer("STOP"))).await;
    let sent = TranscribeRequest { mime_type: "audio/mpeg".into(), ..recording() };
    let transcript = endpoint.model_in(Dialect::Gemini).transcribe(&sent).await;
    let usage = Some(Usage { input_tokens: 40, output_tokens: 4, cached_tokens: 0 });
    assert_eq!(transcript, Ok(Transcript { text: "Guten Tag.".into(), usage }));
    let seen = endpoint.requests.lock()[0].clone();
    assert!(seen.starts_with("POST /v1beta/models/m:generateContent HTTP/1.1\r\n"), "{seen}");
    let parts = &endpoint.request_body()["contents"][0]["parts"];
    assert_eq!(parts[0], json!({"inlineData": {"mimeType": "audio/mp3", "data": "c291bmQNCi0tDQo="}}));
    let instruction = parts[1]["text"].as_str().unwrap();
    assert!(instruction.starts_with("Transcribe this recording verbatim"), "{instruction}");
    assert!(instruction.contains("language is: de") && instruction.ends_with(": Callboard"), "{instruction}");

    let endpoint = Endpoint::answering(200, JSON, &answer("MAX_TOKENS").to_string()).await;
    let error = endpoint.model_in(Dialect::Gemini).transcribe(&recording()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::BadAnswer);
    assert!(error.message.contains("incomplete (length)"), "{error}");
}

#[tokio::test]
async fn anthropic_does_not_transcribe_and_suggests_other_providers() {
    let endpoint = Endpoint::answering(200, JSON, "{}").await;
    let error = endpoint.model_in(Dialect::Anthropic).transcribe(&recording()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert!(error.message.contains("practice/transcribe"), "{error}");
    assert!(endpoint.requests.lock().is_empty());
}

#[tokio::test]
async fn refusals_and_malformed_responses_are_distinguished() {
    for (status, body, kind) in [
        (429, "{}", ModelErrorKind::RateLimited),
        (400, "{\"error\": {\"message\": \"no\"}}", ModelErrorKind::Rejected),
        (503, "", ModelErrorKind::Overloaded),
        (200, "{\"words\": 1}", ModelErrorKind::BadAnswer),
        (200, "hello", ModelErrorKind::BadAnswer),
    ] {
        for dialect in [Dialect::OpenAi, Dialect::Gemini] {
            let endpoint = Endpoint::answering(status, JSON, body).await;
            let error = endpoint.model_in(dialect).transcribe(&recording()).await.unwrap_err();
            assert_eq!(error.kind, kind, "{dialect:?} {status} {body}");
        }
    }
}
