//! Handles, the only access to an actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};

use super::Envelope;

/// The message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    /// The mailbox is full.
    #[error("the actor's mailbox is full")]
    Full,
    /// The actor has ended for good.
    #[error("the actor has ended")]
    Gone,
}

/// Sends messages to one actor, in whichever life it is.
///
/// A message is in the mailbox once `tell` returns, even if the sender ends, and the mailbox outlives a restart. Its
/// slot stays occupied until it is handled, so the limit holds for any number of senders.
pub struct Handle<M> {
    inner: Arc<HandleInner<M>>,
}

struct HandleInner<M> {
    sender: mpsc::UnboundedSender<Envelope<M>>,
    places: Arc<Semaphore>,
    capacity: usize,
    retiring: Mutex<()>,
    told: AtomicU64,
    taken: Arc<AtomicU64>,
}

/// A reserved mailbox slot.
pub struct Place<M> {
    inner: Arc<HandleInner<M>>,
    permit: OwnedSemaphorePermit,
}

impl<M> Place<M> {
    /// Sends a message. An actor that has meanwhile failed for good drops it, like all waiting messages.
    pub fn put(self, message: M) {
        let envelope = Envelope::new(message, self.permit, Arc::clone(&self.inner.taken));
        if self.inner.sender.send(envelope).is_ok() {
            self.inner.told.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<M> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<M> Handle<M> {
    pub(super) fn new(capacity: usize) -> (Self, mpsc::UnboundedReceiver<Envelope<M>>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let inner = HandleInner {
            sender,
            places: Arc::new(Semaphore::new(capacity)),
            capacity,
            retiring: Mutex::new(()),
            told: AtomicU64::new(0),
            taken: Arc::new(AtomicU64::new(0)),
        };
        (Self { inner: Arc::new(inner) }, receiver)
    }

    /// Adds a message to the mailbox.
    ///
    /// # Errors
    /// [`TellError`]; then the message is dropped.
    pub fn tell(&self, message: M) -> Result<(), TellError> {
        self.reserve().map(|place| place.put(message))
    }

    /// Reserves a slot in the mailbox. While a slot is reserved, the actor does not passivate.
    ///
    /// # Errors
    /// [`TellError`] when no slot is free.
    pub fn reserve(&self) -> Result<Place<M>, TellError> {
        let take = || Arc::clone(&self.inner.places).try_acquire_owned();
        let mut permit = take();
        if matches!(permit, Err(TryAcquireError::NoPermits)) {
            // A retiring actor briefly holds all slots; it is gone, not full.
            let _retired = self.inner.retiring.lock();
            permit = take();
        }
        match permit {
            Ok(permit) => Ok(Place { inner: Arc::clone(&self.inner), permit }),
            Err(TryAcquireError::NoPermits) => Err(TellError::Full),
            Err(TryAcquireError::Closed) => Err(TellError::Gone),
        }
    }

    /// Whether the actor has ended for good.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.inner.places.is_closed()
    }

    /// Whether both handles belong to the same actor.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Closes the mailbox if no message is waiting or being handled; returns whether it was closed.
    pub(super) fn retire(&self) -> bool {
        let all = u32::try_from(self.inner.capacity).unwrap_or(u32::MAX);
        let _retiring = self.inner.retiring.lock();
        let idle = self.inner.places.try_acquire_many(all).is_ok_and(|places| {
            // Closed before the slots are released, so no sender can reserve one in between.
            self.inner.places.close();
            drop(places);
            true
        });
        idle || self.is_gone()
    }

    /// Closes the mailbox.
    pub(super) fn close(&self) {
        self.inner.places.close();
    }

    /// Number of waiting messages, and of messages ever handled.
    pub(super) fn progress(&self) -> (u64, u64) {
        let taken = self.inner.taken.load(Ordering::Relaxed);
        (self.inner.told.load(Ordering::Relaxed).saturating_sub(taken), taken)
    }
}
