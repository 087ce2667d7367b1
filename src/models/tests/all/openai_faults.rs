//! `openai/<model>` against an endpoint that refuses, breaks, sends invalid data or does not answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Secret, SystemClock};
use models::{Model as _, ModelErrorKind, NoPieces, OpenAi, Pieces};
use net::{Client, Egress, Guard, SystemResolver};

use crate::endpoint::{Act, DONE, EVENTS, Endpoint, KEY, ends, now, request, says, wait};

#[tokio::test]
async fn refusals_have_their_kinds() {
    use ModelErrorKind::{Overloaded, RateLimited, Rejected, Unavailable};
    for (status, kind) in
        [(400, Rejected), (401, Rejected), (403, Rejected), (404, Rejected), (422, Rejected)]
            .into_iter()
            .chain([(408, Unavailable), (425, Unavailable), (429, RateLimited), (500, Unavailable)])
            .chain([(502, Unavailable), (503, Overloaded), (529, Overloaded), (302, Rejected)])
    {
        let body = format!(r#"{{"error": {{"message": "no, {KEY} is\nnot good"}}}}"#);
        let error =
            Endpoint::answering(status, "Retry-After: 7\r\n", &body.replace('\n', "\\n")).await.error().await;
        assert_eq!(error.kind, kind, "{status}");
        assert!(error.message.ends_with(&format!("answered {status}: no, *** is not good")), "{error}");
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(kind.is_retryable(), kind != Rejected);
    }
    let error = Endpoint::answering(500, "", "").await.error().await;
    assert!(error.message.ends_with("answered 500"), "{error}");
    assert_eq!(error.retry_after, None);
}

#[tokio::test]
async fn an_endless_refusal_is_not_read_completely() {
    let endpoint = Endpoint::new(vec![Act::Head(500, ""), Act::Forever(vec![b'x'; 1 << 16])]).await;
    let error = endpoint.error().await;
    assert_eq!(error.kind, ModelErrorKind::Unavailable);
    assert!(error.message.len() < 1000);
    wait(50).await;
    assert!(*endpoint.sent.lock() < 16 << 20);
}

#[tokio::test]
async fn a_truncated_answer_is_unavailable() {
    let begun = [Act::Head(200, EVENTS), Act::Chunk(says("one").into())];
    for (name, end) in [("cut", Act::Cut), ("ended", Act::End)] {
        let endpoint = Endpoint::new([&begun[..], &[end]].concat()).await;
        let (answer, pieces) = endpoint.ask().await;
        assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Unavailable, "{name}");
        assert_eq!(pieces, ["one"], "{name}");
    }
    // In the middle of an event and of a character.
    let mut half = says("zwei Grüße").into_bytes();
    half.truncate(half.iter().position(|byte| *byte == 0xC3).unwrap() + 1);
    let endpoint = Endpoint::new(vec![Act::Head(200, EVENTS), Act::Chunk(half), Act::Cut]).await;
    assert_eq!(endpoint.error().await.kind, ModelErrorKind::Unavailable);
    // After the finish reason, the answer is complete.
    let endpoint = Endpoint::streaming(&(says("one") + &ends("stop"))).await;
    assert_eq!(endpoint.answer().await.text, "one");
}

#[tokio::test]
async fn a_refused_connection_is_unavailable() {
    let endpoint = Endpoint::streaming(DONE).await;
    let model = endpoint.model_at("http://127.0.0.1:1/v1", Some(KEY));
    let error = model.call(&request(), &NoPieces).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unavailable);
    assert!(error.message.starts_with("127.0.0.1:1: "), "{error}");
}

#[tokio::test]
async fn a_malformed_response_is_a_bad_answer() {
    let long = format!("data: {}", "x".repeat(2 << 20));
    let latin = b"data: {\"choices\":[{\"delta\":{\"content\":\"Gr\xfc\xdfe\"}}]}\n\n".to_vec();
    for body in
        ["<html>hello</html>", "", "hello", "data: {\n\n", "data: [1]\n\n", "data: {\"choices\": 1}\n\n"]
            .into_iter()
            .chain([DONE, "data: {}\n\ndata: [DONE]\n\n", &long, "{\"choices\": "])
            .map(|body| body.as_bytes().to_vec())
            .chain([latin, vec![0xff; 100]])
    {
        let shown = String::from_utf8_lossy(&body).chars().take(60).collect::<String>();
        let endpoint = Endpoint::new(vec![Act::Head(200, EVENTS), Act::Chunk(body), Act::End]).await;
        assert_eq!(endpoint.error().await.kind, ModelErrorKind::BadAnswer, "{shown}");
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_the_call() {
    for (error, kind) in [
        (r#"{"message": "overloaded", "type": "server_error"}"#, ModelErrorKind::Unavailable),
        (r#"{"message": "overloaded", "code": 429}"#, ModelErrorKind::RateLimited),
        (r#"{"message": "overloaded", "type": "rate_limit_error"}"#, ModelErrorKind::RateLimited),
        (r#"{"message": "overloaded", "code": "invalid_request"}"#, ModelErrorKind::Rejected),
        (r#""overloaded""#, ModelErrorKind::Unavailable),
    ] {
        for body in
            [format!("{}data: {{\"error\": {error}}}\n\n", says("one")), format!("{{\"error\": {error}}}")]
        {
            let found = Endpoint::streaming(&body).await.error().await;
            assert_eq!(found.kind, kind, "{body}");
            assert!(found.message.ends_with(": overloaded"), "{found}");
        }
    }
}

/// Drops a call while the endpoint waits; returns the time until the endpoint notices.
async fn dropped(acts: Vec<Act>) -> Duration {
    let endpoint = Endpoint::new(acts).await;
    endpoint.drop_call(Arc::new(endpoint.model())).await
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let before = dropped(vec![Act::Hold]).await;
    let within = dropped(vec![Act::Head(200, EVENTS), Act::Chunk(says("one").into()), Act::Hold]).await;
    assert!(before.max(within) < Duration::from_secs(30), "{before:?}, {within:?}");
}

#[tokio::test]
async fn a_silent_endpoint_times_out() {
    for acts in [vec![Act::Hold], vec![Act::Head(200, EVENTS), Act::Hold]].into_iter().chain([vec![
        Act::Head(200, EVENTS),
        Act::Chunk(says("one").into()),
        Act::Hold,
    ]]) {
        let endpoint = Endpoint::new(acts).await;
        let patience = Duration::from_millis(300);
        let model = endpoint.model().patience(patience, patience);
        let began = now();
        let error = model.call(&request(), &NoPieces).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unavailable);
        assert!((patience..Duration::from_secs(30)).contains(&began.elapsed()));
    }
}

#[tokio::test]
async fn a_slow_receiver_applies_backpressure_without_a_timeout() {
    let event = says(&"word ".repeat(1000)).repeat(10);
    let endpoint = Endpoint::new(vec![Act::Head(200, EVENTS), Act::Forever(event.into())]).await;
    struct Slow;
    #[async_trait]
    impl Pieces for Slow {
        async fn piece(&self, _text: &str) {
            wait(1000).await;
        }
    }
    let patience = Duration::from_millis(300);
    let model = endpoint.model().patience(patience, patience);
    let call = tokio::spawn(async move { model.call(&request(), &Slow).await });
    wait(2500).await;
    assert!(!call.is_finished());
    let sent = *endpoint.sent.lock();
    assert!(sent < 16 << 20, "{sent} bytes were taken");
    call.abort();
}

#[tokio::test]
async fn errors_contain_neither_the_key_nor_the_user_of_the_url() {
    for (status, body) in [(401, "sk-test-0123456789 for me:sesame"), (200, "<html>"), (200, "data: {\n\n")] {
        let endpoint = Endpoint::answering(status, "", body).await;
        let base = format!("http://me:sesame@{}/v1", endpoint.at);
        for key in [Some(KEY), None] {
            let error = endpoint.model_at(&base, key).call(&request(), &NoPieces).await.unwrap_err();
            let message = error.message.replace(" for me:sesame", "");
            assert!(!message.contains("sesame"), "{error}");
            assert!(key.is_none_or(|key| !message.contains(key)), "{error}");
            let seen = endpoint.requests.lock().last().unwrap().clone();
            let expected =
                key.map_or("authorization: Basic ".to_owned(), |key| format!("authorization: Bearer {key}"));
            assert!(seen.contains(&expected), "{seen}");
            assert_eq!(seen.matches("authorization").count(), 1);
        }
    }
    let endpoint = Endpoint::streaming(DONE).await;
    let gone = endpoint.model_at("http://me:sesame@127.0.0.1:1/v1", Some(KEY));
    let error = gone.call(&request(), &NoPieces).await.unwrap_err();
    assert!(!error.message.contains("sesame"), "{error}");
    let bad =
        endpoint.model_at(&endpoint.base(), Some("sk\n1")).call(&request(), &NoPieces).await.unwrap_err();
    assert!(!bad.message.contains("sk"), "{bad}");
    assert_eq!(bad.kind, ModelErrorKind::NotConfigured);
}

#[tokio::test]
async fn endpoints_of_users_are_guarded() {
    let endpoint = Endpoint::streaming(DONE).await;
    let clock = Arc::new(SystemClock::new());
    let guard = Guard::new(Egress::default(), Arc::new(SystemResolver));
    let client = Client::guarded(Arc::new(guard), clock.clone()).unwrap();
    let model = OpenAi::new(client, &endpoint.base(), Some(Secret::from(KEY)), clock).unwrap();
    let error = model.call(&request(), &NoPieces).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::EgressRefused);
    assert_eq!(error.kind.code(), wire::ErrorCode::EgressRefused);
    assert!(endpoint.requests.lock().is_empty());
}
