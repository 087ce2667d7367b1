//! One topic for each stream that is being written or read here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Semaphore, SemaphorePermit, broadcast, watch};
use uuid::Uuid;

/// Commits that a subscriber may lag behind before it is cut and reads the database instead.
const CAPACITY: usize = 32;
/// Subscribers that read the database at the same time. When a busy machine cuts thousands at once, each would want a
/// connection and few would get one in time.
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
    events: broadcast::Sender<Published>,
    readers: watch::Sender<usize>,
    produced_here: AtomicBool,
    ended: AtomicBool,
    last_seq: AtomicU64,
}

impl Topic {
    fn new() -> Self {
        Self {
            events: broadcast::Sender::new(CAPACITY),
            readers: watch::Sender::new(0),
            produced_here: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            last_seq: AtomicU64::new(0),
        }
    }

    /// Whether a turn of this process writes the stream.
    #[must_use]
    pub fn is_produced_here(&self) -> bool {
        self.produced_here.load(Ordering::Acquire)
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Sequence number of the last event that was committed by this process.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq.load(Ordering::Acquire)
    }

    /// How many readers there are, and whenever that changes.
    #[must_use]
    pub fn readers(&self) -> watch::Receiver<usize> {
        self.readers.subscribe()
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Published> {
        self.readers.send_modify(|readers| *readers += 1);
        self.events.subscribe()
    }

    pub(super) fn unsubscribe(&self) {
        self.readers.send_modify(|readers| *readers = readers.saturating_sub(1));
    }
}

/// Every topic of this process.
#[derive(Clone)]
pub struct Topics {
    map: Arc<DashMap<Uuid, Arc<Topic>>>,
    catching_up: Arc<Semaphore>,
}

impl Default for Topics {
    fn default() -> Self {
        Self { map: Arc::default(), catching_up: Arc::new(Semaphore::new(CATCHING_UP)) }
    }
}

impl Topics {
    /// The topic of a stream that a turn of this process is about to write.
    #[must_use]
    pub fn produce(&self, stream: Uuid) -> Arc<Topic> {
        let topic = self.get(stream);
        topic.produced_here.store(true, Ordering::Release);
        topic
    }

    /// The turn that was about to write the stream will not.
    pub(crate) fn abandon(&self, stream: Uuid) {
        if let Some(topic) = self.map.get(&stream) {
            topic.produced_here.store(false, Ordering::Release);
        }
        self.forget_unused(stream);
    }

    /// A turn at reading the database; those who wait get theirs in the order in which they came.
    pub(super) async fn turn_to_catch_up(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.catching_up.acquire().await.ok()
    }

    pub(super) fn get(&self, stream: Uuid) -> Arc<Topic> {
        Arc::clone(&self.map.entry(stream).or_insert_with(|| Arc::new(Topic::new())))
    }

    /// Hands committed events to the stream's readers.
    pub fn publish(&self, stream: Uuid, published: Published) {
        let Some(topic) = self.map.get(&stream).map(|topic| Arc::clone(&topic)) else { return };
        topic.last_seq.fetch_max(published.last_seq, Ordering::AcqRel);
        let end = published.end;
        if end {
            topic.ended.store(true, Ordering::Release);
        }
        // Nobody listening is no error: the rows are there.
        let _ = topic.events.send(published);
        if end {
            self.map.remove(&stream);
        }
    }

    /// Forgets a topic that nobody writes or reads here.
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
