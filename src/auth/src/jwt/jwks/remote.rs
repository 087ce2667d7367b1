//! A key set that another party publishes: fetched on demand, cached for a while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use kernel::{Clock, timeout};
use parking_lot::Mutex;

use super::KeySet;

/// Maximum key set bytes.
pub const MOST_BYTES: usize = 256 * 1024;
/// Minimum gap between two fetches for keys that are missing from the cached set.
const UNKNOWN_GAP: Duration = Duration::from_secs(30);
/// Minimum gaps after a failed fetch: with an older set, and without one.
const RETRY_GAP: Duration = Duration::from_secs(10);
const RETRY_GAP_EMPTY: Duration = Duration::from_secs(1);
/// Period after its lifetime in which a set that cannot be refetched is still used.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Fetches a key set's text.
///
/// Does not follow redirects. An answer other than 200 is a failure; a body above [`MOST_BYTES`] is not read to its
/// end. [`Remote`] enforces the timeout.
#[async_trait]
pub trait KeySource: Send + Sync + 'static {
    /// Returns the body.
    ///
    /// # Errors
    /// [`FetchFailed`].
    async fn fetch(&self) -> Result<Vec<u8>, FetchFailed>;
}

/// A key set was not fetched. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchFailed(pub String);

/// No key set is cached, and none could be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key set could not be fetched")]
pub struct KeysUnavailable;

type Fetch = Shared<BoxFuture<'static, Option<Arc<KeySet>>>>;

/// A fetched key set and its refetch schedule.
///
/// At most one fetch is under way. All its waiters drive it, so a waiter that leaves does not end it.
pub struct Remote {
    source: Arc<dyn KeySource>,
    named: &'static str,
    clock: Arc<dyn Clock>,
    lifetime: Duration,
    limit: Duration,
    state: Mutex<FetchState>,
}

#[derive(Default)]
struct FetchState {
    loaded: Option<Loaded>,
    flight: Option<Flight>,
    /// Start of the last failed fetch; `None` after a successful one.
    failed_at: Option<Duration>,
    /// Time of the last fetch for an unknown key.
    missed_at: Option<Duration>,
    flights: u64,
}

#[derive(Clone)]
struct Loaded {
    set: Arc<KeySet>,
    /// Start of its fetch: later changes may be missing.
    at: Duration,
}

#[derive(Clone)]
struct Flight {
    number: u64,
    began: Duration,
    fetch: Fetch,
}

/// The set in use.
pub(super) struct Current {
    pub(super) set: Arc<KeySet>,
    /// Whether it was fetched for the current query.
    pub(super) is_new: bool,
}

impl Remote {
    /// Refetches the set after `lifetime`; `limit` is the timeout of a whole fetch.
    #[must_use]
    pub fn new(
        source: Arc<dyn KeySource>,
        lifetime: Duration,
        limit: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { source, named: "SERVICE_AUTH_JWKS_URL", clock, lifetime, limit, state: Mutex::default() }
    }

    /// The set's name in the log.
    #[must_use]
    pub fn named(self, named: &'static str) -> Self {
        Self { named, ..self }
    }

    /// Returns the set, fetched first if missing or too old. A set that cannot be refetched is used for one
    /// more day.
    pub(super) async fn current(&self) -> Result<Current, KeysUnavailable> {
        let flight = {
            let mut state = self.state.lock();
            let now = self.clock.monotonic();
            if let Some(loaded) = &state.loaded
                && now.saturating_sub(loaded.at) < self.lifetime
            {
                return Ok(Current { set: Arc::clone(&loaded.set), is_new: false });
            }
            let gap = if state.loaded.is_some() { RETRY_GAP } else { RETRY_GAP_EMPTY };
            let resting = state.failed_at.is_some_and(|at| now.saturating_sub(at) < gap);
            if resting { None } else { Some(self.join(&mut state, now)) }
        };
        let waited = flight.is_some();
        if let Some(flight) = flight {
            self.land(flight).await;
        }
        let state = self.state.lock();
        let now = self.clock.monotonic();
        let longest = self.lifetime.saturating_add(STALE);
        let usable = state.loaded.as_ref().filter(|loaded| now.saturating_sub(loaded.at) < longest);
        let loaded = usable.ok_or(KeysUnavailable)?;
        Ok(Current { set: Arc::clone(&loaded.set), is_new: waited })
    }

    /// Refetches the set because it lacks a key; `None` if that was tried a moment ago, or fails.
    pub(super) async fn again(&self) -> Option<Arc<KeySet>> {
        let flight = {
            let mut state = self.state.lock();
            let now = self.clock.monotonic();
            if state.flight.is_none() {
                if state.missed_at.is_some_and(|at| now.saturating_sub(at) < UNKNOWN_GAP) {
                    return None;
                }
                state.missed_at = Some(now);
            }
            self.join(&mut state, now)
        };
        self.land(flight).await
    }

    /// Joins the fetch under way or starts one. A fetch beyond its timeout was abandoned by all its waiters.
    fn join(&self, state: &mut FetchState, now: Duration) -> Flight {
        if let Some(flight) = &state.flight
            && now.saturating_sub(flight.began) < self.limit
        {
            return flight.clone();
        }
        state.flights = state.flights.wrapping_add(1);
        let fetch = fetch(Arc::clone(&self.source), self.named, Arc::clone(&self.clock), self.limit);
        let fetch = fetch.boxed().shared();
        let flight = Flight { number: state.flights, began: now, fetch };
        state.flight = Some(flight.clone());
        flight
    }

    /// Waits for a fetch; the first waiter that sees its end stores the result.
    async fn land(&self, flight: Flight) -> Option<Arc<KeySet>> {
        let came = flight.fetch.await;
        let mut state = self.state.lock();
        if state.flight.as_ref().is_some_and(|current| current.number == flight.number) {
            state.flight = None;
            state.failed_at = came.is_none().then_some(flight.began);
            if let Some(set) = &came {
                state.loaded = Some(Loaded { set: Arc::clone(set), at: flight.began });
            }
        }
        came
    }
}

async fn fetch(
    source: Arc<dyn KeySource>,
    named: &'static str,
    clock: Arc<dyn Clock>,
    limit: Duration,
) -> Option<Arc<KeySet>> {
    let came = timeout(&*clock, limit, source.fetch()).await;
    let came =
        came.unwrap_or_else(|| Err(FetchFailed(format!("it took longer than {} s", limit.as_secs_f32()))));
    let read = came.and_then(|body| {
        if body.len() > MOST_BYTES {
            return Err(FetchFailed(format!("it is larger than {MOST_BYTES} bytes")));
        }
        KeySet::parse(&body).map_err(|bad| FetchFailed(bad.to_string()))
    });
    match read {
        Ok(set) => Some(Arc::new(set)),
        Err(why) => {
            tracing::warn!(error = %why, "failed to fetch the key set of {named}");
            None
        }
    }
}
