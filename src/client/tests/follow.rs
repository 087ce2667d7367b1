//! Turns over broken connections, against a server with canned responses.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use client::{ChatOptions, Client, ClientError, TransportFault};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wire::chat::{ChatEvent, ChatOperation, ChatRequest, NoticeLevel, UserMessageInput};
use wire::{TrainingEvent, TrainingFrame};

/// Sends the next text on each connection, then closes it; returns the received requests.
async fn serve(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut socket).await);
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
        }
        requests
    });
    (Client::new(&format!("http://{address}")).unwrap(), requests)
}

async fn read_request(socket: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = socket.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        assert_ne!(read, 0, "the request ended early");
    }
}

fn stream_head(more: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-chat-stream-id: s\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n{more}\r\n"
    )
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

const LAST_CHUNK: &str = "0\r\n\r\n";

fn error(status: &str, more: &str, code: wire::ErrorCode) -> String {
    let body = serde_json::to_string(&wire::ErrorBody::new(code)).unwrap();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n{body}")
}

fn notice(seq: u64) -> String {
    let (level, message) = (NoticeLevel::Info, format!("n{seq}"));
    let event = ChatEvent::Notice { level, message, title: None };
    let mut frame = String::new();
    wire::sse::push_event(&mut frame, "s", seq, &serde_json::to_string(&event).unwrap());
    frame
}

fn request() -> ChatRequest {
    let operation = ChatOperation::CreateThread { input: UserMessageInput::text("hi") };
    ChatRequest { operation, metadata: serde_json::Map::new() }
}

#[tokio::test]
async fn a_turn_survives_a_cut_a_restart_and_a_busy_service() {
    let cookie = "set-cookie: callboard_visitor=v1; Path=/; HttpOnly\r\n";
    let (client, requests) = serve(vec![
        format!("{}{}{}", stream_head(cookie), chunk(&notice(1)), "ff\r\nid: s.2\ndata: {"),
        error("503 Service Unavailable", "retry-after: 0\r\n", wire::ErrorCode::Draining),
        format!("{}{}{}", stream_head(""), chunk(&notice(2)), chunk(": reconnect\n\n")),
        format!("{}{}{LAST_CHUNK}", stream_head(""), chunk(&(notice(2) + &notice(3)))),
    ])
    .await;
    let mut chat = client.follow("w", &request(), &ChatOptions::default()).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = chat.next().await.unwrap() {
        seen.push(event.seq);
    }
    assert_eq!(seen, [1, 2, 3]);
    assert_eq!((chat.resumes(), chat.repeated(), chat.last_event_id()), (2, 1, Some("s.3")));
    assert_eq!(chat.next().await.unwrap(), None);

    let requests = requests.await.unwrap();
    assert!(requests[0].starts_with("post /api/chat http/1.1"));
    assert!(!requests[0].contains("cookie:"));
    for (request, last) in requests[1..].iter().zip(["s.1", "s.1", "s.2"]) {
        assert!(request.starts_with("get /api/chat/streams/s http/1.1"), "{request}");
        assert!(request.contains(&format!("last-event-id: {last}\r\n")), "{request}");
        assert!(request.contains("cookie: callboard_visitor=v1\r\n"), "{request}");
    }
}

fn paused(seq: u64) -> String {
    let frame = TrainingFrame {
        happened: TrainingEvent::TrainingPaused { reason: "client".into() },
        node: "trainer".into(),
        event: "training_paused".into(),
        run_id: "s".into(),
        seq,
        at: "2026-11-26T09:00:00Z".into(),
    };
    let mut text = String::new();
    wire::sse::push_event(&mut text, "s", seq, &serde_json::to_string(&frame).unwrap());
    text
}

#[tokio::test]
async fn a_training_is_followed_over_a_cut_connection() {
    let (client, requests) = serve(vec![
        format!("{}{}{}", stream_head(""), chunk(&paused(1)), "ff\r\nid: s.2\ndata: {"),
        format!("{}{}{LAST_CHUNK}", stream_head(""), chunk(&(paused(1) + &paused(2)))),
    ])
    .await;
    let mut events = client.follow_training("w", "s", None);
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push((event.seq, event.event.happened.kind()));
    }
    assert_eq!(seen, [(1, "training_paused"), (2, "training_paused")]);
    assert_eq!((events.repeated(), events.skipped()), (1, 0));
    let requests = requests.await.unwrap();
    for (request, last) in requests.iter().zip([None, Some("last-event-id: s.1\r\n")]) {
        assert!(request.starts_with("get /api/workflows/w/trainer/runs/s/events http/1.1"), "{request}");
        assert!(last.is_none_or(|last| request.contains(last)), "{request}");
    }
}

#[tokio::test]
async fn a_resume_without_content_ends_the_turn() {
    let (client, _) = serve(vec![
        format!("{}{}", stream_head(""), chunk(&notice(1))),
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned(),
    ])
    .await;
    let turn = client.say("w", "hi").await.unwrap();
    assert_eq!((turn.events.len(), turn.stream_id.as_str(), turn.resumes), (1, "s", 0));
}

#[tokio::test]
async fn a_lost_response_is_requested_again_only_with_a_key() {
    let whole = format!("{}{}{LAST_CHUNK}", stream_head(""), chunk(&notice(1)));
    let (client, requests) = serve(vec![String::new(), String::new(), whole]).await;
    let lost = client.follow("w", &request(), &ChatOptions::default()).await.err().unwrap();
    assert!(matches!(lost, ClientError::Transport { .. }), "{lost}");
    let options = ChatOptions { idempotency_key: Some("k".into()), ..ChatOptions::default() };
    let turn = client.follow("w", &request(), &options).await.unwrap().collect().await.unwrap();
    assert_eq!(turn.events.len(), 1);
    assert!(requests.await.unwrap()[1..].iter().all(|request| request.contains("idempotency-key: k\r\n")));
}

#[tokio::test]
async fn permanent_errors_are_returned_at_once() {
    let (client, _) = serve(vec![
        format!("{}{}", stream_head(""), chunk(&notice(1))),
        error("404 Not Found", "", wire::ErrorCode::StreamNotFound),
    ])
    .await;
    let error = client.say("w", "hi").await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(404), Some("stream.not_found")));
}

#[tokio::test]
async fn a_response_that_is_not_a_stream_is_rejected() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (client, _) = serve(vec![page.to_owned()]).await;
    let error = client.say("w", "hi").await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
}

#[tokio::test]
async fn each_request_has_its_token_unless_a_header_overrides_it() {
    let empty = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
    let (plain, requests) = serve(vec![empty.to_owned(); 3]).await;
    let client = Client::builder(plain.base())
        .service_token("service".to_owned().into())
        .session_token("session".to_owned().into())
        .header("x-extra", "1")
        .build()
        .unwrap();
    assert!(client.workflows().await.unwrap().is_empty());
    assert!(client.stop("s").await.is_err());
    let own = [("Authorization", "Basic x"), ("x-two", "1"), ("x-two", "2")];
    let answer = client.send("POST", "/any?x=1", &own, "{}").await.unwrap();
    assert_eq!(answer.json().unwrap(), serde_json::json!([]));

    let requests = requests.await.unwrap();
    assert!(requests.iter().all(|request| request.contains("x-extra: 1\r\n")));
    assert!(requests[0].contains("authorization: bearer service\r\n"));
    assert!(requests[1].contains("authorization: bearer session\r\n"));
    assert!(requests[2].starts_with("post /any?x=1 "));
    assert!(requests[2].contains("authorization: basic x\r\n") && !requests[2].contains("bearer"));
    assert!(requests[2].contains("x-two: 1\r\n") && requests[2].contains("x-two: 2\r\n"));
    assert!(requests[2].ends_with("\r\n\r\n{}"));
}

#[tokio::test]
async fn a_refused_connection_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::builder(&format!("http://{address}")).resume_limit(Duration::ZERO).build().unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { fault: TransportFault::Connect, .. }), "{error}");
    assert_eq!(error.kind().exit_code(), 4);
    assert!(client.follow_stream("s", None).next().await.is_err());
}
