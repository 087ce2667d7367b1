//! The endpoints that an instance's runs call, each with its own pace.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::ports::ModelCall;
use kernel::{Clock, Random, jittered};
use models::PRACTICE;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pace::{Admission, Pace};

/// From this number on, unused endpoints are dropped, because requests may name any number.
const MOST_KNOWN: usize = 1_000;

/// All endpoints of an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    known: Arc<Mutex<HashMap<String, Arc<PacedEndpoint>>>>,
}

impl Endpoints {
    /// The endpoint of a call; `None` for the built-in model, which has no limit.
    pub(super) fn for_call(&self, call: &ModelCall<'_>) -> Option<Arc<PacedEndpoint>> {
        let provider = call.model.split_once('/').map_or(call.model, |(provider, _)| provider);
        if provider == PRACTICE {
            return None;
        }
        let own = call.endpoint.map(ToString::to_string).unwrap_or_default();
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, endpoint| Arc::strong_count(endpoint) > 1);
        }
        Some(Arc::clone(known.entry(format!("{provider} {own}")).or_default()))
    }
}

/// One endpoint.
#[derive(Debug, Default)]
pub(super) struct PacedEndpoint {
    pace: Mutex<Pace>,
    answers: AtomicU64,
    changed: Notify,
}

impl PacedEndpoint {
    /// Waits until a request may be sent.
    pub(super) async fn enter(self: Arc<Self>, clock: &dyn Clock) -> InFlight {
        loop {
            // Registered before the check, so a request that ends meanwhile wakes this one.
            let changed = self.changed.notified();
            let now = clock.monotonic();
            let admission = self.pace.lock().begin(now);
            match admission {
                Admission::Now => break,
                Admission::At(time) => clock.sleep(time.saturating_sub(now)).await,
                Admission::Later => changed.await,
            }
        }
        InFlight(self)
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct InFlight(Arc<PacedEndpoint>);

impl InFlight {
    /// The endpoint has answered.
    pub(super) fn answered(&self) {
        self.0.pace.lock().answered();
        self.0.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of requests that the endpoint has answered.
    pub(super) fn answers(&self) -> u64 {
        self.0.answers.load(Ordering::Relaxed)
    }

    /// The endpoint refused the request because there are too many.
    pub(super) fn refused(&self, now: Duration, retry_after: Option<Duration>, random: &dyn Random) {
        self.0.pace.lock().refused(now, retry_after, |pause| jittered(pause, random));
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.pace.lock().end();
        // Wakes all waiters: a single one may be cancelled before it takes the slot.
        self.0.changed.notify_waiters();
    }
}
