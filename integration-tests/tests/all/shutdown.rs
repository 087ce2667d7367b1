//! Graceful shutdown: running work ends or is handed over, and acknowledged data is not lost.

use std::time::Duration;

use integration_tests::{
    AnswerExt, JSON, TestService, chat, events, graphs, pause, thread_of, until, without_mark,
};
use kernel::Clock;

#[tokio::test]
async fn a_short_reply_completes_before_the_shutdown() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(40), 30)).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let begun = answer.until("word").await;
    let stopping = t.begin_stop();
    let body = begun + &answer.rest().await;
    assert_eq!(events(&body).pop().unwrap()["type"], "thread.item.done", "{}", &body[body.len() - 200..]);
    stopping.done().await;
    assert_eq!(t.scalar("SELECT status FROM runs").await, "succeeded");
    t.start_again().await;
    t.assert_healthy().await;
}

#[tokio::test]
async fn a_long_reply_is_released_and_its_reader_gets_a_retry() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::parked("before ", 600.0, "after")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let begun = t.while_time_passes(answer.until("\"clock\"")).await;
    let at = t.clock().now();
    let stopping = t.begin_stop();
    let rest = t.while_time_passes(answer.rest()).await;
    assert!(rest.ends_with("retry: 1000\n: reconnect\n\n"), "{rest}");
    t.while_time_passes(stopping.done()).await;
    let took = t.clock().now() - at;
    assert!(took.num_seconds() < 120, "the stop took {took}");
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "1");
    t.advance(Duration::from_secs(120));
    t.start_again().await;
    let before = begun + rest.strip_suffix("retry: 1000\n: reconnect\n\n").unwrap();
    let before = before.replace(": ping\n\n", "");
    let after = before.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().map(str::to_owned);
    let mut again = t.resume(&stream, after.as_deref()).await.expect(200);
    // Nearly to its end: the run reaches the end with the shutdown's time counted, and hardly more.
    let away = (t.clock().now() - at).to_std().unwrap();
    t.advance(Duration::from_secs(600) - away - Duration::from_secs(5));
    let rest = t.while_time_passes(again.rest()).await;
    let all = t.resume(&stream, None).await.rest().await;
    assert_eq!(before + &without_mark(&rest.replace(": ping\n\n", "")), without_mark(&all));
    assert_eq!(events(&all).pop().unwrap()["item"]["content"][0]["text"], "before after");
    let ran = "SELECT extract(epoch FROM finished_at - started_at)::int FROM runs";
    let ran: i64 = t.scalar(ran).await.parse().unwrap();
    // A delay that started again would take 120 s more, the time of the shutdown.
    assert!((600..720).contains(&ran), "the delay started again: it took {ran} s");
}

#[tokio::test]
async fn a_reply_interrupted_by_the_shutdown_continues_with_the_same_text() {
    let mut t = TestService::builder()
        .manual_clock()
        // No client reads during the shutdown.
        .set("SERVICE_CHAT_DISCONNECT_GRACE", "forever")
        .start()
        .await;
    let text = "one two three four five six seven eight nine ten";
    let workflow = t.workflow().graph(graphs::words(text, 10_000)).published().create().await;
    for headers in [&[][..], &[("chatkit-frame-instance-id", "f")][..]] {
        let body = chat::create(&workflow, "hi").to_string();
        let mut answer = t.open("POST", "/api/chat", headers, &body).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        t.while_time_passes_in(Duration::from_millis(500), answer.until("three")).await;
        drop(answer);
        t.stop().await;
        t.start_again().await;
        let mut again = t.resume(&stream, None).await;
        let all = t.while_time_passes_in(Duration::from_millis(500), again.rest()).await;
        let pieces: String = events(&all)
            .iter()
            .filter_map(|event| {
                event["update"]["part"]["text"]
                    .as_str()
                    .or(event["update"]["delta"].as_str())
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(pieces, text, "each piece once");
        assert_eq!(events(&all).pop().unwrap()["item"]["content"][0]["text"], text);
    }
}

#[tokio::test]
async fn queued_messages_are_answered_after_the_next_start() {
    let mut t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::delayed(5.0, "{{ inputs.message }}")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "first")).await;
    let begun = first.until("stream_options").await;
    let thread = thread_of(&begun);
    let mut waiting = Vec::new();
    for n in 0..5 {
        let mut answer = t.open_chat(&chat::add(&workflow, &thread, &format!("waits {n}"))).await;
        answer.until("stream_options").await;
        waiting.push(answer);
    }
    let stopping = t.begin_stop();
    let ends = async {
        let mut streams = Vec::new();
        for answer in &mut waiting {
            assert!(answer.rest().await.ends_with(": reconnect\n\n"));
            streams.push(answer.header("x-chat-stream-id").unwrap().to_owned());
        }
        (first.rest().await, streams)
    };
    let (first, streams) = t.while_time_passes(ends).await;
    assert_eq!(events(&first).pop().unwrap()["item"]["content"][0]["text"], "first");
    t.while_time_passes(stopping.done()).await;
    let states = "SELECT string_agg(status, ' ' ORDER BY id) FROM runs";
    assert_eq!(t.scalar(states).await, "succeeded queued queued queued queued queued");
    t.start_again().await;
    for (n, stream) in streams.iter().enumerate() {
        let mut answer = t.resume(stream, None).await;
        let body = t.while_time_passes_in(Duration::from_millis(200), answer.rest()).await;
        assert_eq!(events(&body).pop().unwrap()["item"]["content"][0]["text"], format!("waits {n}"));
    }
    let order = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id WHERE b.started_at < a.finished_at";
    assert_eq!(t.scalar(order).await, "0");
}

#[tokio::test]
async fn a_stopping_service_accepts_no_connection_and_starts_no_turn() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(5.0, "done")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("stream_options").await;
    // Requests that have begun to arrive are served during the shutdown.
    let body = chat::create(&workflow, "too late").to_string();
    let mut late = t.raw().await;
    late.write(format!("POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{{", body.len()))
        .await;
    pause(100).await;
    let address = t.address();
    let stopping = t.begin_stop();
    until("the service to stop listening", async || tokio::net::TcpStream::connect(address).await.is_err())
        .await;
    late.write(&body[1..]).await;
    let refused = late.answer().await.whole().await;
    assert_eq!(
        (refused.refusal().as_str(), refused.header("retry-after")),
        ("503 service.draining", Some("1"))
    );
    t.while_time_passes(answer.rest()).await;
    t.while_time_passes(stopping.done()).await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn an_idle_connection_does_not_delay_the_shutdown() {
    let mut t = TestService::start().await;
    let client = t.visitor();
    client.health().await.unwrap();
    let _kept = t.raw().await.request("GET", "/healthz", &[], "").await;
    let _silent = t.raw().await;
    let clock = kernel::SystemClock::new();
    let begun = clock.monotonic();
    t.stop().await;
    let took = clock.monotonic() - begun;
    // The shutdown allows sixteen seconds for running work.
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test]
async fn shutdowns_under_load_lose_no_acknowledged_message() {
    let mut t = TestService::start().await;
    let workflow = t
        .workflow()
        .graph(graphs::words("{{ inputs.message }} is what you said", 3))
        .published()
        .create()
        .await;
    let mut following = Vec::new();
    for round in 0..3 {
        for n in 0..8 {
            let (client, workflow) = (t.visitor(), workflow.id.clone());
            following.push(tokio::spawn(async move {
                let text = format!("round {round} number {n}");
                let request = wire::chat::ChatRequest {
                    operation: wire::chat::ChatOperation::CreateThread {
                        input: wire::chat::UserMessageInput::text(&text),
                    },
                    metadata: serde_json::Map::new(),
                };
                let key = format!("k-{round}-{n}");
                let options =
                    client::ChatOptions { idempotency_key: Some(key), ..client::ChatOptions::default() };
                let following = loop {
                    match client.follow(&workflow, &request, &options).await {
                        Err(error) if error.is_passing() => pause(20).await,
                        other => break other.unwrap(),
                    }
                };
                let turn = following.collect().await.unwrap();
                assert_eq!((turn.error, turn.text), (None, format!("{text} is what you said")));
            }));
        }
        pause(30).await;
        t.restart().await;
    }
    for one in following {
        one.await.unwrap();
    }
    t.until_scalar("every turn to end", "SELECT count(*) FROM runs WHERE status = 'succeeded'", "24").await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "24");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "48");
}

#[tokio::test]
async fn the_deepest_request_is_resumed_after_a_restart() {
    let mut t = TestService::builder()
        .manual_clock()
        // No client reads during the shutdown.
        .set("SERVICE_CHAT_DISCONNECT_GRACE", "forever")
        .start()
        .await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "read again")).published().create().await;
    // The body and `metadata` are two of the 128 levels.
    let deep = format!(",\"metadata\":{{\"deep\":{}{}}}}}", "[".repeat(126), "]".repeat(126));
    let body = chat::create(&workflow, "hi").to_string();
    let body = format!("{}{deep}", body.strip_suffix('}').unwrap());
    let mut answer = t.open("POST", "/api/chat", &[JSON], &body).await.expect(200);
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    answer.until("stream_options").await;
    drop(answer);
    t.restart().await;
    let mut again = t.resume(&stream, None).await;
    let all = t.while_time_passes_in(Duration::from_millis(500), again.rest()).await;
    assert_eq!(events(&all).pop().unwrap()["item"]["content"][0]["text"], "read again");
}
