//! What is kept of the budget and of the time for later parts of a search.

use std::time::Duration;

use super::lab::ActorLab;

/// The part of the time that is kept for the final: one of so many.
const KEPT_TIME: u32 = 10;

/// Thousandths of the budget that are kept for later.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    /// Until the final.
    pub(super) for_final: u64,
    /// Until demos are compared, of the time, too.
    pub(super) for_demos: u64,
}

impl ActorLab<'_> {
    /// Keeps nothing more for demos.
    pub(super) fn release_kept_for_demos(&self) {
        let mut kept = self.kept.lock();
        kept.for_demos = 0;
        self.session.calls.keep(kept.for_final);
    }

    /// The time that is left; parts of it are kept for the final and for demos.
    pub(super) fn time_left(&self, is_final: bool) -> Option<Duration> {
        let limit = self.session.settings.max_active?;
        let has_final = self.session.optimizer.as_ref().is_some_and(|optimizer| optimizer.has_final());
        let for_demos = u32::try_from(self.kept.lock().for_demos).unwrap_or_default();
        let kept = limit / KEPT_TIME + limit / 1_000 * for_demos;
        let limit = if is_final || !has_final { limit } else { limit.saturating_sub(kept) };
        Some(limit.saturating_sub(self.progress.lock().active(self.now())))
    }

    /// Ends when the time is over.
    pub(super) async fn time_is_over(&self, is_final: bool) {
        match self.time_left(is_final) {
            Some(left) => self.session.ports.clock.sleep(left).await,
            None => std::future::pending().await,
        }
    }
}
