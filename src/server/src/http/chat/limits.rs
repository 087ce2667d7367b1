//! How much of the chat one address, one workflow and one session may have.
//!
//! Requests are counted by this instance alone (GCRA: as many at once as the limit says, then one for each part of the
//! interval). Streams are places that are held for as long as they are read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config::{Chat, ChatLimit};
use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use kernel::Clock;
use parking_lot::Mutex;
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// After so many requests what is known of keys that are as good as new is forgotten.
const FORGET_EVERY: u32 = 4096;

/// The kernel's clock, as governor reads one.
#[derive(Clone)]
struct Ticks(Arc<dyn Clock>);

impl GovernorClock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.monotonic())
    }
}

type Keyed<K> = RateLimiter<K, DashMapStateStore<K>, Ticks, NoOpMiddleware<Nanos>>;

/// One limit; none allows everything.
struct Limit<K: std::hash::Hash + Eq + Clone> {
    limiter: Option<Keyed<K>>,
    clock: Ticks,
    asked: AtomicU32,
    code: ErrorCode,
}

impl<K: std::hash::Hash + Eq + Clone> Limit<K> {
    fn new(most: Option<NonZeroU32>, interval: Duration, clock: &Ticks, code: ErrorCode) -> Self {
        let quota = most.and_then(|most| {
            let part = interval.checked_div(most.get())?;
            Some(Quota::with_period(part)?.allow_burst(most))
        });
        let limiter = quota.map(|quota| RateLimiter::new(quota, DashMapStateStore::default(), clock.clone()));
        Self { limiter, clock: clock.clone(), asked: AtomicU32::new(0), code }
    }

    fn check(&self, key: &K) -> ApiResult<()> {
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

/// How many streams each session reads.
type Streams = Arc<Mutex<HashMap<String, u32>>>;

/// All limits of the chat.
pub(in crate::http) struct Limits {
    address: Limit<IpAddr>,
    workflow: Limit<Uuid>,
    session: Limit<String>,
    most_streams: Option<NonZeroU32>,
    streams: Streams,
}

impl Limits {
    pub(in crate::http) fn new(config: &Chat, clock: &Arc<dyn Clock>) -> Self {
        let clock = Ticks(Arc::clone(clock));
        let ChatLimit { per_address, per_workflow, per_session, interval } = config.rate_limit;
        Self {
            address: Limit::new(per_address, interval, &clock, ErrorCode::ChatRateLimitedAddress),
            workflow: Limit::new(per_workflow, interval, &clock, ErrorCode::ChatRateLimitedWorkflow),
            session: Limit::new(per_session, interval, &clock, ErrorCode::ChatRateLimitedSession),
            most_streams: config.max_streams,
            streams: Arc::default(),
        }
    }

    /// One more request from this address. Who has an IPv6 address has its network.
    pub(super) fn check_address(&self, address: IpAddr) -> ApiResult<()> {
        self.address.check(&auth::peer::network(address))
    }

    /// One more request to this workflow.
    pub(super) fn check_workflow(&self, workflow: Uuid) -> ApiResult<()> {
        self.workflow.check(&workflow)
    }

    /// One more request in this session.
    pub(super) fn check_session(&self, session: &str) -> ApiResult<()> {
        self.session.check(&session.to_owned())
    }

    /// A place for one more stream of this session, which is given back when it is dropped.
    pub(super) fn stream(&self, session: Option<&str>) -> ApiResult<StreamPlace> {
        let (Some(most), Some(session)) = (self.most_streams, session) else { return Ok(StreamPlace(None)) };
        let mut streams = self.streams.lock();
        let open = streams.entry(session.to_owned()).or_default();
        if *open >= most.get() {
            return Err(ApiError::new(ErrorCode::ChatRateLimitedStreams).retry_after(5));
        }
        *open += 1;
        Ok(StreamPlace(Some((session.to_owned(), Arc::clone(&self.streams)))))
    }
}

/// A stream that is read.
pub(in crate::http) struct StreamPlace(Option<(String, Streams)>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let Some((session, streams)) = self.0.take() else { return };
        let mut streams = streams.lock();
        if let Some(open) = streams.get_mut(&session) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(&session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::ResponseError;
    use kernel::ManualClock;

    fn limit(most: u32) -> (Limit<&'static str>, ManualClock) {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let ticks = Ticks(Arc::new(clock.clone()));
        let code = ErrorCode::ChatRateLimitedSession;
        (Limit::new(NonZeroU32::new(most), Duration::from_secs(60), &ticks, code), clock)
    }

    fn wait(refused: ApiResult<()>) -> Option<String> {
        let answer = refused.err()?.error_response();
        Some(answer.headers().get("retry-after").unwrap().to_str().unwrap().to_owned())
    }

    #[test]
    fn as_many_as_the_limit_says_and_then_part_by_part() {
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
    fn keys_that_are_as_good_as_new_are_forgotten() {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let ticks = Ticks(Arc::new(clock.clone()));
        let limit: Limit<u32> = Limit::new(
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
    fn a_place_is_given_back() {
        let given = [("SERVICE_DATA_DIR", "data"), ("SERVICE_CHAT_MAX_STREAMS", "2")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = config::Config::load(&config::Source::from_pairs(given)).unwrap().chat;
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH));
        let limits = Limits::new(&config, &clock);
        let first = limits.stream(Some("a")).unwrap();
        let _second = limits.stream(Some("a")).unwrap();
        assert!(limits.stream(Some("a")).is_err());
        assert!(limits.stream(Some("b")).is_ok() && limits.stream(None).is_ok());
        drop(first);
        let third = limits.stream(Some("a")).unwrap();
        drop((third, _second));
        assert!(limits.streams.lock().is_empty());
    }
}
