//! What ends or interrupts a run from outside.

use std::sync::Arc;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The pauses of the runs of this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Pauses(Arc<DashMap<Uuid, CancellationToken>>);

impl Pauses {
    /// The token that is cancelled when a client pauses the run.
    pub(super) fn of(&self, run: Uuid) -> CancellationToken {
        self.0.entry(run).or_default().clone()
    }

    /// A client wants the run paused. Nothing happens if it does not execute here.
    pub(super) fn request(&self, run: Uuid) {
        if let Some(pause) = self.0.get(&run) {
            pause.cancel();
        }
    }

    /// The run does not execute here any more.
    pub(super) fn forget(&self, run: Uuid) {
        self.0.remove(&run);
    }
}

/// What ends or interrupts a run.
#[derive(Clone)]
pub(super) struct Halt {
    /// Its stop was requested.
    pub(super) stop: CancellationToken,
    /// A client wants it paused.
    pub(super) pause: CancellationToken,
    /// The service is shutting down.
    pub(super) draining: CancellationToken,
}

/// Why nothing more is executed in this life of a run, which another one continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    Pause,
    Shutdown,
    /// An endpoint refuses all requests.
    RateLimited,
}

impl Interruption {
    /// The reason of `training_paused`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "client",
            Self::Shutdown => "shutdown",
            Self::RateLimited => "rate_limited",
        }
    }
}

impl Halt {
    /// Why nothing more may be started in this life, if there is a reason.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        if self.pause.is_cancelled() {
            return Some(Interruption::Pause);
        }
        self.draining.is_cancelled().then_some(Interruption::Shutdown)
    }

    /// Ends when nothing more may be started in this life.
    pub(super) async fn interrupted(&self) {
        tokio::select! {
            () = self.pause.cancelled() => {}
            () = self.draining.cancelled() => {}
        }
    }
}
