//! Budget and time reserved for later phases of a search.

use std::time::Duration;

use super::lab::ActorLab;

/// The share of time reserved for the final: one in this many.
const KEPT_TIME: u32 = 10;

/// Thousandths of the budget reserved for later phases.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reservations {
    /// Reserved for the final.
    pub(super) for_final: u64,
    /// Reserved until demos are compared; also applies to time.
    pub(super) for_demos: u64,
}

impl ActorLab<'_> {
    /// Releases the reservation for demos.
    pub(super) fn release_kept_for_demos(&self) {
        let mut kept = self.kept.lock();
        kept.for_demos = 0;
        self.session.calls.keep(kept.for_final);
    }

    /// The remaining time, without the reservations for the final and for demos.
    pub(super) fn time_left(&self, is_final: bool) -> Option<Duration> {
        let limit = self.session.settings.max_active?;
        let has_final = self.session.optimizer.as_ref().is_some_and(|optimizer| optimizer.has_final());
        let for_demos = u32::try_from(self.kept.lock().for_demos).unwrap_or_default();
        let kept = limit / KEPT_TIME + limit / 1_000 * for_demos;
        let limit = if is_final || !has_final { limit } else { limit.saturating_sub(kept) };
        Some(limit.saturating_sub(self.progress.lock().active(self.now())))
    }

    /// Ends when the time is up.
    pub(super) async fn time_is_over(&self, is_final: bool) {
        match self.time_left(is_final) {
            Some(left) => self.session.ports.clock.sleep(left).await,
            None => std::future::pending().await,
        }
    }
}
