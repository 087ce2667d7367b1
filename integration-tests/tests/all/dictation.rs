//! `input.transcribe`: the text of a recording.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use integration_tests::{AnswerExt, Endpoint, JSON, TcpServer, TestService, Workflow, chat, until};
use serde_json::{Value, json};

async fn set(t: &TestService, workflow: &Workflow, transcription: Value) -> integration_tests::Answer {
    t.configure(workflow, &json!({"chat": {"transcription": transcription}})).await
}

fn recording(workflow: &Workflow, bytes: &[u8], mime_type: &str) -> Value {
    let params = json!({"audio_base64": STANDARD.encode(bytes), "mime_type": mime_type});
    chat::ask(workflow, "input.transcribe", params)
}

#[tokio::test]
async fn a_recording_becomes_text() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let request = recording(&workflow, b"noise practice:Good morning", "audio/webm;codecs=opus");
    assert_eq!(t.chat(&request).await.refusal(), "404 chat.transcription_off");
    let settings = set(&t, &workflow, json!({"model": "practice/transcribe"})).await.value();
    assert_eq!(settings["chat"]["transcription"], json!({"model": "practice/transcribe"}));
    let answer = t.chat(&request).await;
    assert_eq!((answer.status, answer.value()), (200, json!({"text": "Good morning"})));
    let public = t.get(&workflow.path("/public")).await.value();
    assert_eq!(public["chat"]["dictation"], true);
    assert_eq!(public["chat"].get("transcription"), None, "the public record does not name the model");
    for kind in ["audio/mp4", "audio/ogg;codecs=opus", "audio/mpeg", "AUDIO/WAV"] {
        assert_eq!(
            t.chat(&recording(&workflow, b"x", kind)).await.value()["text"],
            "1 bytes of audio",
            "{kind}"
        );
    }
    set(&t, &workflow, json!(null)).await;
    assert_eq!(t.chat(&request).await.refusal(), "404 chat.transcription_off");
}

#[tokio::test]
async fn invalid_recordings_are_rejected() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    set(&t, &workflow, json!({"model": "practice/transcribe"})).await;
    for (audio, kind, refusal, problem) in [
        (json!("YQ=="), json!("video/webm"), "415 attachment.type_not_allowed", ""),
        (json!("YQ=="), json!(""), "415 attachment.type_not_allowed", ""),
        (json!("%"), json!("audio/webm"), "422 chat.invalid_request", "/params/audio_base64 format"),
        (json!(""), json!("audio/webm"), "422 chat.invalid_request", "/params/audio_base64 format"),
        (json!(1), json!("audio/webm"), "422 chat.invalid_request", "/params/audio_base64 type"),
        (json!(null), json!("audio/webm"), "422 chat.invalid_request", "/params/audio_base64 required"),
        (json!("YQ=="), json!(null), "422 chat.invalid_request", "/params/mime_type required"),
    ] {
        let params = json!({"audio_base64": audio, "mime_type": kind});
        let answer = t.chat(&chat::ask(&workflow, "input.transcribe", params)).await;
        assert_eq!(answer.refusal(), refusal, "{audio} {kind}");
        assert_eq!(answer.problems().concat(), problem, "{audio} {kind}");
    }
}

#[tokio::test]
async fn a_recording_may_be_larger_than_other_requests() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    set(&t, &workflow, json!({"model": "practice/transcribe"})).await;
    let large = vec![b'a'; 5 << 20];
    let answer = t.chat(&recording(&workflow, &large, "audio/webm")).await;
    assert_eq!(answer.value()["text"], format!("{} bytes of audio", large.len()));
    let too_large = t.chat(&recording(&workflow, &vec![b'a'; 7 << 20], "audio/webm")).await;
    assert_eq!(too_large.refusal(), "413 request.too_large");
    let message = t.chat(&chat::create(&workflow, &"a".repeat(1 << 20))).await;
    assert_eq!(message.refusal(), "413 request.too_large");
}

#[tokio::test]
async fn a_model_failure_returns_an_error() {
    let endpoint = Endpoint::quick().await;
    let t = endpoint.service().await;
    let workflow = t.workflow().echo().published().create().await;
    set(&t, &workflow, json!({"model": "openai/whisper-1"})).await;
    let answer = t.chat(&recording(&workflow, b"x", "audio/webm")).await;
    assert_eq!(
        answer.refusal(),
        "502 chat.transcription_failed",
        "the endpoint returns an unexpected format"
    );
    set(&t, &workflow, json!({"model": "openai/whisper-1", "credential": "none"})).await;
    let answer = t.chat(&recording(&workflow, b"x", "audio/webm")).await;
    assert_eq!(answer.refusal(), "502 chat.transcription_failed");
    let refused = set(&t, &workflow, json!({"model": "anthropic/claude-opus-4-1"})).await;
    assert_eq!(refused.problems(), ["/chat/transcription/model unknown"]);
}

#[tokio::test]
async fn strangers_leave_transcriptions_for_authenticated_callers() {
    let calls = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&calls);
    let mut model = TcpServer::start(move |stream| {
        accepted.fetch_add(1, Ordering::SeqCst);
        async move {
            let _open = stream;
            pending::<()>().await;
        }
    })
    .await;
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("CHAT_TOKEN_SIGNING_KEY", "0123456789abcdef0123456789abcdef")
        .set("SERVICE_MODEL_BASE_URL", format!("http://{}/v1", model.address))
        .start()
        .await;
    let settings = json!({"chat": {"transcription": {"model": "openai/whisper-1"}}});
    let workflow = t.workflow().echo().published().settings(settings).create().await;
    let session = t.root().post("/api/chat/session", &json!({"workflow_id": workflow.id})).await.value();
    let bearer = format!("Bearer {}", session["client_secret"].as_str().unwrap());
    let request = recording(&workflow, b"x", "audio/webm");
    let strangers = join_all((0..4).map(|_| t.chat(&request)));
    let checks = async {
        until("four calls of strangers", async || calls.load(Ordering::SeqCst) == 4).await;
        assert_eq!(t.chat(&request).await.refusal(), "429 chat.rate_limited.uploads");
        let headers = [JSON, ("authorization", bearer.as_str())];
        tokio::select! {
            answer = t.send("POST", "/api/chat", &headers, request.to_string()) => panic!("{}", answer.text()),
            () = until("the call of a session", async || calls.load(Ordering::SeqCst) == 5) => {}
        }
    };
    tokio::select! {
        answers = strangers => panic!("{} answers", answers.len()),
        () = checks => {}
    }
    // Ends the calls, which would delay the end of the service.
    model.go_down().await;
}
