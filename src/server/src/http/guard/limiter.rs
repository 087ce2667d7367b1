//! Limits failed sign-ins per address and per identity.
//!
//! The database counts failures. A request with a valid credential reads only a cached list of blocked keys, at most
//! one second old.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use auth::failures::{Blocked, FailureLimits, retry_after};
use auth::peer::failure_key;
use auth::principal::Actor;
use kernel::Clock;
use store::{AuditEntry, AuditOutcome, FailureVerdict, Store};
use tokio::sync::Mutex;
use wire::{AuditAction, ErrorCode};

use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// Maximum age of the cached blocked keys.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Maximum audit rows per minute for failures, so that a caller cannot fill the disk.
const AUDITED: u64 = 1_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Counts failures and blocks keys with too many.
pub(in crate::http) struct Limiter {
    limits: FailureLimits,
    store: Store,
    clock: Arc<dyn Clock>,
    blocked: Blocked,
    /// Time of the last read of blocked keys; locked during a read.
    asked: Mutex<Option<Duration>>,
    failures_audited: AuditBudget,
    denials_audited: AuditBudget,
}

/// A per-minute budget of audit rows.
#[derive(Default)]
struct AuditBudget(parking_lot::Mutex<Minute>);

/// The current minute.
#[derive(Default)]
struct Minute {
    since: Duration,
    rows: u64,
    dropped: u64,
}

impl AuditBudget {
    /// Whether one more row fits. Counts dropped rows and logs them once a minute.
    fn take(&self, clock: &dyn Clock) -> bool {
        let mut minute = self.0.lock();
        let now = clock.monotonic();
        if now.saturating_sub(minute.since) >= MINUTE {
            if minute.dropped > 0 {
                tracing::warn!(dropped = minute.dropped, "rejections omitted from the audit trail");
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
    pub(super) fn new(limits: FailureLimits, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits,
            store,
            clock,
            blocked: Blocked::default(),
            asked: Mutex::new(None),
            failures_audited: AuditBudget::default(),
            denials_audited: AuditBudget::default(),
        }
    }

    /// Refuses an address with too many failures, before its credential is read.
    pub(in crate::http) async fn check_address(&self, address: IpAddr) -> ApiResult<()> {
        self.refresh().await?;
        match self.limits.per_address {
            Some(_) => self.check(&failure_key(address)),
            None => Ok(()),
        }
    }

    /// Refuses an identity with too many failures, once it is known.
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

    /// Counts a failure and returns the error to respond with.
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
            outcome: AuditOutcome::Denied,
            reason: Some(code.as_str().to_owned()),
            address: Some(address.to_string()),
            request_id: request_id::current(),
        });
        match self.store.record_failure(&keys, self.limits.window(), entry.as_ref()).await {
            Ok(FailureVerdict::Counted) => {
                tracing::info!(%address, code = code.as_str(), "credential rejected");
                ApiError::new(code)
            }
            Ok(FailureVerdict::Limited { key, free_at }) => {
                self.blocked.block(&key, free_at);
                limited(retry_after(free_at, self.clock.now()))
            }
            Err(error) => error.into(),
        }
    }

    /// Refreshes the blocked keys, one request at a time; concurrent requests use the cached ones.
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

    /// Whether the denial of an authenticated caller fits the audit budget, which is separate from that for failed
    /// credentials.
    pub(super) fn may_audit_denial(&self) -> bool {
        self.denials_audited.take(&*self.clock)
    }
}

fn limited(seconds: i64) -> ApiError {
    ApiError::new(ErrorCode::AuthRateLimited).retry_after(seconds)
}
