//! The timeout of a transcription's model.

use std::time::Duration;

use futures_util::join;
use integration_tests::{AnswerExt, TestService, chat, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Accepts a call and reads its form, whose last line ends with two hyphens.
async fn receive_call(provider: &TcpListener) -> TcpStream {
    let reading = async {
        let (mut call, _) = provider.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"--\r\n") {
            assert!(call.read_buf(&mut request).await.unwrap() > 0, "the request is incomplete");
        }
        call
    };
    within("a model call", reading).await
}

#[tokio::test]
async fn a_transcription_without_a_response_within_sixty_seconds_is_504() {
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", provider.local_addr().unwrap());
    let t = TestService::builder().manual_clock().set("SERVICE_MODEL_BASE_URL", base).start().await;
    let settings = json!({"chat": {"transcription": {"model": "openai/whisper-1"}}});
    let workflow = t.workflow().echo().published().settings(settings).create().await;
    let audio = json!({"audio_base64": "YQ==", "mime_type": "audio/webm"});
    let request = chat::ask(&workflow, "input.transcribe", audio);
    let answers_late = async {
        let mut call = receive_call(&provider).await;
        t.advance(Duration::from_secs(59));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n";
        let answer = format!("{head}connection: close\r\n\r\n{{\"text\": \"hi\"}}");
        call.write_all(answer.as_bytes()).await.unwrap();
    };
    let (answer, ()) = join!(t.chat(&request), answers_late);
    assert_eq!((answer.status, answer.value()), (200, json!({"text": "hi"})), "59 seconds");
    let never_answers = async {
        let mut call = receive_call(&provider).await;
        t.advance(Duration::from_secs(60));
        let end = within("the end of the call", call.read(&mut [0_u8])).await;
        assert!(matches!(end, Ok(0) | Err(_)), "the service cancels the call: {end:?}");
    };
    let (answer, ()) = join!(t.chat(&request), never_answers);
    assert_eq!(answer.refusal(), "504 chat.transcription_failed");
    assert_eq!(t.scalar("SELECT sum(calls) FROM chat_usage").await, "2", "a cancelled call is counted, too");
}
