//! Deduplicates reads: concurrent requests for a key share one read and its outcome.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Pending or abandoned reads by key.
pub(super) struct Flights<K, V> {
    turns: Mutex<HashMap<K, Weak<Flight<V>>>>,
}

/// A read; empty until it has ended.
type Flight<V> = Turn<Option<Result<V, ReadFailure>>>;

/// An error that is copied for each waiting request.
#[derive(Debug, Clone)]
struct ReadFailure {
    code: ErrorCode,
    cause: String,
}

/// Maximum entries before abandoned flights are dropped.
const MAX_IDLE: usize = 1_024;

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self { turns: Mutex::default() }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Flights<K, V> {
    /// Returns the outcome of `read`, or of a pending read for the same key. If the reading caller is dropped, a
    /// waiting one takes over.
    ///
    /// # Errors
    /// The error of the read, for all waiting callers, so that an unresponsive database is not queried by one after
    /// another.
    pub(super) async fn read(&self, key: K, read: impl Future<Output = ApiResult<V>>) -> ApiResult<V> {
        let flight = self.flight(&key);
        let mut outcome = flight.lock().await;
        if let Some(outcome) = &*outcome {
            return outcome.clone().map_err(|failure| ApiError::new(failure.code).with_cause(failure.cause));
        }
        let read = read.await;
        // Later callers start a new read.
        self.turns.lock().remove(&key);
        let failed = |error: &ApiError| ReadFailure { code: error.code(), cause: error.reason() };
        *outcome = Some(read.as_ref().map(V::clone).map_err(failed));
        read
    }

    fn flight(&self, key: &K) -> Arc<Flight<V>> {
        let mut turns = self.turns.lock();
        if turns.len() >= MAX_IDLE {
            turns.retain(|_, flight| flight.strong_count() > 0);
        }
        let known = turns.get(key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let flight = Arc::new(Turn::new(None));
            turns.insert(key.clone(), Arc::downgrade(&flight));
            flight
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::{join, join_all};
    use tokio::sync::Semaphore;

    use super::*;

    /// Counts its reads, each of which waits for a permit.
    #[derive(Default)]
    struct Reads {
        flights: Flights<u8, usize>,
        made: AtomicUsize,
    }

    impl Reads {
        async fn read(&self, ends: &Semaphore, fails: bool) -> Result<usize, ErrorCode> {
            let read = async {
                let number = self.made.fetch_add(1, Ordering::Relaxed);
                ends.acquire().await.unwrap().forget();
                if fails { Err(ApiError::new(ErrorCode::DatabaseUnavailable)) } else { Ok(number) }
            };
            self.flights.read(1, read).await.map_err(|error| error.code())
        }
    }

    #[tokio::test]
    async fn concurrent_callers_share_the_outcome_of_a_read() {
        for fails in [true, false] {
            let (reads, ends) = (Reads::default(), Semaphore::new(0));
            let all = join_all((0..8).map(|_| reads.read(&ends, fails)));
            let (outcomes, ()) = join(all, async { ends.add_permits(1) }).await;
            let expected = if fails { Err(ErrorCode::DatabaseUnavailable) } else { Ok(0) };
            assert_eq!(outcomes, vec![expected; 8]);
            assert_eq!(reads.made.load(Ordering::Relaxed), 1);
            // Later callers do not receive this outcome.
            ends.add_permits(1);
            assert_eq!(reads.read(&ends, false).await, Ok(1));
            assert!(reads.flights.turns.lock().is_empty());
        }
    }

    #[tokio::test]
    async fn a_waiting_caller_takes_over_an_abandoned_read() {
        let (reads, ends) = (Reads::default(), Semaphore::new(0));
        let mut first = Box::pin(reads.read(&ends, false));
        let mut second = Box::pin(reads.read(&ends, false));
        assert!(
            futures_util::poll!(&mut first).is_pending() && futures_util::poll!(&mut second).is_pending()
        );
        drop(first);
        ends.add_permits(1);
        assert_eq!(second.await, Ok(1));
    }
}
