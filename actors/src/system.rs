//! Assembles the actors, and stops them in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use auth::keyring::KeyRing;
use chrono::{DateTime, TimeDelta, Utc};
use engine::Cache;
use engine::models::Models;
use engine::ports::Outbound;
use kernel::{Clock, Ids, Random};
use parking_lot::Mutex;
use sandbox::Sandbox;
use store::{ClaimFailed, Lease, Store, StoreError};
use tokio::runtime::Handle as Runtime;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::clock_watch::ClockWatch;
use crate::delivery::mail::{self, MailQueue};
use crate::delivery::outbox;
use crate::jobs::clock_leaps::ClockLeaps;
use crate::jobs::retention::Retention;
use crate::jobs::{Periodic, Round};
use crate::kinds::turn::chat::Chat;
use crate::kinds::turn::thread::Threads;
use crate::kinds::turn::{Grace, TurnPorts};
use crate::kinds::workflow::{Registry, Runs};
use crate::lanes::Database;
use crate::plans::Plans;
use crate::run::cancel::Cancel;
use crate::run::join::join;
use crate::run::lease::{InFlight, Renewals};
use crate::run::queue::RunQueue;
use crate::run::quota::{self, Quota};
use crate::run::recover::Recovery;
use crate::run::sweeper::Sweeper;
use crate::run::{Reads, RunPorts, Wakeups};
use crate::runtime::{ActorKind, ArbiterPool, Guardian, Health};
use crate::streams::{ForeignStreams, Topics};
use crate::triggers::CronRounds;

/// Interval of lease rounds: renew the lease, which lasts [`store::LEASE_SECONDS`], take over expired leases,
/// adopt orphaned runs.
const LEASE: Duration = Duration::from_secs(2);
/// Maximum time of a check of the clock, which may have to wait for locks of the database.
const CLOCK_CHECK: Duration = Duration::from_secs(5);
/// Maximum recovered turns that read their stored state at the same time.
const RECOVERING: usize = 2;
/// Traces whose inputs are filled again at the same time: it takes a core.
const REFILLING: usize = 2;
/// Interval of maintenance: create partitions ahead, delete expired data.
const MAINTAIN: Duration = Duration::from_secs(3_600);
/// Interval between polls for due triggers.
const TRIGGER: Duration = Duration::from_secs(1);

/// Settings of the actors.
pub struct Settings {
    /// The database.
    pub store: Store,
    /// Id of this instance; the same after a restart.
    pub instance: Uuid,
    /// Lanes.
    pub writers: usize,
    /// Threads for actors.
    pub arbiters: usize,
    /// Runtime of child tasks.
    pub children: Runtime,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Ids.
    pub ids: Ids,
    /// How long a turn continues without a reader.
    pub grace: Grace,
    /// Language models.
    pub models: Models,
    /// Sandbox for user code.
    pub sandbox: Sandbox,
    /// Keys of the vault, if configured.
    pub vault: Option<Arc<KeyRing>>,
    /// Sends requests to addresses that graphs name.
    pub outbound: Outbound,
    /// Settings of the mail queue.
    pub mail: mail::Settings,
    /// Retention of ended runs; `None` keeps them forever.
    pub keep_runs: Option<TimeDelta>,
    /// Storage limit of a workspace in bytes; `None` is unlimited.
    pub workspace_bytes: Option<i64>,
}

/// The running actors.
pub struct System {
    store: Store,
    lease: Lease,
    guardian: Guardian,
    health: Health,
    ports: RunPorts,
    threads: Threads,
    runs: Registry,
    mail: MailQueue,
    retention: Retention,
}

impl System {
    /// Acquires this instance's lease, starts lanes and actors, and resumes the unfinished runs of an earlier
    /// life. Must be called inside an actix system.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start(settings: Settings) -> Result<Self, StoreError> {
        let Settings {
            store,
            instance,
            writers,
            arbiters,
            children,
            clock,
            random,
            ids,
            grace,
            models,
            sandbox,
            vault,
            outbound,
            mail,
            keep_runs,
            workspace_bytes,
        } = settings;
        let acquired = clock.monotonic();
        let (lease, since) = store.take_lease(instance, ids.uuid()?).await?;
        join(&store, lease, &*clock).await?;
        // What follows may take as long as a lease lasts.
        store.renew_lease(lease, since).await?;
        let health = Health::default();
        let topics = Topics::default();
        let db = Database::start(&store, lease, writers, &topics, &clock, &health);
        let pool = ArbiterPool::start(arbiters);
        let guardian = Guardian::new(pool, children, Arc::clone(&clock), Arc::clone(&random), health.clone());
        let plans = Arc::new(Plans::new(store.clone(), Arc::clone(&clock)));
        let in_flight = InFlight::new(ids.clone());
        let ports = RunPorts {
            store: store.clone(),
            db,
            topics,
            plans,
            models,
            sandbox,
            vault,
            outbound,
            quota: Quota::new(workspace_bytes),
            reads: Reads::default(),
            cache: Cache::default(),
            clock,
            random,
            ids,
            in_flight,
            writer: instance,
            wakeups: Wakeups::default(),
            others: Arc::new(AtomicBool::new(store.has_others(lease).await?)),
            recovering: Arc::new(Semaphore::new(RECOVERING)),
            refilling: Arc::new(Semaphore::new(REFILLING)),
        };
        let threads = Threads::new(guardian.clone(), TurnPorts { run: ports.clone(), grace });
        let runs = Registry::new(guardian.clone(), ports.clone());
        let delivery = mail.delivery.clone();
        let mail = MailQueue::start(&guardian, mail, store.clone(), instance, Arc::clone(&ports.clock));
        outbox::start(&guardian, &ports, delivery);
        let retention = Retention {
            store: store.clone(),
            clock: Arc::clone(&ports.clock),
            keep_runs,
            deletes_from: Arc::default(),
        };
        let watch = ClockWatch::new(ports.clock.now(), ports.clock.monotonic());
        let set_back = Arc::new(AtomicBool::new(store.has_runs_of_the_future(ports.clock.now()).await?));
        let system = Self { store, lease, guardian, health, ports, threads, runs, mail, retention };
        system.recover(since).await?;
        system.start_periodic(watch, set_back, Renewals::new(acquired));
        Ok(system)
    }

    /// The chat.
    #[must_use]
    pub fn chat(&self) -> Chat {
        Chat {
            ports: self.ports.clone(),
            threads: self.threads.clone(),
            cancel: self.cancel(),
            draining: self.guardian.draining().clone(),
        }
    }

    /// Workflow runs outside the chat.
    #[must_use]
    pub fn runs(&self) -> Runs {
        Runs {
            ports: self.ports.clone(),
            registry: self.runs.clone(),
            cancel: self.cancel(),
            draining: self.guardian.draining().clone(),
        }
    }

    /// The sandbox for user code.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.ports.sandbox
    }

    /// The mail queue.
    #[must_use]
    pub fn mail(&self) -> &MailQueue {
        &self.mail
    }

    fn cancel(&self) -> Cancel {
        Cancel { ports: self.ports.clone(), threads: self.threads.clone(), runs: self.runs.clone() }
    }

    fn recovery(&self) -> Recovery {
        Recovery { threads: self.threads.clone(), runs: self.runs.clone() }
    }

    /// Health of the process.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// How long writes have not been committed; `None` if they are.
    #[must_use]
    pub fn writes_failing_for(&self) -> Option<Duration> {
        self.ports.db.failing_for()
    }

    /// Threads with a turn in this instance.
    #[must_use]
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Topics of the streams that this instance writes or reads.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.ports.topics
    }

    /// Waits at most `limit` for running turns to end, and starts no new ones. Returns whether all have
    /// ended, their writes are committed and their readers have received everything.
    pub async fn drain(&self, limit: Duration) -> bool {
        let clock = &*self.ports.clock;
        let begun = clock.monotonic();
        if !self.guardian.drain(limit).await {
            tracing::warn!(actors = self.guardian.alive(), "not every actor ended in time");
            return false;
        }
        let left = limit.saturating_sub(clock.monotonic().saturating_sub(begun));
        let idle = kernel::timeout(clock, left, self.ports.db.idle()).await.is_some();
        if !idle {
            tracing::warn!("what has ended is not committed in time");
        }
        idle
    }

    /// Cuts the remaining turns, commits everything and releases the lease.
    ///
    /// A turn that has not ended is stored with its partial text; the next process resumes it.
    pub async fn stop(&self, limit: Duration) {
        let guardian = self.guardian.clone();
        // Joining threads blocks.
        let _ = tokio::task::spawn_blocking(move || guardian.stop()).await;
        if kernel::timeout(&*self.ports.clock, limit, self.ports.db.close()).await.is_none() {
            tracing::error!("not every write was committed in time");
        }
        if let Err(error) = self.store.release_lease(self.lease).await {
            tracing::warn!(%error, "the lease was not given back");
        }
    }

    async fn recover(&self, since: Uuid) -> Result<(), StoreError> {
        let unfinished = self.store.unfinished_of_writer(self.lease.writer_id, since).await?;
        let runs: Vec<Uuid> = unfinished.into_iter().map(|run| run.id).collect();
        if !runs.is_empty() {
            self.ports.in_flight.given(&runs);
            let taken = self.recovery().earlier_life(since).await?;
            tracing::info!(found = runs.len(), taken, "unfinished runs of an earlier life");
        }
        Ok(())
    }

    /// `set_back`: due times in the database come from a clock that was ahead of this one.
    fn start_periodic(&self, watch: ClockWatch, set_back: Arc<AtomicBool>, renewals: Renewals) {
        let queue = RunQueue::new(self.recovery(), self.lease);
        let others = Arc::clone(&self.ports.others);
        self.every(ActorKind::Queue, "queue", Duration::ZERO, {
            Arc::new(move || {
                let queue = queue.clone();
                Box::pin(async move {
                    queue.round().await;
                    Ok(())
                })
            })
        });
        let rounds = CronRounds {
            store: self.store.clone(),
            runs: self.runs(),
            clock: Arc::clone(&self.ports.clock),
            draining: self.guardian.draining().clone(),
        };
        let clock_leaps = ClockLeaps::new(watch, set_back, rounds.clone(), self.retention.clone());
        self.every(ActorKind::Triggers, "triggers", TRIGGER, {
            Arc::new(move || {
                let rounds = rounds.clone();
                Box::pin(async move {
                    rounds.go().await;
                    Ok(())
                })
            })
        });
        // Sequential: a renewal names the oldest run, and must not overtake a takeover.
        self.every(ActorKind::Lease, "lease", LEASE, {
            let (store, lease, health) = (self.store.clone(), self.lease, self.health.clone());
            let (recovery, runs, clock) =
                (self.recovery(), self.ports.in_flight.clone(), Arc::clone(&self.ports.clock));
            let renewals = Arc::new(Mutex::new(renewals));
            Arc::new(move || {
                let (store, health) = (store.clone(), health.clone());
                let (recovery, runs) = (recovery.clone(), runs.clone());
                let (clock, renewals) = (Arc::clone(&clock), Arc::clone(&renewals));
                let (others, clock_leaps) = (Arc::clone(&others), clock_leaps.clone());
                Box::pin(async move {
                    if let Some(database) = renew(&store, lease, &runs, &health).await? {
                        if let Ok(there) = store.has_others(lease).await {
                            others.store(there, Ordering::Relaxed);
                        }
                        if renewals.lock().renewed(clock.monotonic(), database) {
                            take_over(&store, lease, &runs).await;
                        }
                    }
                    // After the renewal, and never for long: the lease must not expire meanwhile.
                    let _ = kernel::timeout(&*clock, CLOCK_CHECK, clock_leaps.look()).await;
                    sweep(&recovery, &runs).await;
                    Ok(())
                })
            })
        });
        self.every(ActorKind::Streams, "streams", Duration::ZERO, {
            let foreign = ForeignStreams {
                topics: self.ports.topics.clone(),
                events: Arc::new(self.store.clone()),
                store: self.store.clone(),
                instance: self.lease.writer_id,
                others: Arc::clone(&self.ports.others),
                clock: Arc::clone(&self.ports.clock),
                announced: Arc::default(),
            };
            Arc::new(move || {
                let foreign = foreign.clone();
                Box::pin(async move {
                    foreign.round().await;
                    Ok(())
                })
            })
        });
        self.every(ActorKind::Usage, "usage", quota::EVERY, {
            let (quota, store) = (self.ports.quota.clone(), self.store.clone());
            let clock = Arc::clone(&self.ports.clock);
            Arc::new(move || {
                let (quota, store, now) = (quota.clone(), store.clone(), clock.now());
                Box::pin(async move {
                    if let Err(error) = quota.look(&store, now).await {
                        tracing::warn!(%error, "failed to measure the storage of workspaces");
                    }
                    Ok(())
                })
            })
        });
        self.every(ActorKind::Maintenance, "maintain", MAINTAIN, {
            let (retention, sweeper) = (self.retention.clone(), Sweeper::new(self.recovery(), self.lease));
            Arc::new(move || {
                let (retention, sweeper) = (retention.clone(), sweeper.clone());
                Box::pin(async move {
                    retention.round().await;
                    if let Err(error) = sweeper.sweep().await {
                        tracing::warn!(%error, "failed to scan for orphaned runs");
                    }
                    Ok(())
                })
            })
        });
    }

    fn every(&self, kind: ActorKind, name: &'static str, every: Duration, round: Round) {
        let clock = Arc::clone(&self.ports.clock);
        let _ = self.guardian.supervise(kind, Periodic { name, every, round, clock });
    }
}

/// Renews the lease. A database that does not answer does not end the process: no other instance can acquire
/// the lease meanwhile.
async fn renew(
    store: &Store,
    lease: Lease,
    runs: &InFlight,
    health: &Health,
) -> Result<Option<DateTime<Utc>>, String> {
    let _naming = runs.naming().await;
    let oldest = runs.oldest().map_err(|error| error.to_string())?;
    match store.renew_lease(lease, oldest).await {
        Ok(Some(at)) => return Ok(Some(at)),
        Ok(None) => health.escalate("another instance has taken this one's lease"),
        Err(error) => {
            tracing::warn!(%error, "the lease was not renewed");
            // Replaces connections to a server that is a standby by now.
            if let Err(error) = store.ping().await {
                tracing::debug!(%error, "the database does not take writes");
            }
        }
    }
    Ok(None)
}

async fn take_over(store: &Store, lease: Lease, runs: &InFlight) {
    match store.take_over_expired(lease).await {
        Ok(taken) => runs.given(&taken),
        Err(ClaimFailed { uncertain, error }) => {
            runs.given(&uncertain);
            tracing::warn!(%error, "failed to poll for expired leases");
        }
    }
}

async fn sweep(recovery: &Recovery, runs: &InFlight) {
    let found = runs.orphans();
    if !found.is_empty() {
        let taken = recovery.adopt(&found).await;
        tracing::info!(found = found.len(), taken, "adopted orphaned runs");
    }
}
