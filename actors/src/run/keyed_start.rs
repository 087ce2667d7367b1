//! Starts under an `Idempotency-Key`: a retry finds what the first request started.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::RandomError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::batch::Batch;
use store::{Reservation, Reserved, StoreError};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::lanes::{EventFrames, Key, WriteError};
use crate::run::RunPorts;
use crate::run::lease::RunToken;
use crate::run::quota::WorkspaceFull;

/// How long a caller waits for the commit of its start.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Interval of the polls whether a start of another request is stored.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long another instance is given to store what it has reserved, before it is taken for dead.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// Caller and route.
    pub scope: String,
    /// The same for who the caller becomes with the answer: a retry may come under the new name.
    pub also: Option<String>,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

/// A turn or a run was not begun.
#[derive(Debug, thiserror::Error)]
pub enum RunStartError {
    /// As many turns wait in the thread as may.
    #[error("too many turns wait in the thread")]
    ThreadBusy,
    /// Another answer is being written in the thread, and its workflow takes no second message meanwhile.
    #[error("another answer is being written in the thread")]
    TurnRunning,
    /// The message that was to be answered again is not there any more.
    #[error("the message is not in the thread any more")]
    MessageGone,
    /// Too much waits to be written.
    #[error("too much waits to be written")]
    Overloaded,
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Draining,
    /// The workspace keeps as much as it may.
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

/// The ids of what is begun, made before anything is stored under them.
pub(crate) trait StartIds: Copy + Serialize + DeserializeOwned {
    fn run(&self) -> Uuid;
    fn stream(&self) -> Uuid;
}

/// What a request with a key has to do.
pub(crate) enum Claimed<I> {
    /// Begin it, under these ids.
    Begin(I, RunToken),
    /// Start it for an earlier request, which may be storing it at this moment: the first stored row wins.
    BeginFor(I, RunToken),
    /// Nothing: an earlier request has begun it.
    Started(I),
}

/// What an earlier request with this key has begun, if its start is stored.
pub(crate) async fn started<I: StartIds>(
    ports: &RunPorts,
    key: &IdempotencyKey,
) -> Result<Option<I>, RunStartError> {
    match ports.store.known_key::<I>(&key.scope, &key.key, &key.digest).await? {
        Reserved::New => Ok(None),
        Reserved::Different => Err(RunStartError::KeyReused),
        Reserved::Same(ids) => Ok(ports.store.stream(ids.stream()).await?.map(|_| ids)),
    }
}

/// Refuses what a full workspace would begin. A retry of what it has begun before is no reason to.
pub(crate) async fn refuse_full<I: StartIds>(
    ports: &RunPorts,
    workspace: Uuid,
    key: Option<&IdempotencyKey>,
) -> Result<(), RunStartError> {
    let Err(full) = ports.quota.room(workspace) else { return Ok(()) };
    let known = match key {
        Some(key) => started::<I>(ports, key).await?,
        None => None,
    };
    if known.is_some() { Ok(()) } else { Err(full.into()) }
}

/// Reserves the key for `ids`, or finds what it stands for.
pub(crate) async fn claim<I: StartIds>(
    ports: &RunPorts,
    key: &IdempotencyKey,
    mut ids: I,
    mut token: RunToken,
) -> Result<Claimed<I>, RunStartError> {
    let wanted = Reservation { scope: &key.scope, key: &key.key, digest: &key.digest, outcome: &ids };
    let mut anew = true;
    match ports.store.reserve_key(wanted).await? {
        Reserved::New => {}
        Reserved::Different => {
            token.released();
            return Err(RunStartError::KeyReused);
        }
        Reserved::Same(known) => {
            token.released();
            if ports.store.stream(known.stream()).await?.is_some() {
                return Ok(Claimed::Started(known));
            }
            // Two instances must not begin it both: each would run it. Without others, only an earlier life of this
            // instance can have reserved the key, and its writes are fenced.
            let elsewhere = ports.others.load(Ordering::Relaxed) && !ports.in_flight.knows(known.run());
            if elsewhere && is_stored(ports, known, ELSEWHERE).await? {
                return Ok(Claimed::Started(known));
            }
            // The first request died, or is dying, between its key and its start: begin it for it.
            match ports.in_flight.adopt(known.run()) {
                Some(adopted) => token = adopted,
                None => return joined(ports, known).await,
            }
            // Between the two looks it may have been stored, answered and forgotten; the sweeper sees to the token
            // then.
            if ports.store.stream(known.stream()).await?.is_some() {
                return Ok(Claimed::Started(known));
            }
            // The run has an id from back then, where recovery may not look any more.
            let _naming = ports.in_flight.naming().await;
            ports.store.reach_back(ports.writer, known.run()).await?;
            ids = known;
            anew = false;
        }
    }
    if let Some(also) = &key.also {
        let wanted = Reservation { scope: also, key: &key.key, digest: &key.digest, outcome: &ids };
        ports.store.reserve_key(wanted).await?;
    }
    Ok(if anew { Claimed::Begin(ids, token) } else { Claimed::BeginFor(ids, token) })
}

/// The same request is being stored at this moment; waits for it.
async fn joined<I: StartIds>(ports: &RunPorts, ids: I) -> Result<Claimed<I>, RunStartError> {
    match is_stored(ports, ids, START_LIMIT).await? {
        true => Ok(Claimed::Started(ids)),
        false => Err(RunStartError::Unacknowledged),
    }
}

/// Whether a start is stored by the end of this time.
async fn is_stored<I: StartIds>(ports: &RunPorts, ids: I, limit: Duration) -> Result<bool, StoreError> {
    let stored = async {
        while ports.store.stream(ids.stream()).await?.is_none() {
            ports.clock.sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    kernel::timeout(&*ports.clock, limit, stored).await.transpose().map(|stored| stored.is_some())
}

/// Commits a start and waits until it is acknowledged. The lane itself calls `accept`, so a caller that goes away
/// meanwhile changes nothing.
pub(crate) async fn commit_start(
    ports: &RunPorts,
    (workspace, stream): (Uuid, Uuid),
    token: RunToken,
    batch: Batch,
    events: Option<EventFrames>,
    accept: impl FnOnce(RunToken) + Send + 'static,
) -> Result<(), RunStartError> {
    let run = token.run();
    let _topic = ports.topics.produce(stream);
    let (acknowledge, acknowledged) = oneshot::channel();
    let topics = ports.topics.clone();
    let then = Box::new(move |outcome: Result<(), WriteError>| {
        match &outcome {
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
    match kernel::timeout(&*ports.clock, START_LIMIT, acknowledged).await {
        Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(error))) => {
            ports.db.forgive(run);
            Err(RunStartError::Write(error))
        }
        Some(Err(_)) => Err(RunStartError::Draining),
        None => Err(RunStartError::Unacknowledged),
    }
}
