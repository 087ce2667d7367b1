//! The time limit of an attempt.

use std::time::Duration;

use wire::ErrorCode;

use super::visit::Visit;
use crate::NodeError;

/// The error of an attempt that took longer than its limit.
pub(super) fn timed_out(limit: Duration) -> NodeError {
    let message = format!("took longer than {} s", limit.as_secs_f64());
    NodeError::retryable(ErrorCode::NodeTimeout, message)
}

impl Visit<'_> {
    /// Runs work for at most `limit`; `None` if it takes longer. Time in which model calls wait to be sent does not
    /// count.
    pub(super) async fn in_time<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let (clock, observer) = (self.env.ports.clock, self.env.ports.observer);
        let (begun, waited) = (clock.monotonic(), observer.waited());
        let over = async {
            let mut left = limit;
            while !left.is_zero() {
                clock.sleep(left).await;
                let passed = clock.monotonic().saturating_sub(begun);
                left = limit.saturating_add(observer.waited().saturating_sub(waited)).saturating_sub(passed);
            }
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            // Work that is always ready uses up its task's budget in every poll; the limit must still apply.
            () = tokio::task::unconstrained(over) => None,
        }
    }
}
