//! Streams with all kinds of items through a proxy that cuts connections at random bytes, with kills of two instances:
//! each reader's final state equals the stored one, in both dialects.
//!
//! `CALLBOARD_CRASH_STREAMS` (60) sets the number of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::{ChatOptions, Client};
use integration_tests::{Balancer, pause, until};
use kernel::{SeededRandom, SystemClock};
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use wire::chat::{ChatOperation, ChatRequest, Dialect, ItemBody, Thread, ThreadItem, UserMessageInput};

use super::items::{Reader, nodes};
use super::oracle::Oracle;
use super::service::Service;
use super::{SLOW_DISK, folder, number, random_delay, seed, workflows};

/// Concurrently read streams.
const READERS: u64 = 20;
/// Maximum bytes before a connection is cut; a complete stream has more.
const CUT_WITHIN: u64 = 6_000;
/// Longer than a stream takes, with kills of both instances.
const LIMIT: Duration = Duration::from_secs(300);

/// All kinds of items that a turn may send, in addition to [`nodes`].
fn all_kinds() -> Vec<Value> {
    let mut nodes = nodes();
    nodes.push(json!({"name": "thought", "type": "show", "kind": "task", "task": {"type": "thought", "content": "why"}}));
    nodes.push(json!({"name": "drawn", "type": "show", "kind": "image", "key": "drawn", "more": true, "progress": 0.5}));
    nodes.push(json!({"name": "w9", "type": "delay", "seconds": 0.15}));
    nodes.push(json!({"name": "drawing", "type": "show", "kind": "image", "key": "drawn", "image": {"base64": STANDARD.encode(crate::attachments::red())}}));
    nodes.push(json!({"name": "noted", "type": "notice", "message": "Noted."}));
    nodes.push(json!({"name": "lit", "type": "client_effect", "effect": "light", "data": {"on": true}}));
    nodes.push(json!({"name": "words", "type": "reply", "text": "A reply in words, for {{ inputs.message }}.", "pieces": "words", "pause_ms": 40,
        "annotations": [{"source": {"type": "url", "url": "https://example.org/", "title": "source"}}]}));
    nodes.push(json!({"name": "over", "type": "show", "kind": "end_of_turn"}));
    nodes.push(json!({"name": "where", "type": "client_tool", "tool": "where", "arguments": {}}));
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cuts_at_any_byte_and_kills_lose_and_duplicate_nothing() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("streams");
    let mut instances = ["one", "two"].map(|name| Service::new(&folder, Some(database.dsn())).named(name));
    let addresses: Vec<String> = instances.iter().map(|service| service.address().to_owned()).collect();
    let (seed, streams) = (seed(), number("CALLBOARD_CRASH_STREAMS", 60));
    println!("CALLBOARD_CRASH_SEED={seed} ({streams} streams, {})", folder.display());
    let random = Arc::new(SeededRandom::new(seed));
    let of_cuts: Arc<dyn kernel::Random> = Arc::<SeededRandom>::clone(&random);
    let whole = Balancer::before(addresses.clone()).await;
    let cutting = Balancer::cutting(addresses, of_cuts, CUT_WITHIN).await;
    let mut oracle = Oracle::start(&whole.address(), &folder, 0, seed);
    for service in &mut instances {
        tokio::task::block_in_place(|| oracle.measure_start(true, || service.start()));
    }
    let client = Client::builder(&whole.base()).keep_cookies(false).build().unwrap();
    let workflow = workflows::publish(&client, "kinds", &all_kinds()).await;
    let base = cutting.base();
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let (base, workflow) = (base.clone(), workflow.clone());
            tokio::spawn(async move {
                let client = Client::builder(&base).keep_cookies(false).build().unwrap();
                let mut read = Vec::new();
                for stream in (reader..streams).step_by(usize::try_from(READERS).unwrap()) {
                    read.push(follow(&client, &workflow, stream).await);
                }
                read
            })
        })
        .collect();
    let stopped = AtomicBool::new(false);
    let killing = async {
        let mut kills = 0;
        while !stopped.load(Ordering::Relaxed) {
            pause(u64::try_from(random_delay(&random).as_millis()).unwrap() + 1_500).await;
            let hit = kills % 2;
            tokio::task::block_in_place(|| instances[hit].kill());
            tokio::task::block_in_place(|| oracle.measure_start(false, || instances[hit].start()));
            let direct = Client::builder(&instances[hit].base()).keep_cookies(false).build().unwrap();
            until("the instance is ready", async || {
                direct.ready().await.is_ok_and(|answer| answer.status == 200)
            })
            .await;
            kills += 1;
        }
        kills
    };
    let reading = async {
        let mut read = Vec::new();
        for reader in readers {
            read.extend(reader.await.unwrap());
        }
        stopped.store(true, Ordering::Relaxed);
        read
    };
    let (kills, read) = futures_util::join!(killing, reading);
    println!("{} streams, {} cuts, {kills} kills", read.len(), cutting.cuts());
    assert!(cutting.cuts() >= read.len() && kills > 0, "too few connections were cut");
    for (stream, reader) in read {
        let thread = reader.items[0].thread_id.clone();
        let mut head: Thread = client.thread(&workflow, &thread).await.unwrap();
        let stored = std::mem::take(&mut head.items).data;
        assert_eq!(without_urls(&reader.items), without_urls(&stored), "stream {stream}");
        assert_eq!(reader.threads.last(), Some(&head), "stream {stream}");
        let texts: Vec<String> = stored.iter().filter_map(|item| item.body.text()).collect();
        let words = format!("A reply in words, for {}.", message(stream));
        assert_eq!(texts, ["First.", "Then, more.", "Done.", &words], "stream {stream}");
        let last = &stored.last().unwrap().body;
        assert!(matches!(last, ItemBody::ClientToolCall { .. }), "stream {stream}: {last:?}");
        assert_eq!(stored.len(), 11, "stream {stream}: {stored:#?}");
    }
    let counts = "SELECT concat_ws(' ', count(*), count(DISTINCT thread_id)) FROM runs";
    assert_eq!(database.scalar(counts).await, format!("{streams} {streams}"), "one run per stream");
    for service in instances {
        tokio::task::block_in_place(|| service.stop());
    }
}

/// The items without image URLs, which depend on the reader's host.
fn without_urls(items: &[ThreadItem]) -> Vec<ThreadItem> {
    let mut items = items.to_vec();
    for item in &mut items {
        if let ItemBody::GeneratedImage { image: Some(image), .. } = &mut item.body {
            assert!(
                image.url.contains(&format!("/api/chat/attachments/{}/preview?exp=", image.id)),
                "{image:?}"
            );
            image.url.clear();
        }
    }
    items
}

fn message(stream: u64) -> String {
    format!("case {stream}")
}

/// Starts a turn and reads it to its end, despite cuts and kills.
async fn follow(client: &Client, workflow: &str, stream: u64) -> (u64, Reader) {
    let input = UserMessageInput::text(message(stream));
    let request = ChatRequest { operation: ChatOperation::CreateThread { input }, metadata: Map::new() };
    let dialect = if stream.is_multiple_of(2) { Dialect::Chatkit } else { Dialect::Interface };
    let key = Some(format!("key-of-the-stream-{stream}"));
    let options = ChatOptions { idempotency_key: key, dialect: Some(dialect), ..ChatOptions::default() };
    let mut reader = Reader::default();
    let all = async {
        let mut turn = loop {
            match client.follow(workflow, &request, &options).await {
                Ok(turn) => break turn,
                Err(error) => assert!(error.status().is_none_or(|status| status == 503), "{error:?}"),
            }
            pause(50).await;
        };
        let mut sequence = 0;
        while let Some(event) = turn.next().await.unwrap() {
            assert_eq!(event.seq, sequence + 1, "stream {stream}");
            sequence = event.seq;
            reader.read(event.event);
        }
    };
    let ended = kernel::timeout(&SystemClock::new(), LIMIT, all).await;
    ended.unwrap_or_else(|| panic!("stream {stream} does not end"));
    (stream, reader)
}
