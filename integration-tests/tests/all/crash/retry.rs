//! A key whose first request died before its turn was stored, and a second kill right after the retry.

use std::time::Duration;

use client::{ChatOptions, Client};
use kernel::SystemClock;
use serde_json::{Map, json};
use store::testing::TestDatabase;
use wire::chat::{ChatOperation, ChatRequest, UserMessageInput};

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, workflows};

/// Much longer than a turn takes.
const LIMIT: Duration = Duration::from_secs(60);

/// The state after a first request that died between its key and its turn: only the key.
const ONLY_THE_KEY: &str =
    "DELETE FROM runs; DELETE FROM run_steps; DELETE FROM streams; DELETE FROM stream_events;
    DELETE FROM thread_items; DELETE FROM threads";

/// The retry's run has the id that was reserved with the key, which may be older than the range that the lease covers.
#[tokio::test]
async fn a_retried_key_is_recovered_like_any_other_turn() {
    let database = TestDatabase::create().await;
    let folder = folder("retry");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let wait = json!({"name": "wait", "type": "delay", "seconds": 1});
    let say = json!({"name": "say", "type": "reply", "text": "You said: {{ inputs.message }}"});
    let workflow = workflows::publish(&client, "slow", &[wait, say]).await;
    let operation = ChatOperation::CreateThread { input: UserMessageInput::text("hi") };
    let request = ChatRequest { operation, metadata: Map::new() };
    let options = ChatOptions { idempotency_key: Some("only-once".into()), ..ChatOptions::default() };
    let first = client.follow(&workflow, &request, &options).await.unwrap().collect().await.unwrap();

    service.kill();
    database.execute(ONLY_THE_KEY).await.unwrap();
    oracle.measure_start(false, || service.start());
    // The lease is renewed at the start, and states that nothing older is unfinished.
    std::thread::sleep(Duration::from_millis(500));
    let mut again = client.follow(&workflow, &request, &options).await.unwrap();
    again.next().await.unwrap().expect("the user's message");
    service.kill();
    oracle.measure_start(false, || service.start());
    let turn = kernel::timeout(&SystemClock::new(), LIMIT, again.collect()).await;
    let turn = turn.expect("the retried turn to end").unwrap();
    assert_eq!((turn.text.as_str(), turn.error), ("You said: hi", None));
    assert_eq!(turn.stream_id, first.stream_id);
    assert_eq!(database.scalar("SELECT count(*) FROM thread_items").await, "2");
    service.stop();
}
