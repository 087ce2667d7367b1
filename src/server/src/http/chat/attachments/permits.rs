//! Limits concurrent uploads.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Maximum per session.
pub(super) const PER_SESSION: usize = 2;
/// Maximum per network, and per workspace.
pub(in crate::http) const PER_PARTY: usize = 4;
/// Maximum concurrent writes to the store, for authenticated callers and for strangers separately.
const STORING: usize = 8;
/// `Retry-After` in seconds for a refused client.
const RETRY_SECONDS: i64 = 2;

/// Permits in use, by party. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::http) struct UploadPermits(Arc<Mutex<HashMap<String, usize>>>);

impl UploadPermits {
    /// Acquires a permit unless one of the parties has its maximum; released on drop.
    pub(in crate::http) fn acquire(&self, parties: Vec<(String, usize)>) -> ApiResult<UploadPermit> {
        let mut open = self.0.lock();
        let has_room = |(party, most): &(String, usize)| open.get(party).copied().unwrap_or_default() < *most;
        if !parties.iter().all(has_room) {
            return Err(busy());
        }
        let parties: Vec<String> = parties.into_iter().map(|(party, _)| party).collect();
        for party in &parties {
            *open.entry(party.clone()).or_default() += 1;
        }
        Ok(UploadPermit { parties, permits: self.clone() })
    }
}

/// The 429 error for a client with too many uploads in progress.
pub(super) fn busy() -> ApiError {
    ApiError::new(ErrorCode::ChatRateLimitedUploads).retry_after(RETRY_SECONDS)
}

/// The permit for an upload.
pub(in crate::http) struct UploadPermit {
    parties: Vec<String>,
    permits: UploadPermits,
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        let mut open = self.permits.0.lock();
        for party in &self.parties {
            if let Some(count) = open.get_mut(party) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.remove(party);
                }
            }
        }
    }
}

/// Turns for writing bytes. An upload holds one only while it writes, so that a slow client does not block others.
pub(in crate::http) struct StoreTurns {
    known: Semaphore,
    strangers: Semaphore,
}

impl Default for StoreTurns {
    fn default() -> Self {
        Self { known: Semaphore::new(STORING), strangers: Semaphore::new(STORING) }
    }
}

impl StoreTurns {
    /// Waits for a turn.
    pub(super) async fn next(&self, is_stranger: bool) -> ApiResult<SemaphorePermit<'_>> {
        let turns = if is_stranger { &self.strangers } else { &self.known };
        turns.acquire().await.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_two_permits_and_a_network_four() {
        let permits = UploadPermits::default();
        let acquire = |session: &str, network: &str| {
            permits.acquire(vec![(format!("s{session}"), PER_SESSION), (format!("n{network}"), PER_PARTY)])
        };
        let first = acquire("a", "1").unwrap();
        let second = acquire("a", "1").unwrap();
        assert!(acquire("a", "2").is_err(), "of the session");
        drop(first);
        let third = acquire("a", "1").unwrap();
        let others: Vec<_> = ["b", "c"].map(|session| acquire(session, "1").unwrap()).into();
        assert!(acquire("d", "1").is_err(), "of the network");
        let more: Vec<_> = ["e", "f", "g", "h"].map(|session| acquire(session, "2").unwrap()).into();
        let next = acquire("i", "3").unwrap();
        drop((second, third, others, more, next));
        assert!(permits.0.lock().is_empty());
    }

    #[tokio::test]
    async fn strangers_and_authenticated_callers_have_separate_turns() {
        for is_stranger in [true, false] {
            let turns = StoreTurns::default();
            let mut taken = Vec::new();
            for _ in 0..STORING {
                taken.push(turns.next(is_stranger).await.unwrap());
            }
            assert!(futures_util::poll!(Box::pin(turns.next(is_stranger))).is_pending());
            assert!(futures_util::poll!(Box::pin(turns.next(!is_stranger))).is_ready());
        }
    }
}
