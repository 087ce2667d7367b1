//! Starts a run of any kind: admit, claim the request's `Idempotency-Key`, commit, hand over to its actor; or hand over, and
//! commit with the first writes. A retry with the same key finds what the first request started.

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
use crate::lanes::{EventFrames, Key, WriteError};

/// How long a caller waits for the commit of its start.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Interval of the polls whether a start of another request is stored.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long another instance may take to store what it has reserved before it counts as dead.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// Caller and route.
    pub scope: String,
    /// The scope of the caller after this request: a retry may come with the new identity.
    pub also: Option<String>,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

/// A run was not started.
#[derive(Debug, thiserror::Error)]
pub enum RunStartError {
    /// The maximum of turns waits in the thread.
    #[error("too many turns wait in the thread")]
    ThreadBusy,
    /// Another answer is being written in the thread, and its workflow accepts no second message meanwhile.
    #[error("another answer is being written in the thread")]
    TurnRunning,
    /// The message to answer again is not in the thread any more.
    #[error("the message is not in the thread any more")]
    MessageGone,
    /// Another thread has an attachment of the message.
    #[error("an attachment of the message belongs to another thread")]
    AttachmentInUse,
    /// An attachment of the message was deleted meanwhile.
    #[error("an attachment of the message was deleted")]
    AttachmentDeleted,
    /// Too many writes wait for the database.
    #[error("too much waits to be written")]
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
    /// The commit was not acknowledged in time; it may still come.
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

/// The ids of a new run, created before anything is stored with them.
pub(crate) trait StartIds: Copy + Serialize + DeserializeOwned {
    fn run(&self) -> Uuid;
    fn stream(&self) -> Uuid;
}

/// The id of a run that is the id of its stream, too.
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

/// What a request has to do.
pub(crate) enum Claimed<I> {
    /// Start the run with these ids.
    Start(I, Claim),
    /// Nothing: an earlier request has started it.
    Started(I),
}

/// The right to store a start.
pub(crate) struct Claim {
    token: RunToken,
    /// Whether the run has the ids of an earlier request, which may be storing it at this moment: the first stored row wins.
    for_another: bool,
}

impl Claim {
    /// Whether the run has the ids of an earlier request.
    pub(crate) fn is_for_another(&self) -> bool {
        self.for_another
    }

    /// Gives the right up: nothing was stored.
    pub(crate) fn released(self) {
        self.token.released();
    }
}

/// What a start stores.
pub(crate) struct StartRows {
    pub(crate) workspace: Uuid,
    pub(crate) stream: Uuid,
    pub(crate) batch: Batch,
    /// The first events of the stream.
    pub(crate) events: Option<EventFrames>,
    /// Whether the run waits in the queue until its turn comes.
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
    /// What an earlier request with this key has started, if its start is stored.
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

    /// Creates the id of a new run, unless the service refuses starts now. A full workspace may still retry what it has
    /// started before.
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

    /// Reserves the request's key for `ids`, or finds what an earlier request has reserved it for.
    pub(crate) async fn claim<I: StartIds>(
        &self,
        key: Option<&IdempotencyKey>,
        ids: I,
        token: RunToken,
    ) -> Result<Claimed<I>, RunStartError> {
        match key {
            None => Ok(Claimed::Start(ids, Claim { token, for_another: false })),
            // Boxed, as everything that most starts do not need: the future of a request is as large as the largest in it.
            Some(key) => Box::pin(self.claim_key(key, ids, token)).await,
        }
    }

    /// Reserves an id that the caller has chosen for a run, or finds what an earlier request has started with it. `digest`: SHA-256 of
    /// the request.
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

    /// What a request has to do whose key was reserved for `ids`, or before.
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

    /// The key is reserved: the first request has stored its start, is storing it, or died before it could.
    async fn claim_for_another<I: StartIds>(&self, known: I) -> Result<Claimed<I>, RunStartError> {
        let ports = &self.ports;
        if self.is_stored(known).await? {
            return Ok(Claimed::Started(known));
        }
        // Two instances must not both start it: each would execute it. Without others, only an earlier life of this instance
        // can have reserved the key, and its writes are fenced.
        let elsewhere = ports.others.load(Ordering::Relaxed) && !ports.in_flight.knows(known.run());
        if elsewhere && self.is_stored_within(known, ELSEWHERE).await? {
            return Ok(Claimed::Started(known));
        }
        let Some(token) = ports.in_flight.adopt(known.run()) else {
            // The same request is being stored at this moment.
            return match self.is_stored_within(known, START_LIMIT).await? {
                true => Ok(Claimed::Started(known)),
                false => Err(RunStartError::Unacknowledged),
            };
        };
        // It may have been stored, answered and forgotten between the two queries; the sweeper handles the token then.
        if self.is_stored(known).await? {
            return Ok(Claimed::Started(known));
        }
        // The run has an old id, older than recovery may look for.
        let _naming = ports.in_flight.naming().await;
        ports.store.reach_back(ports.writer, known.run()).await?;
        Ok(Claimed::Start(known, Claim { token, for_another: true }))
    }

    async fn is_stored(&self, ids: impl StartIds) -> Result<bool, StoreError> {
        Ok(self.ports.store.stream(ids.stream()).await?.is_some())
    }

    /// Whether a start is stored by the end of this time.
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

    /// Commits a start and waits for the acknowledgement. The lane itself calls `accept`, so a caller that disconnects
    /// meanwhile changes nothing.
    ///
    /// `accept` is not called for a run that waits in the queue, whose owner is the instance that claims it, nor for the run
    /// of another request, whose owner is looked up first.
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
        if let Err(error) = ports.db.submit_then(Key { id: run, workspace }, batch, events, then) {
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

    /// Hands a run over at once, and its start with it: [`EarlyStart`] stores the start together with the first writes of the
    /// run, in one commit if the run does not wait. Waits for the acknowledgement of that.
    ///
    /// Only for what no other request and no other instance can know before, and that reads nothing of its start from the
    /// database.
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
