//! Streams that are read here and written by another instance. One statement polls all of them; readers receive the
//! events as if this instance had committed them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kernel::Clock;
use parking_lot::Mutex;
use store::{Store, StoreError, StreamNews};
use uuid::Uuid;

use super::topic::{Published, Topics};

/// Poll interval while other instances exist: their events arrive within 100 ms.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Minimum pause between two polls, however long they take.
const LEAST_POLL_PAUSE: Duration = Duration::from_millis(10);
/// Pause between two polls without other instances: a parked run's stream has no writer. Such a poll finds only events
/// by an instance that has just joined, and thousands of readers may wait for parked runs.
const ALONE_POLL_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which this instance announces its readers; an announcement lasts three times as long.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);
/// Maximum streams in one statement.
const STREAMS_AT_ONCE: usize = 1_000;

/// The source of events committed by other instances.
#[async_trait]
pub(crate) trait ForeignEvents: Send + Sync {
    /// Returns new events in these streams, each after the given event.
    async fn after(&self, seen: &[(Uuid, u64)]) -> Result<Vec<StreamNews>, StoreError>;
}

#[async_trait]
impl ForeignEvents for Store {
    async fn after(&self, seen: &[(Uuid, u64)]) -> Result<Vec<StreamNews>, StoreError> {
        self.stream_news(seen).await
    }
}

/// Polls other instances' events, and announces readers to them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ForeignStreams {
    pub(crate) topics: Topics,
    pub(crate) events: Arc<dyn ForeignEvents>,
    pub(crate) store: Store,
    pub(crate) instance: Uuid,
    /// Whether other instances exist.
    pub(crate) others: Arc<AtomicBool>,
    pub(crate) clock: Arc<dyn Clock>,
    /// When each stream was last announced.
    pub(crate) announced: Arc<Mutex<BTreeMap<Uuid, Duration>>>,
}

impl ForeignStreams {
    /// Polls once and pauses. Waits while no foreign stream has a reader here.
    pub(crate) async fn poll_and_wait(&self) {
        let began = self.clock.monotonic();
        let seen = self.topics.foreign();
        if let Err(error) = self.announce(&seen).await {
            tracing::warn!(%error, "failed to announce readers; retrying");
        }
        if seen.is_empty() && self.announced.lock().is_empty() {
            return self.topics.foreign_added().await;
        }
        for part in seen.chunks(STREAMS_AT_ONCE) {
            match self.events.after(part).await {
                Ok(news) => {
                    let seen: BTreeMap<Uuid, u64> = part.iter().copied().collect();
                    for news in news {
                        let seen = seen.get(&news.stream).copied().unwrap_or_default();
                        self.publish(news, seen);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to poll streams of other instances; retrying");
                    break;
                }
            }
        }
        let alone = !self.others.load(Ordering::Relaxed);
        let took = self.clock.monotonic().saturating_sub(began);
        let pause =
            if alone { ALONE_POLL_PAUSE } else { POLL_EVERY.saturating_sub(took).max(LEAST_POLL_PAUSE) };
        let pause = self.clock.sleep(pause);
        if alone {
            // A stream with a first reader is polled immediately.
            tokio::select! {
                () = pause => {}
                () = self.topics.foreign_added() => {}
            }
        } else {
            pause.await;
        }
    }

    /// Publishes new events. `seen`: the last event known before.
    fn publish(&self, news: StreamNews, seen: u64) {
        let mut last_seq = seen;
        for commit in news.commits {
            last_seq = commit.last_seq;
            self.topics.publish(
                news.stream,
                Published {
                    first_seq: commit.first_seq,
                    last_seq: commit.last_seq,
                    frames: Bytes::from(commit.frames.into_bytes()),
                    end: false,
                },
            );
        }
        if news.ended {
            let end = Published { first_seq: last_seq + 1, last_seq, frames: Bytes::new(), end: true };
            self.topics.publish(news.stream, end);
        }
    }

    /// Announces the streams with readers here: new ones immediately, all of them every two seconds. Withdraws streams
    /// without readers.
    async fn announce(&self, seen: &[(Uuid, u64)]) -> Result<(), StoreError> {
        if !self.others.load(Ordering::Relaxed) && self.announced.lock().is_empty() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        let (due, gone) = {
            let announced = self.announced.lock();
            let is_due = |stream: &Uuid| {
                announced.get(stream).is_none_or(|at| now.saturating_sub(*at) >= ANNOUNCE_EVERY)
            };
            let due: Vec<Uuid> = seen.iter().map(|(stream, _)| *stream).filter(is_due).collect();
            let is_read = |stream: &&Uuid| seen.binary_search_by_key(*stream, |(stream, _)| *stream).is_ok();
            let gone: Vec<Uuid> = announced.keys().filter(|stream| !is_read(stream)).copied().collect();
            (due, gone)
        };
        if !due.is_empty() {
            self.store.announce_readers(self.instance, &due).await?;
            self.announced.lock().extend(due.into_iter().map(|stream| (stream, now)));
        }
        if !gone.is_empty() {
            self.store.withdraw_readers(self.instance, &gone).await?;
            self.announced.lock().retain(|stream, _| !gone.contains(stream));
        }
        Ok(())
    }
}
