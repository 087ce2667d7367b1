//! A topic for each stream that is written or read here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use uuid::Uuid;

use super::recent::{Behind, Recent};

/// Maximum readers that read the database at once. If thousands of readers lag on a busy machine, each would want a
/// connection, and few would get one in time.
const CATCHING_UP: usize = 4;

/// Events committed together, in wire format. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Published {
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event; one less than `first_seq` if empty.
    pub last_seq: u64,
    /// The events in SSE format.
    pub frames: Bytes,
    /// Whether the stream ends here.
    pub end: bool,
}

/// A stream's topic.
pub struct Topic {
    /// Empty without readers.
    recent: Mutex<Recent>,
    news: Notify,
    readers: watch::Sender<usize>,
    produced_here: AtomicBool,
}

impl Topic {
    fn new() -> Self {
        Self {
            recent: Mutex::default(),
            news: Notify::new(),
            readers: watch::Sender::new(0),
            produced_here: AtomicBool::new(false),
        }
    }

    /// Notes that a reader has read the database up to this event. A foreign stream's other readers receive nothing by
    /// themselves, so they read the database too.
    pub(super) fn has_read(&self, seq: u64) {
        if !self.is_produced_here() && self.last_seq() < seq {
            let first_seq = seq.saturating_add(1);
            self.publish(Published { first_seq, last_seq: seq, frames: Bytes::new(), end: false });
        }
    }

    fn is_read(&self) -> bool {
        *self.readers.borrow() > 0
    }

    /// Whether a run in this process writes the stream.
    #[must_use]
    pub fn is_produced_here(&self) -> bool {
        self.produced_here.load(Ordering::Acquire)
    }

    /// The number of readers, as a watch channel.
    #[must_use]
    pub fn readers(&self) -> watch::Receiver<usize> {
        self.readers.subscribe()
    }

    /// The events after a reader's position.
    pub(super) fn behind(&self, place: u64) -> Behind {
        self.recent.lock().behind(place)
    }

    /// Number of the last event published here, or read from the database by a foreign stream's reader.
    pub(super) fn last_seq(&self) -> u64 {
        self.recent.lock().last_seq()
    }

    /// Waits for events published after this call, whenever the future is first polled.
    pub(super) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    fn publish(&self, published: Published) {
        self.change(|recent| recent.push(published));
        self.news.notify_waiters();
    }

    fn subscribe(&self) {
        self.readers.send_modify(|readers| *readers += 1);
    }

    pub(super) fn unsubscribe(&self) {
        self.readers.send_modify(|readers| *readers = readers.saturating_sub(1));
        self.change(|_| {});
    }

    /// Counts readers under the lock: a reader that is counted later finds nothing and reads the database.
    fn change(&self, change: impl FnOnce(&mut Recent)) {
        let mut recent = self.recent.lock();
        change(&mut recent);
        if *self.readers.borrow() == 0 {
            recent.forget();
        }
    }
}

/// All topics in this process.
#[derive(Clone)]
pub struct Topics {
    map: Arc<DashMap<Uuid, Arc<Topic>>>,
    catching_up: Arc<Semaphore>,
    /// Streams that are read here and may be written by another instance.
    foreign: Arc<Mutex<BTreeSet<Uuid>>>,
    foreign_added: Arc<Notify>,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            map: Arc::default(),
            catching_up: Arc::new(Semaphore::new(CATCHING_UP)),
            foreign: Arc::default(),
            foreign_added: Arc::default(),
        }
    }
}

impl Topics {
    /// The topic of a stream that this process is about to write.
    #[must_use]
    pub fn produce(&self, stream: Uuid) -> Arc<Topic> {
        self.with(stream, |topic| topic.produced_here.store(true, Ordering::Release))
    }

    /// The topic of a stream, with one more reader.
    pub(super) fn subscribe(&self, stream: Uuid) -> Arc<Topic> {
        let topic = self.with(stream, Topic::subscribe);
        self.note_foreign(stream, &topic);
        topic
    }

    fn note_foreign(&self, stream: Uuid, topic: &Topic) {
        if !topic.is_produced_here() && topic.is_read() && self.foreign.lock().insert(stream) {
            self.foreign_added.notify_one();
        }
    }

    /// The streams read here and written by another instance, each with the last event known here.
    pub(super) fn foreign(&self) -> Vec<(Uuid, u64)> {
        let mut found = Vec::new();
        self.foreign.lock().retain(|stream| {
            let topic = self.map.get(stream).map(|topic| Arc::clone(&topic));
            let Some(topic) = topic.filter(|topic| !topic.is_produced_here() && topic.is_read()) else {
                return false;
            };
            found.push((*stream, topic.last_seq()));
            true
        });
        found
    }

    /// Waits until another foreign stream is added.
    pub(super) async fn foreign_added(&self) {
        self.foreign_added.notified().await;
    }

    /// Notes that the local writer has stopped: readers poll the database.
    pub(crate) fn abandon(&self, stream: Uuid) {
        // Not under the map's lock, which `foreign` takes after its own lock.
        let topic = self.map.get(&stream).map(|topic| Arc::clone(&topic));
        if let Some(topic) = topic {
            topic.produced_here.store(false, Ordering::Release);
            topic.news.notify_waiters();
            self.note_foreign(stream, &topic);
        }
        self.forget_unused(stream);
    }

    /// Waits for a permit to read the database, in arrival order.
    pub(super) async fn turn_to_catch_up(&self) -> Option<SemaphorePermit<'_>> {
        // Unreachable: it is never closed.
        self.catching_up.acquire().await.ok()
    }

    /// Uses a topic while it cannot be removed.
    fn with(&self, stream: Uuid, used: impl FnOnce(&Topic)) -> Arc<Topic> {
        let topic = self.map.entry(stream).or_insert_with(|| Arc::new(Topic::new()));
        used(&topic);
        Arc::clone(&topic)
    }

    /// Publishes committed events to the stream's readers.
    pub fn publish(&self, stream: Uuid, published: Published) {
        // No topic remains after the end; a new reader reads the rows, which are committed.
        let topic = if published.end {
            self.map.remove(&stream).map(|(_, topic)| topic)
        } else {
            self.map.get(&stream).map(|topic| Arc::clone(&topic))
        };
        // Having no listener is fine.
        if let Some(topic) = topic {
            topic.publish(published);
        }
    }

    /// Removes a topic without a local writer or readers.
    pub(super) fn forget_unused(&self, stream: Uuid) {
        if let Entry::Occupied(entry) = self.map.entry(stream) {
            let unused = !entry.get().is_produced_here() && *entry.get().readers.borrow() == 0;
            if unused {
                entry.remove();
            }
        }
    }

    /// Number of topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether no topic exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}
