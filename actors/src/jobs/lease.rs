//! Renews the lease, takes over expired leases, adopts orphaned runs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use store::{ClaimFailed, Lease, Store};

use super::clock_leaps::ClockLeaps;
use super::{Job, JobError};
use crate::run::RunPorts;
use crate::run::lease::Renewals;
use crate::run::recover::Recovery;
use crate::runtime::{ActorKind, Health};

/// Maximum time of a clock check, which may have to wait for database locks.
const CLOCK_CHECK: Duration = Duration::from_secs(5);

/// The rounds of an instance's lease. Sequential: a renewal names the oldest run, and must not overtake a takeover.
pub(crate) struct LeaseRounds {
    pub(crate) store: Store,
    pub(crate) lease: Lease,
    pub(crate) health: Health,
    pub(crate) ports: RunPorts,
    pub(crate) recovery: Recovery,
    pub(crate) renewals: Mutex<Renewals>,
    pub(crate) clock_leaps: ClockLeaps,
}

#[async_trait]
impl Job for LeaseRounds {
    const KIND: ActorKind = ActorKind::Lease;
    /// A lease lasts [`store::LEASE_SECONDS`].
    const PAUSE: Duration = Duration::from_secs(2);

    async fn round(&self) -> Result<(), JobError> {
        let clock = &*self.ports.clock;
        if let Some(database) = self.renew().await? {
            if let Ok(there) = self.store.has_others(self.lease).await {
                self.ports.others.store(there, Ordering::Relaxed);
            }
            let may_take_over = self.renewals.lock().renewed(clock.monotonic(), database);
            if may_take_over {
                self.take_over().await;
            }
        }
        // After the renewal and briefly, so that the lease does not expire meanwhile.
        let _ = kernel::timeout(clock, CLOCK_CHECK, self.clock_leaps.look()).await;
        self.adopt_orphans().await;
        Ok(())
    }
}

impl LeaseRounds {
    /// Renews the lease. An unavailable database does not end the process: meanwhile no other instance can acquire the
    /// lease.
    async fn renew(&self) -> Result<Option<DateTime<Utc>>, JobError> {
        let Self { store, lease, health, ports, .. } = self;
        let _naming = ports.in_flight.naming().await;
        let oldest = ports.in_flight.oldest().map_err(|error| JobError(error.to_string()))?;
        match store.renew_lease(*lease, oldest).await {
            Ok(Some(at)) => return Ok(Some(at)),
            Ok(None) => health.escalate("another instance has taken over the lease"),
            Err(error) => {
                tracing::warn!(%error, "failed to renew the lease; retrying");
                // Replaces connections to a server that has become a standby.
                if let Err(error) = store.ping().await {
                    tracing::debug!(%error, "database rejects writes");
                }
            }
        }
        Ok(None)
    }

    /// Takes over dead instances' runs.
    async fn take_over(&self) {
        let runs = &self.ports.in_flight;
        match self.store.take_over_expired(self.lease).await {
            Ok(taken) => runs.given(&taken),
            Err(ClaimFailed { uncertain, error }) => {
                runs.given(&uncertain);
                tracing::warn!(%error, "failed to poll for expired leases");
            }
        }
    }

    /// Hands orphaned runs to their actors.
    async fn adopt_orphans(&self) {
        let found = self.ports.in_flight.orphans();
        if !found.is_empty() {
            let taken = self.recovery.adopt(&found).await;
            tracing::info!(found = found.len(), taken, "adopted orphaned runs");
        }
    }
}
