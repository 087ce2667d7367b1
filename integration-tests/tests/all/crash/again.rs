//! `kill -9` around thread changes: retries, titles, deletions.

use std::time::Duration;

use client::{ChatOptions, Client, ResumingChat};
use kernel::SystemClock;
use serde_json::{Map, json};
use store::testing::TestDatabase;
use wire::chat::{ChatOperation, ChatRequest, UserMessageInput};

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, workflows};

/// Much longer than a turn takes.
const LIMIT: Duration = Duration::from_secs(60);

async fn start_resuming(client: &Client, workflow: &str, operation: ChatOperation) -> ResumingChat {
    let request = ChatRequest { operation, metadata: Map::new() };
    client.follow(workflow, &request, &ChatOptions::default()).await.unwrap()
}

async fn final_text(turn: ResumingChat) -> String {
    let turn = kernel::timeout(&SystemClock::new(), LIMIT, turn.collect()).await;
    let turn = turn.expect("the turn to end").unwrap();
    assert_eq!(turn.error, None);
    turn.text
}

async fn texts(client: &Client, workflow: &str, thread: &str) -> Vec<String> {
    let items = client.thread(workflow, thread).await.unwrap().items.data;
    items.iter().map(|item| item.as_message().unwrap().1).collect()
}

/// The service is killed while the retry waits, and again during its reply; the cuts from its request and from its
/// start persist.
#[tokio::test]
async fn a_retry_and_its_removed_items_survive_kills() {
    let database = TestDatabase::create().await;
    let folder = folder("again");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let wait = |name: &str| json!({"name": name, "type": "delay", "seconds": 1});
    let say = |name: &str, text: &str| json!({"name": name, "type": "reply", "text": text});
    let nodes =
        [wait("first"), say("one", "You said: {{ inputs.message }}"), wait("second"), say("two", ".")];
    let workflow = workflows::publish(&client, "slow", &nodes).await;
    let turn = client.say(&workflow, "hi").await.unwrap();
    let thread = turn.thread_id;
    let message = client.thread(&workflow, &thread).await.unwrap().items.data[0].id().to_owned();
    let input = UserMessageInput::text("more");
    let more = ChatOperation::AddUserMessage { thread_id: thread.clone(), input };
    let mut running = start_resuming(&client, &workflow, more).await;
    running.next().await.unwrap().expect("the user's message");
    let again = ChatOperation::RetryAfterItem { thread_id: thread.clone(), item_id: message };
    let mut retry = start_resuming(&client, &workflow, again).await;
    retry.next().await.unwrap().expect("the stream options");

    service.kill();
    oracle.measure_start(false, || service.start());
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi"], "the cut was stored with the start");
    let first_text = async {
        while let Some(event) = retry.next().await.unwrap() {
            if serde_json::to_string(&event.event).unwrap().contains("You said: hi") {
                return;
            }
        }
        panic!("the turn ended without a reply");
    };
    kernel::timeout(&SystemClock::new(), LIMIT, first_text).await.expect("the turn to send its first text");
    service.kill();
    oracle.measure_start(false, || service.start());
    assert_eq!(final_text(retry).await, "You said: hi.");
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "You said: hi."]);
    assert_eq!(database.scalar("SELECT count(*) FROM thread_cuts").await, "2");
    assert_eq!(database.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "0");
    service.stop();
}

/// Acknowledged changes are stored, and the next process keeps them.
#[tokio::test]
async fn a_title_and_a_deletion_survive_a_kill() {
    let database = TestDatabase::create().await;
    let folder = folder("deleted");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let say = json!({"name": "say", "type": "reply", "text": "half"});
    let wait = json!({"name": "wait", "type": "delay", "seconds": 600});
    let slow = workflows::publish(&client, "slow", &[say.clone(), wait]).await;
    let quick = workflows::publish(&client, "quick", &[say]).await;
    let renamed_thread = client.say(&quick, "hi").await.unwrap().thread_id;
    client.rename_thread(&quick, &renamed_thread, "Another title").await.unwrap();
    let mut running =
        start_resuming(&client, &slow, ChatOperation::CreateThread { input: UserMessageInput::text("hi") })
            .await;
    running.next().await.unwrap().expect("the thread");
    let thread =
        database.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads WHERE title = 'hi'").await;
    // The process dies after the deletion is stored, whether or not the turn has ended by then.
    let deleting = {
        let (client, slow, thread) = (client.clone(), slow.clone(), thread.clone());
        tokio::spawn(async move { client.delete_thread(&slow, &thread).await })
    };
    let requested = "SELECT count(*) FROM runs WHERE cancel_requested_at IS NOT NULL";
    integration_tests::until("the cancellation to be stored", async || {
        database.scalar(requested).await != "0"
    })
    .await;
    service.kill();
    let _ = integration_tests::within("an answer or none", deleting).await.unwrap();
    oracle.measure_start(false, || service.start());
    // A new client, without the old connections.
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    assert_eq!(client.thread(&quick, &renamed_thread).await.unwrap().title.as_deref(), Some("Another title"));
    let deleted = client.thread(&slow, &thread).await.err().unwrap();
    assert_eq!(deleted.code(), Some("thread.not_found"));
    let ended = "SELECT status FROM runs ORDER BY id DESC LIMIT 1";
    integration_tests::until("its turn to end", async || database.scalar(ended).await == "cancelled").await;
    service.stop();
}
