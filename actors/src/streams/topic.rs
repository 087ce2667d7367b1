//! One topic for each stream that is being written or read here.

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

/// Readers that read the database at the same time. When a busy machine lets thousands fall behind at once, each would
/// want a connection and few would get one in time.
const CATCHING_UP: usize = 4;

/// Events that were committed together, as the bytes that are sent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Published {
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event; one less than `first_seq` when there are none.
    pub last_seq: u64,
    /// The events as server-sent events.
    pub frames: Bytes,
    /// Whether nothing follows.
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

    /// A reader has read the database up to this event, which is stored there. Of a foreign stream nothing comes to the other
    /// readers by itself, so they are sent to the database too.
    pub(super) fn has_read(&self, seq: u64) {
        if !self.is_produced_here() && self.last_seq() < seq {
            let first_seq = seq.saturating_add(1);
            self.publish(Published { first_seq, last_seq: seq, frames: Bytes::new(), end: false });
        }
    }

    fn is_read(&self) -> bool {
        *self.readers.borrow() > 0
    }

    /// Whether a turn of this process writes the stream.
    #[must_use]
    pub fn is_produced_here(&self) -> bool {
        self.produced_here.load(Ordering::Acquire)
    }

    /// How many readers there are, and whenever that changes.
    #[must_use]
    pub fn readers(&self) -> watch::Receiver<usize> {
        self.readers.subscribe()
    }

    /// What follows a reader's place.
    pub(super) fn behind(&self, place: u64) -> Behind {
        self.recent.lock().behind(place)
    }

    /// Number of the last event that was published here, or that a reader of a foreign stream has read from the database.
    pub(super) fn last_seq(&self) -> u64 {
        self.recent.lock().last_seq()
    }

    /// Waits for what is published after this call, whenever it is polled first.
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

    /// The readers are counted under the lock: a reader that is counted later finds nothing and reads the database.
    fn change(&self, change: impl FnOnce(&mut Recent)) {
        let mut recent = self.recent.lock();
        change(&mut recent);
        if *self.readers.borrow() == 0 {
            recent.forget();
        }
    }
}

/// Every topic of this process.
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
    /// The topic of a stream that a turn of this process is about to write.
    #[must_use]
    pub fn produce(&self, stream: Uuid) -> Arc<Topic> {
        self.with(stream, |topic| topic.produced_here.store(true, Ordering::Release))
    }

    /// The topic of a stream for one reader more.
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

    /// The streams that are read here and written by another instance, each with the last event that is known here.
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

    /// Waits until another stream is added to them.
    pub(super) async fn foreign_added(&self) {
        self.foreign_added.notified().await;
    }

    /// The writer of the stream here writes no more of it: readers poll the database.
    pub(crate) fn abandon(&self, stream: Uuid) {
        // Not under the map's lock, which `foreign` takes after its own.
        let topic = self.map.get(&stream).map(|topic| Arc::clone(&topic));
        if let Some(topic) = topic {
            topic.produced_here.store(false, Ordering::Release);
            topic.news.notify_waiters();
            self.note_foreign(stream, &topic);
        }
        self.forget_unused(stream);
    }

    /// A turn at reading the database; those who wait get theirs in the order in which they came.
    pub(super) async fn turn_to_catch_up(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.catching_up.acquire().await.ok()
    }

    /// Uses a topic while it cannot be forgotten.
    fn with(&self, stream: Uuid, used: impl FnOnce(&Topic)) -> Arc<Topic> {
        let topic = self.map.entry(stream).or_insert_with(|| Arc::new(Topic::new()));
        used(&topic);
        Arc::clone(&topic)
    }

    /// Hands committed events to the stream's readers.
    pub fn publish(&self, stream: Uuid, published: Published) {
        // A reader that receives the end finds no topic after it; a new reader reads the rows, which are committed.
        let topic = if published.end {
            self.map.remove(&stream).map(|(_, topic)| topic)
        } else {
            self.map.get(&stream).map(|topic| Arc::clone(&topic))
        };
        // No listener is no error.
        if let Some(topic) = topic {
            topic.publish(published);
        }
    }

    /// Removes a topic without a writer and without readers here.
    pub(super) fn forget_unused(&self, stream: Uuid) {
        if let Entry::Occupied(entry) = self.map.entry(stream) {
            let unused = !entry.get().is_produced_here() && *entry.get().readers.borrow() == 0;
            if unused {
                entry.remove();
            }
        }
    }

    /// How many topics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}
