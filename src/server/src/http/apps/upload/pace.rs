//! The minimum upload rate.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kernel::Clock;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Maximum time for a whole body.
const MAX_TIME: Duration = Duration::from_secs(600);
/// Waiting time before the rate counts.
const START: Duration = Duration::from_secs(10);
/// Minimum average bytes per second of waiting.
const RATE: u64 = 32 << 10;

/// Measures a client's rate. Only time spent waiting for the client counts.
pub(super) struct UploadPace<'a> {
    clock: &'a dyn Clock,
    end: Duration,
    waited: Duration,
    received: u64,
}

impl<'a> UploadPace<'a> {
    pub(super) fn new(clock: &'a dyn Clock) -> Self {
        let end = clock.monotonic().saturating_add(MAX_TIME);
        Self { clock, end, waited: Duration::ZERO, received: 0 }
    }

    /// Returns the next item of the stream.
    ///
    /// # Errors
    /// 408 if the client is too slow.
    pub(super) async fn next<T>(
        &mut self,
        stream: &mut (impl Stream<Item = T> + Unpin),
        bytes: impl FnOnce(&T) -> usize,
    ) -> ApiResult<Option<T>> {
        let late = || ApiError::new(ErrorCode::RequestTimeout);
        let begun = self.clock.monotonic();
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / RATE);
        let left = START.max(earned).saturating_sub(self.waited).min(self.end.saturating_sub(begun));
        if left.is_zero() {
            return Err(late());
        }
        let next = kernel::timeout(self.clock, left, stream.next()).await.ok_or_else(late)?;
        self.waited = self.waited.saturating_add(self.clock.monotonic().saturating_sub(begun));
        let bytes = next.as_ref().map_or(0, bytes);
        self.received = self.received.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use kernel::ManualClock;

    use super::*;

    /// Counts the accepted pieces of `bytes` bytes, sent one per `span`.
    async fn accepted(bytes: usize, span: Duration) -> usize {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let mut pace = UploadPace::new(&clock);
        for number in 0..1_000 {
            let next = async {
                clock.sleep(span).await;
                bytes
            };
            let mut stream = Box::pin(stream::once(next));
            let (read, ()) = tokio::join!(pace.next(&mut stream, |bytes| *bytes), async {
                tokio::task::yield_now().await;
                clock.advance(span);
            });
            if read.is_err() {
                return number;
            }
        }
        1_000
    }

    #[tokio::test]
    async fn an_upload_must_reach_the_rate_in_ten_seconds_and_end_in_ten_minutes() {
        let second = Duration::from_secs(1);
        for slow in [1, 31 << 10] {
            assert!((9..=10).contains(&accepted(slow, second).await), "{slow} bytes a second");
        }
        assert!((599..=600).contains(&accepted(64 << 10, second).await));
        assert_eq!(accepted(1 << 20, Duration::from_millis(1)).await, 1_000);
    }
}
