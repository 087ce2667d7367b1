//! Starts a run of any kind: admit, claim the request's `Idempotency-Key`, commit, hand over to its actor; or hand over
//! first, and commit with the first writes. A retry with the same key finds the run that the first request started.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::RandomError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::batch::Batch;
use store::{Reservation, Reserved, StoreError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::RunPorts;
use super::early_start::EarlyStart;
use super::lease::RunToken;
use super::quota::WorkspaceFull;
use super::recover::Recovery;
use crate::lanes::{EventFrames, WriteError, WriterKey};

/// Maximum wait for the commit of a start.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Interval of the polls for another request's start.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time for another instance to store a reserved start before it counts as dead.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// Caller and route.
    pub scope: String,
    /// The caller's scope after this request, because a retry may carry the new identity.
    pub also: Option<String>,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

/// A run was not started.
#[derive(Debug, thiserror::Error)]
pub enum RunStartError {
    /// The thread already has the maximum number of waiting turns.
    #[error("too many turns wait in the thread")]
    ThreadBusy,
    /// Another answer is being written in the thread, and its workflow accepts no second message meanwhile.
    #[error("another answer is being written in the thread")]
    TurnRunning,
    /// The message to answer again is gone from the thread.
    #[error("the message is no longer in the thread")]
    MessageGone,
    /// An attachment in the message belongs to another thread.
    #[error("an attachment of the message belongs to another thread")]
    AttachmentInUse,
    /// An attachment in the message has been deleted.
    #[error("an attachment of the message was deleted")]
    AttachmentDeleted,
    /// Too many writes wait for the database.
    #[error("the write queue is full")]
    Overloaded,
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Draining,
    /// The workspace has reached its storage limit.
    #[error(transparent)]
    Full(#[from] WorkspaceFull),
    /// The key was used with another request.
    #[error("the key was used with another request")]
    KeyReused,
    /// The commit was not acknowledged in time; it may still succeed.
    #[error("the commit was not acknowledged in time")]
    Unacknowledged,
    /// The start cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No random bytes for ids.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Ids for a new run, created before anything is stored with them.
pub(crate) trait StartIds: Copy + Serialize + DeserializeOwned {
    fn run(&self) -> Uuid;
    fn stream(&self) -> Uuid;
}

/// The id of a run, which is also its stream's id.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RunIds {
    pub(crate) run: Uuid,
}

impl StartIds for RunIds {
    fn run(&self) -> Uuid {
        self.run
    }

    fn stream(&self) -> Uuid {
        self.run
    }
}

/// The result of claiming a request.
pub(crate) enum Claimed<I> {
    /// Start the run with these ids.
    Start(I, Claim),
    /// Do nothing: an earlier request started the run.
    Started(I),
}

/// The right to store a start.
pub(crate) struct Claim {
    token: RunToken,
    /// Whether the ids come from an earlier request, which may be storing the run right now: the first stored row wins.
    for_another: bool,
}

impl Claim {
    /// Whether the ids come from an earlier request.
    pub(crate) fn is_for_another(&self) -> bool {
        self.for_another
    }

    /// Releases the right: nothing was stored.
    pub(crate) fn released(self) {
        self.token.released();
    }
}

/// Rows and events that a start stores.
pub(crate) struct StartRows {
    pub(crate) workspace: Uuid,
    pub(crate) stream: Uuid,
    pub(crate) batch: Batch,
    /// The stream's first events.
    pub(crate) events: Option<EventFrames>,
    /// Whether the run waits in the queue for its turn.
    pub(crate) queued: bool,
}

/// Starts runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Starts {
    pub(crate) ports: RunPorts,
    pub(crate) recovery: Recovery,
    pub(crate) draining: CancellationToken,
}

impl Starts {
    /// The run that an earlier request with this key started, if that start is stored.
    pub(crate) async fn started<I: StartIds>(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<I>, RunStartError> {
        let store = &self.ports.store;
        match store.known_key::<I>(&key.scope, &key.key, &key.digest).await? {
            Reserved::New => Ok(None),
            Reserved::Different => Err(RunStartError::KeyReused),
            Reserved::Same(ids) => Ok(store.stream(ids.stream()).await?.map(|_| ids)),
        }
    }

    /// Creates a new run id, unless the service refuses starts now. A full workspace may still retry an earlier start.
    pub(crate) async fn admit<I: StartIds>(
        &self,
        workspace: Uuid,
        key: Option<&IdempotencyKey>,
    ) -> Result<RunToken, RunStartError> {
        if self.draining.is_cancelled() {
            return Err(RunStartError::Draining);
        }
        if !self.ports.db.takes_new_work() {
            return Err(RunStartError::Overloaded);
        }
        if let Err(full) = self.ports.quota.room(workspace) {
            let known = match key {
                Some(key) => Box::pin(self.started::<I>(key)).await?,
                None => None,
            };
            if known.is_none() {
                return Err(full.into());
            }
        }
        Ok(self.ports.in_flight.begin()?)
    }

    /// Reserves the request's key for `ids`, or finds the earlier request's reservation.
    pub(crate) async fn claim<I: StartIds>(
        &self,
        key: Option<&IdempotencyKey>,
        ids: I,
        token: RunToken,
    ) -> Result<Claimed<I>, RunStartError> {
        match key {
            None => Ok(Claimed::Start(ids, Claim { token, for_another: false })),
            // Boxed like everything that most starts do not need: a request's future is as large as the largest future
            // in it.
            Some(key) => Box::pin(self.claim_key(key, ids, token)).await,
        }
    }

    /// Reserves a run id chosen by the caller, or finds the run that an earlier request started with it. `digest`:
    /// SHA-256 of the request.
    pub(crate) async fn claim_id<I: StartIds>(
        &self,
        workspace: Uuid,
        ids: I,
        scope: &str,
        digest: &[u8],
    ) -> Result<Claimed<I>, RunStartError> {
        let key = ids.run().to_string();
        let key = IdempotencyKey { scope: scope.to_owned(), also: None, key, digest: digest.to_vec() };
        self.admit::<I>(workspace, Some(&key)).await?.released();
        let wanted = Reservation { scope: &key.scope, key: &key.key, digest: &key.digest, outcome: &ids };
        match self.ports.store.reserve_key(wanted).await? {
            Reserved::Different => Err(RunStartError::KeyReused),
            Reserved::New | Reserved::Same(_) => self.claim_for_another(ids).await,
        }
    }

    async fn claim_key<I: StartIds>(
        &self,
        key: &IdempotencyKey,
        ids: I,
        token: RunToken,
    ) -> Result<Claimed<I>, RunStartError> {
        let store = &self.ports.store;
        let wanted = Reservation { scope: &key.scope, key: &key.key, digest: &key.digest, outcome: &ids };
        let reserved = store.reserve_key(wanted).await?;
        let claimed = self.claim_reserved(reserved, ids, token).await?;
        if let (Claimed::Start(ids, _), Some(also)) = (&claimed, &key.also) {
            let wanted = Reservation { scope: also, key: &key.key, digest: &key.digest, outcome: ids };
            store.reserve_key(wanted).await?;
        }
        Ok(claimed)
    }

    /// Claims the start after the key was reserved, by this request or an earlier one.
    pub(crate) async fn claim_reserved<I: StartIds>(
        &self,
        reserved: Reserved<I>,
        ids: I,
        token: RunToken,
    ) -> Result<Claimed<I>, RunStartError> {
        match reserved {
            Reserved::New => Ok(Claimed::Start(ids, Claim { token, for_another: false })),
            Reserved::Different => {
                token.released();
                Err(RunStartError::KeyReused)
            }
            Reserved::Same(known) => {
                token.released();
                self.claim_for_another(known).await
            }
        }
    }

    /// Claims a reserved key: the first request has stored its start, is storing it, or died before storing it.
    async fn claim_for_another<I: StartIds>(&self, known: I) -> Result<Claimed<I>, RunStartError> {
        let ports = &self.ports;
        if self.is_stored(known).await? {
            return Ok(Claimed::Started(known));
        }
        // Only one instance may start the run, or it would execute twice. Without other instances, the reservation
        // comes from an earlier life of this instance, whose writes are fenced.
        let elsewhere = ports.others.load(Ordering::Relaxed) && !ports.in_flight.knows(known.run());
        if elsewhere && self.is_stored_within(known, ELSEWHERE).await? {
            return Ok(Claimed::Started(known));
        }
        let Some(token) = ports.in_flight.adopt(known.run()) else {
            // The same request is being stored right now.
            return match self.is_stored_within(known, START_LIMIT).await? {
                true => Ok(Claimed::Started(known)),
                false => Err(RunStartError::Unacknowledged),
            };
        };
        // It may have been stored, answered and forgotten between the two queries; then the sweeper handles the token.
        if self.is_stored(known).await? {
            return Ok(Claimed::Started(known));
        }
        // The run id may be older than the range that recovery scans.
        let _naming = ports.in_flight.naming().await;
        ports.store.reach_back(ports.writer, known.run()).await?;
        Ok(Claimed::Start(known, Claim { token, for_another: true }))
    }

    async fn is_stored(&self, ids: impl StartIds) -> Result<bool, StoreError> {
        Ok(self.ports.store.stream(ids.stream()).await?.is_some())
    }

    /// Waits until the start is stored, at most `limit`; returns whether it is.
    async fn is_stored_within(&self, ids: impl StartIds, limit: Duration) -> Result<bool, StoreError> {
        let clock = &*self.ports.clock;
        let stored = async {
            while !self.is_stored(ids).await? {
                clock.sleep(POLL_INTERVAL).await;
            }
            Ok(())
        };
        kernel::timeout(clock, limit, stored).await.transpose().map(|stored| stored.is_some())
    }

    /// Commits a start and waits for the acknowledgement. The lane itself calls `accept`, so a caller's disconnect
    /// changes nothing.
    ///
    /// `accept` is not called for a queued run, whose owner is the instance that claims it, or for an earlier request's
    /// run, whose owner is determined first.
    pub(crate) async fn commit(
        &self,
        claim: Claim,
        rows: StartRows,
        accept: impl FnOnce(RunToken) + Send + 'static,
    ) -> Result<(), RunStartError> {
        let Claim { token, for_another } = claim;
        let StartRows { workspace, stream, batch, events, queued } = rows;
        let run = token.run();
        let ports = &self.ports;
        let _topic = ports.topics.produce(stream);
        let (acknowledge, acknowledged) = oneshot::channel();
        let (topics, wakeups) = (ports.topics.clone(), ports.wakeups.clone());
        let then = Box::new(move |outcome: Result<(), WriteError>| {
            match &outcome {
                Ok(()) if queued => {
                    token.released();
                    topics.abandon(stream);
                    wakeups.queue();
                }
                Ok(()) if for_another => {
                    drop(token);
                    topics.abandon(stream);
                }
                Ok(()) => accept(token),
                Err(error) => {
                    topics.abandon(stream);
                    if matches!(error, WriteError::Poisoned(_)) {
                        token.released();
                    }
                }
            }
            let _ = acknowledge.send(outcome);
        });
        if let Err(error) = ports.db.submit_then(WriterKey { id: run, workspace }, batch, events, then) {
            ports.topics.abandon(stream);
            return Err(error.into());
        }
        if let Err(error) = self.acknowledged(acknowledged).await {
            if matches!(error, RunStartError::Write(_)) {
                ports.db.forgive(run);
            }
            return Err(error);
        }
        if for_another {
            Box::pin(self.recovery.adopt(&[run])).await;
        }
        Ok(())
    }

    /// Hands over a run at once together with its start: [`EarlyStart`] stores the start with the run's first writes,
    /// in one commit if the run does not wait. Waits for the acknowledgement.
    ///
    /// Only for runs that no other request or instance can know before, and that read nothing about their start from
    /// the database.
    pub(crate) async fn commit_early(
        &self,
        claim: Claim,
        rows: StartRows,
        accept: impl FnOnce(RunToken, Box<EarlyStart>),
    ) -> Result<(), RunStartError> {
        let Claim { token, .. } = claim;
        let run = token.run();
        let (early, acknowledged) = EarlyStart::new(run, rows, &self.ports.topics);
        accept(token, early);
        match self.acknowledged(acknowledged).await {
            Err(RunStartError::Draining) if !self.draining.is_cancelled() => {
                Err(RunStartError::Unacknowledged)
            }
            committed => committed,
        }
    }

    async fn acknowledged(
        &self,
        acknowledged: oneshot::Receiver<Result<(), WriteError>>,
    ) -> Result<(), RunStartError> {
        match kernel::timeout(&*self.ports.clock, START_LIMIT, acknowledged).await {
            Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(RunStartError::Write(error)),
            Some(Err(_)) => Err(RunStartError::Draining),
            None => Err(RunStartError::Unacknowledged),
        }
    }
}
