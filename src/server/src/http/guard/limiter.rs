//! The limit of failed sign-ins, by address and by identity.
//!
//! A failure's verdict is the database's. What is remembered here of who is blocked is at most a second old, and is all
//! that a request with a good credential looks at.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use auth::failures::{Blocked, Limits, retry_after};
use auth::peer::failure_key;
use auth::principal::Actor;
use kernel::Clock;
use store::{AuditEntry, FailureVerdict, Outcome, Store};
use tokio::sync::Mutex;
use wire::{AuditAction, ErrorCode};

use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// How old what is remembered may be.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Rows that failures may add to the audit trail in a minute, so that a caller cannot fill a disk with them.
const AUDITED: u64 = 1_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Counts failures, and knows who has had too many.
pub(in crate::http) struct Limiter {
    limits: Limits,
    store: Store,
    clock: Arc<dyn Clock>,
    blocked: Blocked,
    /// When the blocked keys were last read; locked during a read.
    asked: Mutex<Option<Duration>>,
    failures_audited: Budget,
    denials_audited: Budget,
}

/// Rows of the audit trail that may be added in a minute.
#[derive(Default)]
struct Budget(parking_lot::Mutex<Minute>);

/// The minute that is running.
#[derive(Default)]
struct Minute {
    since: Duration,
    rows: u64,
    dropped: u64,
}

impl Budget {
    /// Whether one more row may be added; what may not is counted, and told once a minute.
    fn take(&self, clock: &dyn Clock) -> bool {
        let mut minute = self.0.lock();
        let now = clock.monotonic();
        if now.saturating_sub(minute.since) >= MINUTE {
            if minute.dropped > 0 {
                tracing::warn!(dropped = minute.dropped, "rejections were omitted from the audit trail");
            }
            *minute = Minute { since: now, rows: 0, dropped: 0 };
        }
        if minute.rows < AUDITED {
            minute.rows += 1;
            return true;
        }
        minute.dropped += 1;
        false
    }
}

impl Limiter {
    pub(super) fn new(limits: Limits, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits,
            store,
            clock,
            blocked: Blocked::default(),
            asked: Mutex::new(None),
            failures_audited: Budget::default(),
            denials_audited: Budget::default(),
        }
    }

    /// Refuses who has failed too often from this address, before their credential is looked at.
    pub(in crate::http) async fn check_address(&self, address: IpAddr) -> ApiResult<()> {
        self.refresh().await?;
        match self.limits.per_address {
            Some(_) => self.check(&failure_key(address)),
            None => Ok(()),
        }
    }

    /// Refuses an identity that has failed too often, once it is known.
    pub(in crate::http) fn check_identity(&self, identity: &str) -> ApiResult<()> {
        match self.limits.per_identity {
            Some(_) => self.check(identity),
            None => Ok(()),
        }
    }

    fn check(&self, key: &str) -> ApiResult<()> {
        let now = self.clock.now();
        match self.blocked.until(key, now) {
            Some(until) => Err(limited(retry_after(until, now))),
            None => Ok(()),
        }
    }

    /// Counts a failure; says what it is answered with.
    pub(in crate::http) async fn failed(
        &self,
        code: ErrorCode,
        address: IpAddr,
        identity: &str,
        actor: Actor,
    ) -> ApiError {
        let now = self.clock.now();
        let keys = [failure_key(address), identity.to_owned()];
        if let Some(until) = keys.iter().filter_map(|key| self.blocked.until(key, now)).max() {
            return limited(retry_after(until, now));
        }
        let limit = |most: NonZeroU32| i64::from(most.get());
        let by_address = self.limits.per_address.map(|most| (failure_key(address), limit(most)));
        let by_identity = self.limits.per_identity.map(|most| (identity.to_owned(), limit(most)));
        let keys: Vec<(String, i64)> = by_address.into_iter().chain(by_identity).collect();
        let entry = self.failures_audited.take(&*self.clock).then(|| AuditEntry {
            actor,
            action: AuditAction::AuthFailed,
            target: None,
            workspace: None,
            outcome: Outcome::Denied,
            reason: Some(code.as_str().to_owned()),
            address: Some(address.to_string()),
            request_id: request_id::current(),
        });
        match self.store.record_failure(&keys, self.limits.window(), entry.as_ref()).await {
            Ok(FailureVerdict::Counted) => {
                tracing::info!(%address, code = code.as_str(), "a credential was rejected");
                ApiError::new(code)
            }
            Ok(FailureVerdict::Limited { key, free_at }) => {
                self.blocked.block(&key, free_at);
                limited(retry_after(free_at, self.clock.now()))
            }
            Err(error) => error.into(),
        }
    }

    /// Learns who is blocked, one request at a time; the others go by what is known.
    async fn refresh(&self) -> ApiResult<()> {
        let Ok(mut asked) = self.asked.try_lock() else { return Ok(()) };
        let now = self.clock.monotonic();
        if asked.is_some_and(|at| now.saturating_sub(at) < FRESH_FOR) {
            return Ok(());
        }
        *asked = Some(now);
        let most = |limit: Option<NonZeroU32>| limit.map(|most| i64::from(most.get()));
        let (address, identity) = (most(self.limits.per_address), most(self.limits.per_identity));
        if address.is_some() || identity.is_some() {
            let all = self.store.blocked_keys(address, identity, self.limits.window()).await?;
            self.blocked.replace(all);
        }
        Ok(())
    }

    /// Whether a denial of a known caller may go to the audit trail; failures of others take nothing from it.
    pub(super) fn may_audit_denial(&self) -> bool {
        self.denials_audited.take(&*self.clock)
    }
}

fn limited(seconds: i64) -> ApiError {
    ApiError::new(ErrorCode::AuthRateLimited).retry_after(seconds)
}
