//! Chat limits per address, workflow and session.
//!
//! Each instance counts requests separately (GCRA: a burst up to the limit, then one request per part of the interval).
//! A stream occupies a slot while it is read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use config::{Chat, ChatLimit};
use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use kernel::Clock;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Requests between two cleanups, which drop keys whose allowance is full again.
const FORGET_EVERY: u32 = 4096;

/// Adapter from the kernel's clock to governor's clock trait.
#[derive(Clone)]
struct Ticks(Arc<dyn Clock>);

impl GovernorClock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.monotonic())
    }
}

type Keyed<K> = RateLimiter<K, DashMapStateStore<K>, Ticks, NoOpMiddleware<Nanos>>;

/// One limit; without a limiter it allows everything.
pub(in crate::http) struct RateLimit<K: std::hash::Hash + Eq + Clone> {
    limiter: Option<Keyed<K>>,
    clock: Ticks,
    asked: AtomicU32,
    code: ErrorCode,
}

impl<K: std::hash::Hash + Eq + Clone> RateLimit<K> {
    /// A limit per minute and key, which may be used in one burst.
    pub(in crate::http) fn per_minute(
        most: Option<NonZeroU32>,
        clock: &Arc<dyn Clock>,
        code: ErrorCode,
    ) -> Self {
        Self::new(most, Duration::from_secs(60), &Ticks(Arc::clone(clock)), code)
    }

    fn new(most: Option<NonZeroU32>, interval: Duration, clock: &Ticks, code: ErrorCode) -> Self {
        let quota = most.and_then(|most| {
            let part = interval.checked_div(most.get())?;
            Some(Quota::with_period(part)?.allow_burst(most))
        });
        let limiter = quota.map(|quota| RateLimiter::new(quota, DashMapStateStore::default(), clock.clone()));
        Self { limiter, clock: clock.clone(), asked: AtomicU32::new(0), code }
    }

    pub(in crate::http) fn check(&self, key: &K) -> ApiResult<()> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.asked.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        limiter.check_key(key).map_err(|not_yet| {
            let wait = not_yet.wait_time_from(self.clock.now());
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            ApiError::new(self.code).retry_after(i64::try_from(seconds.max(1)).unwrap_or(i64::MAX))
        })
    }
}

/// Open streams by session, oldest reader first.
type Streams = Arc<Mutex<HashMap<String, Vec<OpenStream>>>>;

/// One reader in a session.
struct OpenStream {
    /// Distinguishes the reader from other readers of its session.
    number: u64,
    /// The stream that is read; `None` until a turn's stream is known.
    stream: Option<Uuid>,
    /// Cancelled when another reader has taken the slot.
    replaced: CancellationToken,
}

/// All chat limits.
pub(in crate::http) struct ChatRateLimits {
    address: RateLimit<IpAddr>,
    workflow: RateLimit<Uuid>,
    session: RateLimit<String>,
    most_streams: Option<NonZeroU32>,
    streams: Streams,
    /// Counts readers; numbers the next one.
    readers: AtomicU64,
}

impl ChatRateLimits {
    pub(in crate::http) fn new(config: &Chat, clock: &Arc<dyn Clock>) -> Self {
        let clock = Ticks(Arc::clone(clock));
        let ChatLimit { per_address, per_workflow, per_session, interval } = config.rate_limit;
        Self {
            address: RateLimit::new(per_address, interval, &clock, ErrorCode::ChatRateLimitedAddress),
            workflow: RateLimit::new(per_workflow, interval, &clock, ErrorCode::ChatRateLimitedWorkflow),
            session: RateLimit::new(per_session, interval, &clock, ErrorCode::ChatRateLimitedSession),
            most_streams: config.max_streams,
            streams: Arc::default(),
            readers: AtomicU64::new(0),
        }
    }

    /// Counts one request from this address; an IPv6 address counts as its network.
    pub(super) fn check_address(&self, address: IpAddr) -> ApiResult<()> {
        self.address.check(&auth::peer::network(address))
    }

    /// Counts one request to this workflow.
    pub(super) fn check_workflow(&self, workflow: Uuid) -> ApiResult<()> {
        self.workflow.check(&workflow)
    }

    /// Counts one request in this session.
    pub(super) fn check_session(&self, session: &str) -> ApiResult<()> {
        self.session.check(&session.to_owned())
    }

    /// Acquires a stream slot for a session, released on drop. If none is free, a reader that resumes a stream takes
    /// the slot from that stream's oldest reader in the session, so that the remains of a lost connection do not block
    /// its client.
    pub(in crate::http) fn stream(
        &self,
        session: Option<&str>,
        resumed: Option<Uuid>,
    ) -> ApiResult<StreamPlace> {
        let (Some(most), Some(session)) = (self.most_streams, session) else { return Ok(StreamPlace(None)) };
        let mut streams = self.streams.lock();
        let open = streams.entry(session.to_owned()).or_default();
        if open.len() >= usize::try_from(most.get()).unwrap_or(usize::MAX) {
            let oldest = open.iter().position(|open| resumed.is_some() && open.stream == resumed);
            let oldest =
                oldest.ok_or_else(|| ApiError::new(ErrorCode::ChatRateLimitedStreams).retry_after(5))?;
            open.remove(oldest).replaced.cancel();
        }
        let number = self.readers.fetch_add(1, Ordering::Relaxed);
        let replaced = CancellationToken::new();
        open.push(OpenStream { number, stream: resumed, replaced: replaced.clone() });
        let (session, streams) = (session.to_owned(), Arc::clone(&self.streams));
        Ok(StreamPlace(Some(StreamSlot { session, number, replaced, streams })))
    }
}

/// A slot for a stream that is read.
pub(in crate::http) struct StreamPlace(Option<StreamSlot>);

struct StreamSlot {
    session: String,
    number: u64,
    replaced: CancellationToken,
    streams: Streams,
}

impl StreamPlace {
    /// Records the stream once it is known.
    pub(super) fn reads(&self, stream: Uuid) {
        let Some(held) = &self.0 else { return };
        let mut streams = held.streams.lock();
        let open = streams.get_mut(&held.session).into_iter().flatten();
        open.filter(|open| open.number == held.number).for_each(|open| open.stream = Some(stream));
    }

    /// Returns a token that is cancelled when another reader takes the slot.
    pub(in crate::http) fn replaced(&self) -> CancellationToken {
        self.0.as_ref().map(|held| held.replaced.clone()).unwrap_or_default()
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        let mut streams = held.streams.lock();
        if let Some(open) = streams.get_mut(&held.session) {
            open.retain(|open| open.number != held.number);
            if open.is_empty() {
                streams.remove(&held.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::ResponseError;
    use kernel::ManualClock;

    fn limit(most: u32) -> (RateLimit<&'static str>, ManualClock) {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let ticks = Ticks(Arc::new(clock.clone()));
        let code = ErrorCode::ChatRateLimitedSession;
        (RateLimit::new(NonZeroU32::new(most), Duration::from_secs(60), &ticks, code), clock)
    }

    fn wait(refused: ApiResult<()>) -> Option<String> {
        let answer = refused.err()?.error_response();
        Some(answer.headers().get("retry-after").unwrap().to_str().unwrap().to_owned())
    }

    #[test]
    fn a_burst_up_to_the_limit_passes_and_then_refills_gradually() {
        let (limit, clock) = limit(3);
        for _ in 0..3 {
            assert_eq!(wait(limit.check(&"a")), None);
        }
        assert_eq!(wait(limit.check(&"a")), Some("20".to_owned()));
        assert_eq!(wait(limit.check(&"b")), None, "another key");
        clock.advance(Duration::from_millis(19_500));
        assert_eq!(wait(limit.check(&"a")), Some("1".to_owned()));
        clock.advance(Duration::from_millis(500));
        assert_eq!((wait(limit.check(&"a")), wait(limit.check(&"a"))), (None, Some("20".to_owned())));
    }

    #[test]
    fn nothing_is_counted_without_a_limit() {
        let (limit, _) = limit(0);
        assert!((0..10_000).all(|_| limit.check(&"a").is_ok()));
    }

    #[test]
    fn fully_refilled_keys_are_dropped() {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let ticks = Ticks(Arc::new(clock.clone()));
        let limit: RateLimit<u32> = RateLimit::new(
            NonZeroU32::new(3),
            Duration::from_secs(60),
            &ticks,
            ErrorCode::ChatRateLimitedSession,
        );
        for key in 0..FORGET_EVERY - 1 {
            limit.check(&key).unwrap();
        }
        clock.advance(Duration::from_secs(61));
        limit.check(&0).unwrap();
        assert_eq!(limit.limiter.unwrap().len(), 1);
    }

    #[test]
    fn a_permit_is_released() {
        let given = [("SERVICE_DATA_DIR", "data"), ("SERVICE_CHAT_MAX_STREAMS", "2")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = config::Config::load(&config::Source::from_pairs(given)).unwrap().chat;
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH));
        let limits = ChatRateLimits::new(&config, &clock);
        let first = limits.stream(Some("a"), None).unwrap();
        let second = limits.stream(Some("a"), None).unwrap();
        assert!(limits.stream(Some("a"), None).is_err());
        assert!(limits.stream(Some("b"), None).is_ok() && limits.stream(None, None).is_ok());
        drop(first);
        let third = limits.stream(Some("a"), None).unwrap();
        // A reader that resumes a stream takes the slot of that stream's oldest reader only.
        let (stream, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        second.reads(stream);
        third.reads(stream);
        assert!(limits.stream(Some("a"), Some(other)).is_err());
        let fourth = limits.stream(Some("a"), Some(stream)).unwrap();
        let replaced = [&second, &third, &fourth].map(|place| place.replaced().is_cancelled());
        assert_eq!(replaced, [true, false, false]);
        drop(second);
        assert!(limits.stream(Some("a"), None).is_err(), "its permit has a new owner");
        drop((third, fourth));
        assert!(limits.streams.lock().is_empty());
    }
}
