//! Assembles the actors, and stops them in order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use auth::keyring::KeyRing;
use chrono::TimeDelta;
use engine::Cache;
use engine::ports::Outbound;
use kernel::{Clock, Ids, Random};
use models::Models;
use parking_lot::Mutex;
use sandbox::Sandbox;
use store::{Lease, Store, StoreError};
use tokio::runtime::Handle as Runtime;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::clock_watch::ClockWatch;
use crate::delivery::mail::{self, MailQueue};
use crate::delivery::outbox;
use crate::encodings::Encoder;
use crate::jobs;
use crate::jobs::canaries::CanaryRounds;
use crate::jobs::clock_leaps::ClockLeaps;
use crate::jobs::erasures::ErasureRounds;
use crate::jobs::gates::GateRounds;
use crate::jobs::lease::LeaseRounds;
use crate::jobs::maintenance::Maintenance;
use crate::jobs::questions::QuestionRounds;
use crate::jobs::replies::ReplyRounds;
use crate::jobs::retention::Retention;
use crate::jobs::usage::Usage;
use crate::kinds::Actors;
use crate::kinds::action::Actions;
use crate::kinds::app::AppRuns;
use crate::kinds::training::Trainings;
use crate::kinds::turn::Grace;
use crate::kinds::turn::chat::Chat;
use crate::kinds::turn::thread::Threads;
use crate::kinds::workflow::Runs;
use crate::lanes::Database;
use crate::plans::Plans;
use crate::run::budget::Budgets;
use crate::run::cancel::Cancel;
use crate::run::crashes;
use crate::run::join::join;
use crate::run::lease::{InFlight, Renewals};
use crate::run::queue::RunQueue;
use crate::run::quota::Quota;
use crate::run::recover::Recovery;
use crate::run::start::Starts;
use crate::run::sweeper::Sweeper;
use crate::run::{
    FileRoom, ImageLinks, READS, RECORD_CHANGES, RolloutSignals, RunPorts, SharedPorts, Wakeups,
    WorkspaceShares,
};
use crate::runtime::{ArbiterPool, Guardian, Health};
use crate::streams::{ForeignStreams, Topics};
use crate::triggers::CronRounds;

/// Maximum recovered turns that read their stored state concurrently.
const RECOVERING: usize = 2;
/// Maximum traces that are refilled concurrently; each takes a core.
const REFILLING: usize = 2;

/// Maximum time to release the lease at a stop: it expires by itself.
const LEASE_RELEASE: Duration = Duration::from_secs(1);

/// Settings of the actors.
pub struct Settings {
    /// The database.
    pub store: Store,
    /// This instance's id, the same after a restart.
    pub instance: Uuid,
    /// Number of lanes.
    pub writers: usize,
    /// Number of actor threads.
    pub arbiters: usize,
    /// Runtime of child tasks.
    pub children: Runtime,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Ids.
    pub ids: Ids,
    /// Grace period of a turn without a reader.
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
    /// Creates URLs of images that runs show.
    pub links: ImageLinks,
    /// Storage limit of a workspace in bytes; `None` is unlimited.
    pub workspace_bytes: Option<i64>,
    /// Maximum trainings that execute concurrently.
    pub training_runs: usize,
}

/// The running actors.
pub struct System {
    store: Store,
    lease: Lease,
    guardian: Guardian,
    health: Health,
    ports: RunPorts,
    actors: Actors,
    mail: MailQueue,
    retention: Retention,
    encoder: Encoder,
}

impl System {
    /// Acquires this instance's lease, starts lanes and actors, and resumes the unfinished runs of an earlier
    /// life. Must be called inside an actix system.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start(settings: Settings) -> Result<Self, StoreError> {
        let Settings { store, instance, clock, random, ids, mail, .. } = settings;
        let acquired = clock.monotonic();
        let (lease, since) = store.take_lease(instance, ids.uuid()?).await?;
        join(&store, lease, &*clock).await?;
        // The following steps may take as long as a lease lasts.
        store.renew_lease(lease, since).await?;
        let (health, topics) = (Health::default(), Topics::default());
        let db = Database::start(&store, lease, settings.writers, &topics, &clock, &health);
        let pool = ArbiterPool::start(settings.arbiters);
        let guardian =
            Guardian::new(pool, settings.children, Arc::clone(&clock), Arc::clone(&random), health.clone());
        let ports = RunPorts::from(SharedPorts {
            store: store.clone(),
            db,
            topics,
            plans: Arc::new(Plans::new(store.clone(), Arc::clone(&clock))),
            models: settings.models,
            sandbox: settings.sandbox,
            vault: settings.vault,
            outbound: settings.outbound,
            quota: Quota::new(settings.workspace_bytes),
            links: settings.links,
            reads: WorkspaceShares::new(READS),
            record_changes: WorkspaceShares::new(RECORD_CHANGES),
            file_room: FileRoom::default(),
            budgets: Budgets::default(),
            cache: Cache::default(),
            clock,
            random,
            in_flight: InFlight::new(ids.clone()),
            ids,
            writer: instance,
            wakeups: Wakeups::default(),
            rollouts: RolloutSignals::default(),
            ended_trainings: Arc::default(),
            others: Arc::new(AtomicBool::new(store.has_others(lease).await?)),
            recovering: Arc::new(Semaphore::new(RECOVERING)),
            suspects: crashes::permits(),
            refilling: Arc::new(Semaphore::new(REFILLING)),
        });
        let actors = Actors::new(&guardian, &ports, settings.grace, settings.training_runs);
        let delivery = mail.delivery.clone();
        let mail = MailQueue::start(&guardian, mail, store.clone(), instance, Arc::clone(&ports.clock));
        outbox::start(&guardian, &ports, delivery);
        let retention = Retention {
            store: store.clone(),
            clock: Arc::clone(&ports.clock),
            keep_runs: settings.keep_runs,
            deletes_from: Arc::default(),
        };
        let watch = ClockWatch::new(ports.clock.now(), ports.clock.monotonic());
        let set_back = Arc::new(AtomicBool::new(store.has_runs_of_the_future(ports.clock.now()).await?));
        let encoder = Encoder::new(store.clone(), Arc::clone(&ports.clock));
        let system = Self { store, lease, guardian, health, ports, actors, mail, retention, encoder };
        system.recover(since).await?;
        system.start_jobs(watch, set_back, Renewals::new(acquired));
        Ok(system)
    }

    /// The chats.
    #[must_use]
    pub fn chat(&self) -> Chat {
        Chat {
            ports: self.ports.clone(),
            threads: self.actors.threads.clone(),
            starts: self.starts(),
            cancel: self.cancel(),
        }
    }

    /// Actions that only change their widget.
    #[must_use]
    pub fn actions(&self) -> Actions {
        Actions { ports: self.ports.clone(), actors: self.actors.actions.clone(), starts: self.starts() }
    }

    /// Workflow runs outside the chat.
    #[must_use]
    pub fn runs(&self) -> Runs {
        Runs {
            ports: self.ports.clone(),
            actors: self.actors.workflow_runs.clone(),
            kinds: self.actors.kinds.clone(),
            starts: self.starts(),
            cancel: self.cancel(),
        }
    }

    /// App runs.
    #[must_use]
    pub fn app_runs(&self) -> AppRuns {
        AppRuns { ports: self.ports.clone(), actors: self.actors.app_runs.clone(), starts: self.starts() }
    }

    /// Compresses app files.
    #[must_use]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Shares for record changes: a change takes a permit before a connection.
    #[must_use]
    pub fn record_changes(&self) -> &WorkspaceShares {
        &self.ports.record_changes
    }

    /// Trainings and evaluations.
    #[must_use]
    pub fn trainings(&self) -> Trainings {
        Trainings {
            ports: self.ports.clone(),
            actors: self.actors.trainings.clone(),
            pauses: self.actors.pauses.clone(),
            kinds: self.actors.kinds.clone(),
            starts: self.starts(),
            cancel: self.cancel(),
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

    pub(crate) fn starts(&self) -> Starts {
        let draining = self.guardian.draining().clone();
        Starts { ports: self.ports.clone(), recovery: self.recovery(), draining }
    }

    fn cancel(&self) -> Cancel {
        Cancel { ports: self.ports.clone(), kinds: self.actors.kinds.clone() }
    }

    fn recovery(&self) -> Recovery {
        Recovery { ports: self.ports.clone(), kinds: self.actors.kinds.clone() }
    }

    /// Health of the process.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Duration of the current commit failure; `None` if writes are committed.
    #[must_use]
    pub fn writes_failing_for(&self) -> Option<Duration> {
        self.ports.db.failing_for()
    }

    /// Threads with a turn on this instance.
    #[must_use]
    pub fn threads(&self) -> &Threads {
        &self.actors.threads
    }

    /// Topics of streams that this instance writes or reads.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.ports.topics
    }

    /// Waits at most `limit` for running turns to end, and starts no new ones. Returns whether all have ended, their
    /// writes are committed and their readers have received everything.
    pub async fn drain(&self, limit: Duration) -> bool {
        let clock = &*self.ports.clock;
        let begun = clock.monotonic();
        if !self.guardian.drain(limit).await {
            tracing::warn!(actors = self.guardian.alive(), "actors still running after the time limit");
            return false;
        }
        let left = limit.saturating_sub(clock.monotonic().saturating_sub(begun));
        let idle = kernel::timeout(clock, left, self.ports.db.idle()).await.is_some();
        if !idle {
            tracing::warn!("writes of ended runs not committed in time");
        }
        idle
    }

    /// Cuts off the remaining turns, commits everything and releases the lease.
    ///
    /// A turn that has not ended is stored with its partial text; the next process resumes it.
    pub async fn stop(&self, limit: Duration) {
        let guardian = self.guardian.clone();
        // Joining threads blocks.
        let _ = tokio::task::spawn_blocking(move || guardian.stop()).await;
        if kernel::timeout(&*self.ports.clock, limit, self.ports.db.close()).await.is_none() {
            tracing::error!("writes not committed in time");
        }
        let shutdown = self.health.fatal().is_none();
        let release = self.store.release_lease(self.lease, shutdown);
        match kernel::timeout(&*self.ports.clock, LEASE_RELEASE, release).await {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "failed to release the lease"),
            None => tracing::warn!("failed to release the lease in time"),
        }
    }

    async fn recover(&self, since: Uuid) -> Result<(), StoreError> {
        let unfinished = self.store.unfinished_of_writer(self.lease.writer_id, since).await?;
        let runs: Vec<Uuid> = unfinished.into_iter().map(|run| run.id).collect();
        if !runs.is_empty() {
            self.ports.in_flight.given(&runs);
            let taken = self.recovery().earlier_life(since).await?;
            tracing::info!(found = runs.len(), taken, "resuming unfinished runs of an earlier process");
        }
        Ok(())
    }

    /// Starts the periodic jobs. `set_back`: due times in the database come from a clock that was ahead of this one.
    fn start_jobs(&self, watch: ClockWatch, set_back: Arc<AtomicBool>, renewals: Renewals) {
        let (ports, store, lease) = (&self.ports, &self.store, self.lease);
        let (guardian, clock) = (&self.guardian, &ports.clock);
        let rounds = CronRounds {
            store: store.clone(),
            runs: self.runs(),
            clock: Arc::clone(clock),
            draining: guardian.draining().clone(),
        };
        let lease_rounds = LeaseRounds {
            store: store.clone(),
            lease,
            health: self.health.clone(),
            ports: ports.clone(),
            recovery: self.recovery(),
            renewals: Mutex::new(renewals),
            clock_leaps: ClockLeaps::new(watch, set_back, rounds.clone(), self.retention.clone()),
        };
        let foreign_streams = ForeignStreams {
            topics: ports.topics.clone(),
            events: Arc::new(store.clone()),
            store: store.clone(),
            instance: lease.writer_id,
            others: Arc::clone(&ports.others),
            clock: Arc::clone(clock),
            announced: Arc::default(),
        };
        let usage = Usage { quota: ports.quota.clone(), store: store.clone(), clock: Arc::clone(clock) };
        let sweeper = Sweeper::new(self.recovery(), lease);
        jobs::start(guardian, clock, RunQueue::new(self.recovery(), lease));
        jobs::start(guardian, clock, QuestionRounds::new(ports.clone()));
        jobs::start(guardian, clock, ErasureRounds::new(self.chat()));
        jobs::start(guardian, clock, rounds);
        jobs::start(guardian, clock, lease_rounds);
        jobs::start(guardian, clock, foreign_streams);
        jobs::start(guardian, clock, usage);
        jobs::start(guardian, clock, self.encoder.clone());
        jobs::start(guardian, clock, GateRounds::new(self.trainings()));
        jobs::start(guardian, clock, CanaryRounds::new(ports.clone()));
        jobs::start(guardian, clock, ReplyRounds::new(ports.clone()));
        jobs::start(guardian, clock, Maintenance { retention: self.retention.clone(), sweeper });
    }
}
