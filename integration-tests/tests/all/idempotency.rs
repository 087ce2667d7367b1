//! Repeating a request starts nothing new.

use std::time::Duration;

use client::ChatOptions;
use insta::assert_snapshot;
use integration_tests::{
    Answer, AnswerExt, JSON, RawAnswer, TestService, chat, graphs, shown, shown_alike, thread_of,
    without_mark,
};

async fn open_keyed(t: &TestService, body: &str, key: &str) -> RawAnswer {
    t.open("POST", "/api/chat", &[JSON, ("idempotency-key", key)], body).await
}

async fn send_keyed(t: &TestService, body: &str, key: &str) -> Answer {
    open_keyed(t, body, key).await.whole().await
}

#[tokio::test]
async fn a_repeated_request_returns_the_same_stream() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let first = send_keyed(&t, &body, "k1").await;
    assert_eq!(first.header("idempotency-replayed"), None);
    assert!(first.header("set-cookie").is_some());
    let again = send_keyed(&t, &body, "k1").await;
    assert_eq!(again.text(), first.text());
    assert_eq!(again.header("x-chat-stream-id"), first.header("x-chat-stream-id"));
    assert_snapshot!(shown(&Answer { body: bytes::Bytes::new(), ..again }), @r"
    200
    content-type: text/event-stream
    cache-control: no-cache, no-transform
    x-accel-buffering: no
    idempotency-replayed: true
    ");
    t.restart().await;
    assert_eq!(send_keyed(&t, &body, "k1").await.text(), first.text());
    let other = send_keyed(&t, &body, "k2").await;
    assert_ne!(other.header("x-chat-stream-id"), first.header("x-chat-stream-id"));
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
}

#[tokio::test]
async fn a_request_repeated_while_its_turn_runs_joins_it() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 5.0, " and done")).published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let mut first = open_keyed(&t, &body, "k").await;
    let beginning = first.until("so far").await;
    let mut again = open_keyed(&t, &body, "k").await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let joined = again.until("so far").await;
    let rest = async { (beginning + &first.rest().await, joined + &again.rest().await) };
    let (first, again) = t.while_time_passes(rest).await;
    assert_eq!(first, without_mark(&again));
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_key_identifies_one_body() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    send_keyed(&t, &chat::create(&workflow, "one").to_string(), "k").await;
    let other = send_keyed(&t, &chat::create(&workflow, "two").to_string(), "k").await;
    assert_snapshot!(shown(&other), @r#"
    422
    content-type: application/json
    {"detail":{"message":"This Idempotency-Key was already used with another request body.","code":"idempotency.key_reused"}}
    "#);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_malformed_key_is_400() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let mut refused = Vec::new();
    for key in ["", " ", "a b", "\u{e9}", &"k".repeat(256), "a\tb"] {
        refused.push(send_keyed(&t, &body, key).await);
    }
    let twice = [JSON, ("idempotency-key", "a"), ("idempotency-key", "a")];
    refused.push(t.send("POST", "/api/chat", &twice, &body).await);
    assert_snapshot!(shown_alike(&refused), @r#"
    400
    content-type: application/json
    {"detail":{"message":"The Idempotency-Key header is not valid.","code":"idempotency.key_invalid"}}
    "#);
    t.assert_no_rows("runs").await;
    for key in ["k", &"k".repeat(255), "!~:/?#[]@"] {
        assert_eq!(send_keyed(&t, &body, key).await.status, 200, "{key}");
    }
}

#[tokio::test]
async fn keys_are_scoped_to_caller_and_workflow() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let options = ChatOptions { idempotency_key: Some("k".to_owned()), ..ChatOptions::default() };
    let (one, two) = (t.visitor(), t.visitor());
    for client in [&one, &two] {
        client.say(&workflow.id, "first").await.unwrap();
    }
    let mut streams = Vec::new();
    for (client, text) in [(&one, "mine"), (&two, "mine"), (&two, "mine")] {
        let stream = client.chat_raw(&chat::create(&workflow, text), &options).await.unwrap();
        streams.push(stream.stream_id().to_owned());
        stream.collect().await.unwrap();
    }
    assert_ne!(streams[0], streams[1]);
    assert_eq!(streams[1], streams[2]);
    let other = t.workflow().echo().published().create().await;
    let stream = two.chat_raw(&chat::create(&other, "mine"), &options).await.unwrap();
    assert_ne!(stream.stream_id(), streams[2]);
    stream.collect().await.unwrap();
}

/// The first response makes the caller a visitor, and the retry has that visitor's cookie.
#[tokio::test]
async fn a_retry_with_the_new_cookie_is_the_same_request() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let options = ChatOptions { idempotency_key: Some("k".to_owned()), ..ChatOptions::default() };
    let client = t.visitor();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let stream = client.chat_raw(&chat::create(&workflow, "hi"), &options).await.unwrap();
        streams.push(stream.stream_id().to_owned());
        stream.collect().await.unwrap();
    }
    assert!(streams.iter().all(|stream| *stream == streams[0]), "{streams:?}");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

const SECRET: &str = "8d2f0c52-7f0b-4d3a-9d53-2a4a4d6f7c11";

fn cookie(answer: &Answer) -> Option<String> {
    let cookie = answer.header("set-cookie")?;
    cookie.split(';').next().map(str::to_owned)
}

/// The first response is lost with its cookie: the retry gets the same cookie, with which the visitor continues.
#[tokio::test]
async fn a_retry_after_a_lost_response_gets_the_same_cookie() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let lost = send_keyed(&t, &body, SECRET).await;
    for _ in 0..2 {
        let retry = send_keyed(&t, &body, SECRET).await;
        assert_eq!(retry.header("idempotency-replayed"), Some("true"));
        assert_eq!(retry.header("set-cookie"), lost.header("set-cookie"));
        t.restart().await;
    }
    let cookie = cookie(&lost).unwrap();
    let thread = thread_of(&lost.text());
    let more = chat::add(&workflow, &thread, "more").to_string();
    let answer = t.send("POST", "/api/chat", &[JSON, ("cookie", &cookie)], &more).await;
    assert_eq!(answer.status, 200, "the thread is the cookie's: {}", answer.text());
    assert_eq!(t.scalar("SELECT count(DISTINCT owner_id) FROM threads").await, "1");
    // A caller who already has the cookie does not get it again.
    let with = [JSON, ("cookie", cookie.as_str()), ("idempotency-key", SECRET)];
    let answer = t.send("POST", "/api/chat", &with, &body).await;
    let head = (answer.header("idempotency-replayed"), answer.header("set-cookie"));
    assert_eq!(head, (Some("true"), None));
}

#[tokio::test]
async fn concurrent_equal_requests_are_one_visitor() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let answers = futures_util::future::join_all((0..16).map(|_| send_keyed(&t, &body, SECRET))).await;
    let first = cookie(&answers[0]);
    assert!(first.is_some() && answers.iter().all(|answer| cookie(answer) == first), "{first:?}");
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
}

/// Requests that differ from the first one, and must not get its cookie.
#[tokio::test]
async fn different_requests_never_get_the_cookie_of_another_visitor() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let other_workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let own_cookie = cookie(&send_keyed(&t, &body, SECRET).await).unwrap();
    let thread = t.scalar("SELECT id FROM threads").await;
    // Another body: rejected, without a cookie. Another workflow or another key: a new visitor.
    let other = send_keyed(&t, &chat::create(&workflow, "ho").to_string(), SECRET).await;
    assert_eq!((other.refusal().as_str(), cookie(&other)), ("422 idempotency.key_reused", None));
    for (body, key) in [
        (chat::create(&other_workflow, "hi").to_string(), SECRET.to_owned()),
        (body.clone(), SECRET.to_uppercase()),
    ] {
        let new_cookie = cookie(&send_keyed(&t, &body, &key).await).unwrap();
        assert_ne!(new_cookie, own_cookie);
    }
    // Another visitor's request belongs to them, whatever the key.
    let stranger = t.visitor();
    stranger.say(&workflow.id, "hello").await.unwrap();
    let cookie_of_stranger = format!("callboard_visitor={}", stranger.cookie("callboard_visitor").unwrap());
    let headers = [JSON, ("cookie", cookie_of_stranger.as_str()), ("idempotency-key", SECRET)];
    let answer = t.send("POST", "/api/chat", &headers, &body).await;
    assert_eq!((answer.status, answer.header("idempotency-replayed"), cookie(&answer)), (200, None, None));
    // A guessable key: the stream, but no cookie.
    send_keyed(&t, &body, "retry-1").await;
    let guessed = send_keyed(&t, &body, "retry-1").await;
    assert_eq!((guessed.header("idempotency-replayed"), cookie(&guessed)), (Some("true"), None));
    // Too late for a response that was lost in transit.
    let age = |by: &str| {
        format!("UPDATE threads SET created_at = created_at - interval '{by}' WHERE id = '{thread}'")
    };
    t.execute(&age("9 minutes 30 seconds")).await;
    assert_eq!(cookie(&send_keyed(&t, &body, SECRET).await), Some(own_cookie));
    t.execute(&age("31 seconds")).await;
    let late = send_keyed(&t, &body, SECRET).await;
    assert_eq!((late.header("idempotency-replayed"), cookie(&late)), (Some("true"), None));
}

/// With the thread's id, a client without cookies can continue the thread, but does not become its visitor.
#[tokio::test]
async fn a_retried_message_to_a_foreign_thread_sets_no_cookie() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let owner = t.visitor();
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let body = chat::add(&workflow, &thread, "me too").to_string();
    for replayed in [None, Some("true")] {
        let answer = send_keyed(&t, &body, SECRET).await;
        assert_eq!((answer.header("idempotency-replayed"), cookie(&answer)), (replayed, None));
    }
}

#[tokio::test]
async fn concurrent_requests_with_one_key_store_one_message() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    for round in 0..10 {
        let body = chat::create(&workflow, &format!("round {round}")).to_string();
        let key = format!("k{round}");
        let answers = futures_util::future::join_all((0..16).map(|_| send_keyed(&t, &body, &key))).await;
        let fresh = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none()).count();
        assert_eq!(fresh, 1, "exactly one request is not a replay");
        for answer in &answers {
            let (read, first) = (without_mark(&answer.text()), without_mark(&answers[0].text()));
            assert_eq!((answer.status, read), (200, first));
        }
        assert_eq!(t.scalar("SELECT count(*) FROM runs").await, (round + 1).to_string());
        assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, (2 * (round + 1)).to_string());
    }
}

#[tokio::test]
async fn a_rejected_request_leaves_its_key_free() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(1.0, "ok")).published().create().await;
    let mut open_streams = vec![t.open_chat(&chat::create(&workflow, "first")).await];
    let beginning = open_streams[0].until("stream_options").await;
    let thread = thread_of(&beginning);
    for _ in 0..32 {
        open_streams.push(t.open_chat(&chat::add(&workflow, &thread, "waits")).await);
    }
    let body = chat::add(&workflow, &thread, "late").to_string();
    assert_eq!(send_keyed(&t, &body, "k").await.refusal(), "429 chat.thread_busy");
    t.while_time_passes_in(Duration::from_millis(100), async {
        for stream in &mut open_streams {
            stream.rest().await;
        }
    })
    .await;
    let mut late = open_keyed(&t, &body, "k").await;
    assert_eq!((late.status, late.header("idempotency-replayed")), (200, None));
    t.while_time_passes(late.rest()).await;
    let again = send_keyed(&t, &body, "k").await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items WHERE content LIKE '%late%'").await, "1");
}

#[tokio::test]
async fn a_key_expires_after_a_day() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let first = send_keyed(&t, &body, "k").await;
    t.execute("UPDATE idempotency_keys SET created_at = created_at - interval '23 hours 59 minutes'").await;
    assert_eq!(send_keyed(&t, &body, "k").await.text(), first.text());
    t.execute("UPDATE idempotency_keys SET created_at = created_at - interval '2 minutes'").await;
    assert_ne!(send_keyed(&t, &body, "k").await.text(), first.text());
    t.until_scalar("both turns to end", "SELECT count(*) FROM runs WHERE finished_at IS NULL", "0").await;
}
