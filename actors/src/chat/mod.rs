//! The chat's front door: begins turns, opens streams, stops turns.

mod start;

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Ids, RandomError, ThreadId};
use store::{Reservation, Reserved, RunStatus, Store, StoreError, StoredStream, StoredThread};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::StopStatus;

use crate::db::{Database, WriteError};
use crate::lease::{InFlight, RunToken};
use crate::plans::{PlanError, Plans, Runnable};
use crate::publish::{Reader, Readout, Topics};
use crate::thread::{Accepted, Slot, Threads};
use start::TurnIds;
pub use start::{IdempotencyKey, NewTurn, Owner, Target};

/// How long a caller waits for the commit of its turn's start.
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long a stop waits for the turn's end before it answers that it is on its way.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How long it waits before it tells the thread once more.
const STOP_AGAIN: Duration = Duration::from_millis(100);

/// A turn was not begun.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// As many turns wait in the thread as may.
    #[error("too many turns wait in the thread")]
    ThreadBusy,
    /// Too much waits to be written.
    #[error("too much waits to be written")]
    Overloaded,
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Draining,
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

/// A turn that was begun, now or by an earlier request with the same key.
pub struct Begun {
    /// Its stream, from the first event on.
    pub reader: Reader,
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// Whether an earlier request began it.
    pub replayed: bool,
}

/// Begins turns, opens streams, stops turns. Cheap to clone.
#[derive(Clone)]
pub struct Chat {
    pub(crate) store: Store,
    pub(crate) db: Database,
    pub(crate) topics: Topics,
    pub(crate) plans: Arc<Plans>,
    pub(crate) threads: Threads,
    pub(crate) in_flight: InFlight,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) draining: CancellationToken,
}

impl Chat {
    /// A workflow with its latest version, at most a second old.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read.
    pub async fn runnable(&self, workflow: Uuid) -> Result<Option<Runnable>, PlanError> {
        self.plans.runnable(workflow).await
    }

    /// The workflow was changed here.
    pub fn forget(&self, workflow: Uuid) {
        self.plans.forget(workflow);
    }

    /// A thread, to see whose it is.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread(&self, id: ThreadId) -> Result<Option<StoredThread>, StoreError> {
        self.store.thread(id).await
    }

    /// Stores a turn's start and opens its stream. Once this returns, the turn runs whatever becomes of the caller.
    ///
    /// # Errors
    /// [`BeginError`]; only [`BeginError::Unacknowledged`] leaves open whether the turn was stored.
    pub async fn begin(&self, new: NewTurn) -> Result<Begun, BeginError> {
        if self.draining.is_cancelled() {
            return Err(BeginError::Draining);
        }
        if !self.db.takes_new_work() {
            return Err(BeginError::Overloaded);
        }
        let mut token = self.in_flight.begin()?;
        let mut ids = TurnIds {
            run: token.run(),
            stream: self.ids.uuid()?,
            thread: match &new.target {
                Target::NewThread(_) => self.ids.thread()?.0,
                Target::Thread(thread) => thread.0,
            },
            item: self.ids.item()?.0,
        };
        if let Some(key) = &new.idempotency {
            let wanted = Reservation { scope: &key.scope, key: &key.key, digest: &key.digest, outcome: &ids };
            match self.store.reserve_key(wanted).await? {
                Reserved::New => {}
                Reserved::Different => {
                    token.finished();
                    return Err(BeginError::KeyReused);
                }
                Reserved::Same(known) => {
                    token.finished();
                    if self.store.stream(known.stream).await?.is_some() {
                        return Ok(self.replayed(known));
                    }
                    // The first request died, or is dying, between its key and its start: begin it for it.
                    match self.in_flight.adopt(known.run) {
                        Some(adopted) => token = adopted,
                        None => return self.joined(known).await,
                    }
                    // Between the two looks it may have been stored, answered and forgotten; the sweeper sees to
                    // the token then.
                    if self.store.stream(known.stream).await?.is_some() {
                        return Ok(self.replayed(known));
                    }
                    // The run has an id from back then, where recovery may not look any more.
                    {
                        let _naming = self.in_flight.naming().await;
                        self.store.reach_back(self.threads.inner.writer, known.run).await?;
                    }
                    ids = known;
                }
            }
            if let Some(also) = &key.also {
                let wanted = Reservation { scope: also, key: &key.key, digest: &key.digest, outcome: &ids };
                self.store.reserve_key(wanted).await?;
            }
        }
        let thread = ThreadId(ids.thread);
        let slot = self.threads.slot(thread).map_err(|_| BeginError::ThreadBusy)?;
        let reader = self.store_start(new, ids, token, slot).await?;
        Ok(Begun { reader, thread, replayed: false })
    }

    /// What an earlier request with the same key began.
    fn replayed(&self, known: TurnIds) -> Begun {
        Begun { reader: self.open(known.stream, 0), thread: ThreadId(known.thread), replayed: true }
    }

    /// The same request is being stored at this moment; waits for it.
    async fn joined(&self, known: TurnIds) -> Result<Begun, BeginError> {
        let stored = async {
            loop {
                match self.store.stream(known.stream).await {
                    Ok(None) => self.clock.sleep(Duration::from_millis(20)).await,
                    Ok(Some(_)) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        kernel::timeout(&*self.clock, START_LIMIT, stored).await.ok_or(BeginError::Unacknowledged)??;
        Ok(self.replayed(known))
    }

    async fn store_start(
        &self,
        new: NewTurn,
        ids: TurnIds,
        token: RunToken,
        slot: Slot,
    ) -> Result<Reader, BeginError> {
        let (batch, events, turn) = start::rows(new, ids, self.clock.now());
        let key = turn.run;
        let _topic = self.topics.produce(turn.stream);
        let reader =
            Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), turn.stream, 0, true);
        let (acknowledge, acknowledged) = oneshot::channel();
        let (threads, topics, stream) = (self.threads.clone(), self.topics.clone(), turn.stream);
        // The lane itself tells the thread, so a caller that goes away meanwhile changes nothing.
        let then = Box::new(move |outcome: Result<(), WriteError>| {
            match &outcome {
                Ok(()) => threads.accept(Accepted { turn, _slot: slot, token, stop: false }),
                Err(error) => {
                    topics.abandon(stream);
                    if matches!(error, WriteError::Poisoned(_)) {
                        token.finished();
                    }
                }
            }
            let _ = acknowledge.send(outcome);
        });
        if let Err(error) = self.db.submit_then(key, batch, Some(events), then) {
            self.topics.abandon(stream);
            return Err(error.into());
        }
        let outcome = kernel::timeout(&*self.clock, START_LIMIT, acknowledged).await;
        match outcome {
            Some(Ok(Ok(()))) => Ok(reader),
            Some(Ok(Err(error))) => {
                self.db.forgive(key);
                Err(BeginError::Write(error))
            }
            Some(Err(_)) => Err(BeginError::Draining),
            None => Err(BeginError::Unacknowledged),
        }
    }

    /// A stream, to see whose it is.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stream(&self, id: Uuid) -> Result<Option<StoredStream>, StoreError> {
        self.store.stream(id).await
    }

    /// Reads a stream behind event `after`.
    #[must_use]
    pub fn open(&self, stream: Uuid, after: u64) -> Reader {
        Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), stream, after, false)
    }

    /// Whether a finished stream has nothing behind event `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn all_seen(&self, stream: &StoredStream, after: u64) -> Result<bool, StoreError> {
        Ok(stream.ended && self.store.frames_after(stream.id, after, 1).await?.is_empty())
    }

    /// Whether a stream has got as far as event `seq`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn reaches(&self, stream: &StoredStream, seq: u64) -> Result<bool, StoreError> {
        let Some(before) = seq.checked_sub(1) else { return Ok(true) };
        Ok(!self.store.frames_after(stream.id, before, 1).await?.is_empty())
    }

    /// Stores that a stream's turn shall end, and waits for its end for a moment.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stop(&self, stream: &StoredStream) -> Result<StopStatus, StoreError> {
        let Some(run) = self.store.request_cancel(stream.run_id).await? else {
            return Ok(StopStatus::Completed);
        };
        if !run.status.is_terminal()
            && let Some(thread) = stream.thread_id
        {
            let ended = self.ended(stream.id, thread, run.id);
            return match kernel::timeout(&*self.clock, STOP_LIMIT, ended).await {
                Some(status) => status,
                None => Ok(StopStatus::Stopping),
            };
        }
        Ok(stop_status(run.status))
    }

    /// Tells the thread until the stream has ended: a turn is stored a moment before its thread knows of it.
    async fn ended(&self, stream: Uuid, thread: ThreadId, run: Uuid) -> Result<StopStatus, StoreError> {
        // Behind every event: all it ever reads is the end.
        let mut reader = self.open(stream, u64::MAX - 1);
        loop {
            self.threads.stop(thread, run);
            match kernel::timeout(&*self.clock, STOP_AGAIN, reader.next()).await {
                Some(Ok(Readout::End)) => break,
                Some(Ok(Readout::Frames(_))) | None => {}
                Some(Err(error)) => return Err(error.into()),
            }
        }
        let run = self.store.run(run).await?;
        Ok(run.map_or(StopStatus::Completed, |run| stop_status(run.status)))
    }
}

fn stop_status(status: RunStatus) -> StopStatus {
    match status {
        RunStatus::Cancelled => StopStatus::Stopped,
        RunStatus::Failed => StopStatus::Failed,
        RunStatus::Succeeded => StopStatus::Completed,
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => StopStatus::Stopping,
    }
}
