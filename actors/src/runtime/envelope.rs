//! A message in a mailbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;

/// A message with its sender's span and its mailbox slot, which is released when the envelope is dropped.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub struct Envelope<M> {
    message: M,
    span: Span,
    _place: OwnedSemaphorePermit,
    taken: Arc<AtomicU64>,
}

impl<M> Envelope<M> {
    pub(super) fn new(message: M, place: OwnedSemaphorePermit, taken: Arc<AtomicU64>) -> Self {
        Self { message, span: Span::current(), _place: place, taken }
    }

    /// Handles the message inside its sender's span.
    pub fn open<T>(self, handle: impl FnOnce(M) -> T) -> T {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let _entered = self.span.enter();
        handle(self.message)
    }
}
