//! External signals that end or interrupt a run.

use std::sync::Arc;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Pause tokens for runs in this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Pauses(Arc<DashMap<Uuid, CancellationToken>>);

impl Pauses {
    /// The token that is cancelled when a client pauses the run.
    pub(super) fn token(&self, run: Uuid) -> CancellationToken {
        self.0.entry(run).or_default().clone()
    }

    /// Requests a run's pause for a client. Does nothing if the run does not execute here.
    pub(super) fn request(&self, run: Uuid) {
        if let Some(pause) = self.0.get(&run) {
            pause.cancel();
        }
    }

    /// Drops the token of a run that no longer executes here.
    pub(super) fn forget(&self, run: Uuid) {
        self.0.remove(&run);
    }
}

/// The signals that end or interrupt a run.
#[derive(Clone)]
pub(super) struct Halt {
    /// Cancelled when a stop is requested.
    pub(super) stop: CancellationToken,
    /// Cancelled when a client requests a pause.
    pub(super) pause: CancellationToken,
    /// Cancelled when shutdown begins.
    pub(super) draining: CancellationToken,
}

/// The reason why this life of a run executes nothing more; a later life continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    Pause,
    Shutdown,
    /// An endpoint rejects all requests.
    RateLimited,
}

impl Interruption {
    /// The reason in `training_paused`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "client",
            Self::Shutdown => "shutdown",
            Self::RateLimited => "rate_limited",
        }
    }
}

impl Halt {
    /// The reason why this life must not start anything more, if any.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        if self.pause.is_cancelled() {
            return Some(Interruption::Pause);
        }
        self.draining.is_cancelled().then_some(Interruption::Shutdown)
    }

    /// Ends when this life must not start anything more.
    pub(super) async fn interrupted(&self) {
        tokio::select! {
            () = self.pause.cancelled() => {}
            () = self.draining.cancelled() => {}
        }
    }
}
