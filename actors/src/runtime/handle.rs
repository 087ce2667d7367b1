//! The only way to an actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, TryAcquireError, mpsc};

use super::Envelope;

/// The message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    /// As many messages wait as may.
    #[error("the actor's mailbox is full")]
    Full,
    /// The actor has ended for good.
    #[error("the actor has ended")]
    Gone,
}

/// Sends messages to one actor, whichever of its lives is running.
///
/// A message is in the mailbox once `tell` returns, whatever becomes of the sender, and the mailbox outlives a restart.
/// Its place counts until it is handled, so the bound holds under any number of senders.
pub struct Handle<M> {
    inner: Arc<Inner<M>>,
}

struct Inner<M> {
    sender: mpsc::UnboundedSender<Envelope<M>>,
    places: Arc<Semaphore>,
    capacity: usize,
    told: AtomicU64,
    taken: Arc<AtomicU64>,
}

impl<M> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<M> Handle<M> {
    pub(super) fn new(capacity: usize) -> (Self, mpsc::UnboundedReceiver<Envelope<M>>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let inner = Inner {
            sender,
            places: Arc::new(Semaphore::new(capacity)),
            capacity,
            told: AtomicU64::new(0),
            taken: Arc::new(AtomicU64::new(0)),
        };
        (Self { inner: Arc::new(inner) }, receiver)
    }

    /// Puts a message into the mailbox.
    ///
    /// # Errors
    /// [`TellError`]; the message is dropped then.
    pub fn tell(&self, message: M) -> Result<(), TellError> {
        let place = Arc::clone(&self.inner.places).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => TellError::Full,
            TryAcquireError::Closed => TellError::Gone,
        })?;
        let envelope = Envelope::new(message, place, Arc::clone(&self.inner.taken));
        self.inner.sender.send(envelope).map_err(|_| TellError::Gone)?;
        self.inner.told.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the actor has ended for good.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.inner.places.is_closed()
    }

    /// Whether both handles lead to the same actor.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Takes no more messages, if none is waiting or being handled; says whether it was so.
    pub(super) fn retire(&self) -> bool {
        let all = u32::try_from(self.inner.capacity).unwrap_or(u32::MAX);
        let idle = self.inner.places.try_acquire_many(all).is_ok_and(|places| {
            // Closed before the places are given back, so nobody can slip in between.
            self.inner.places.close();
            drop(places);
            true
        });
        idle || self.is_gone()
    }

    /// Takes no more messages.
    pub(super) fn close(&self) {
        self.inner.places.close();
    }

    /// How many messages wait, and how many were ever taken.
    pub(super) fn progress(&self) -> (u64, u64) {
        let taken = self.inner.taken.load(Ordering::Relaxed);
        (self.inner.told.load(Ordering::Relaxed).saturating_sub(taken), taken)
    }
}
