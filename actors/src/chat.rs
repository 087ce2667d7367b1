//! The chat's front door: begins turns, opens streams, stops turns.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Ids, ItemKey, RandomError, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::batch::{Batch, ItemRow, RunRow, StreamRow, ThreadRow};
use store::{Reservation, Reserved, RunStatus, Store, StoreError, StoredStream, StoredThread};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::chat::{
    ChatEvent, Dialect, Page, StreamOptions, Thread, ThreadItem, ThreadStatus, UserMessageInput,
};
use wire::{StopStatus, sse};

use crate::db::{Database, EventFrames, WriteError};
use crate::lease::{InFlight, RunToken};
use crate::plans::{LoadedVersion, PlanError, Plans, Runnable};
use crate::publish::{Reader, Topics};
use crate::thread::{Accepted, Slot, Threads};
use crate::turn::text::{json as to_json, timestamp};
use crate::turn::{Progress, Turn};

/// How long a caller waits for the commit of its turn's start.
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long a stop waits for the turn's end before it answers that it is on its way.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Whose a new thread is.
#[derive(Debug, Clone)]
pub struct Owner {
    /// `visitor`, `session`, `user` or `anyone`.
    pub kind: &'static str,
    /// Who, where the kind has somebody.
    pub id: Option<String>,
}

/// Where a message goes.
#[derive(Debug, Clone)]
pub enum Target {
    /// A new thread of this owner.
    NewThread(Owner),
    /// A thread that exists.
    Thread(ThreadId),
}

/// The `Idempotency-Key` of a request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// Caller and route.
    pub scope: String,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

/// A turn to begin.
pub struct NewTurn {
    /// Workspace of the workflow.
    pub workspace: Uuid,
    /// The workflow.
    pub workflow: Uuid,
    /// The version to run.
    pub version: Arc<LoadedVersion>,
    /// Where the message goes.
    pub target: Target,
    /// The message.
    pub input: UserMessageInput,
    /// Free data of the client.
    pub metadata: Map<String, Value>,
    /// Who the texts are written for.
    pub dialect: Dialect,
    /// The request's key, if it has one.
    pub idempotency: Option<IdempotencyKey>,
}

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
    /// Whether an earlier request began it.
    pub replayed: bool,
}

/// The ids of a turn, made before anything is stored under them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct TurnIds {
    run: Uuid,
    stream: Uuid,
    thread: Uuid,
    item: [u8; ItemKey::LENGTH],
}

/// Begins turns, opens streams, stops turns. Cheap to clone.
#[derive(Clone)]
pub struct Chat {
    store: Store,
    db: Database,
    topics: Topics,
    plans: Arc<Plans>,
    threads: Threads,
    in_flight: InFlight,
    clock: Arc<dyn Clock>,
    ids: Ids,
    draining: CancellationToken,
}

impl Chat {
    #[expect(clippy::too_many_arguments, reason = "called once")]
    pub(crate) fn new(
        store: Store,
        db: Database,
        topics: Topics,
        plans: Arc<Plans>,
        threads: Threads,
        in_flight: InFlight,
        clock: Arc<dyn Clock>,
        ids: Ids,
        draining: CancellationToken,
    ) -> Self {
        Self { store, db, topics, plans, threads, in_flight, clock, ids, draining }
    }

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
                        return Ok(Begun { reader: self.open(known.stream, 0), replayed: true });
                    }
                    // The first request died, or is dying, between its key and its start: begin it for it.
                    match self.in_flight.adopt(known.run) {
                        Some(adopted) => token = adopted,
                        None => return self.joined(known.stream).await,
                    }
                    ids = known;
                }
            }
        }
        let slot = self.threads.slot(ThreadId(ids.thread)).map_err(|_| BeginError::ThreadBusy)?;
        let reader = self.store_start(new, ids, token, slot).await?;
        Ok(Begun { reader, replayed: false })
    }

    /// The same request is being stored at this moment; waits for it.
    async fn joined(&self, stream: Uuid) -> Result<Begun, BeginError> {
        let stored = async {
            loop {
                match self.store.stream(stream).await {
                    Ok(None) => self.clock.sleep(Duration::from_millis(20)).await,
                    Ok(Some(_)) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        kernel::timeout(&*self.clock, START_LIMIT, stored).await.ok_or(BeginError::Unacknowledged)??;
        Ok(Begun { reader: self.open(stream, 0), replayed: true })
    }

    async fn store_start(
        &self,
        new: NewTurn,
        ids: TurnIds,
        token: RunToken,
        slot: Slot,
    ) -> Result<Reader, BeginError> {
        let (batch, events, turn) = self.start_rows(new, ids);
        let key = turn.run;
        let _topic = self.topics.produce(turn.stream);
        let reader =
            Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), turn.stream, 0, true);
        let (acknowledge, acknowledged) = oneshot::channel();
        let threads = self.threads.clone();
        // The lane itself tells the thread, so a caller that goes away meanwhile changes nothing.
        let then = Box::new(move |outcome: Result<(), WriteError>| {
            match &outcome {
                Ok(()) => threads.accept(Accepted { turn, _slot: slot, token, stop: false }),
                Err(WriteError::Poisoned(_)) => token.finished(),
                Err(_) => drop(token),
            }
            let _ = acknowledge.send(outcome);
        });
        self.db.submit_then(key, batch, Some(events), then)?;
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

    /// Everything that a turn's start stores, and its first events.
    fn start_rows(&self, new: NewTurn, ids: TurnIds) -> (Batch, EventFrames, Turn) {
        let now = self.clock.now();
        let created_at = timestamp(now);
        let (thread, item) = (ThreadId(ids.thread), ItemKey(ids.item));
        let user_message = ThreadItem::UserMessage {
            id: item.wire("msg"),
            thread_id: thread.to_string(),
            created_at: created_at.clone(),
            content: new.input.content.clone(),
            attachments: Vec::new(),
            quoted_text: new.input.quoted_text.clone(),
            inference_options: new.input.inference_options.clone(),
        };
        let inputs = json!({
            "message": new.input.model_text(),
            "thread_id": thread.to_string(),
            "attachments": [],
            "quoted_text": new.input.quoted_text,
            "inference_options": new.input.inference_options,
            "metadata": new.metadata,
        });
        let mut batch = Batch {
            items: vec![ItemRow { thread_id: thread, id: item, content: to_json(&user_message) }],
            runs: vec![RunRow {
                id: ids.run,
                workspace_id: new.workspace,
                workflow_id: new.workflow,
                version_id: new.version.id,
                trigger: "chat",
                thread_id: Some(thread),
                stream_id: Some(ids.stream),
                inputs: inputs.to_string(),
                created_at: now,
            }],
            streams: vec![StreamRow {
                id: ids.stream,
                run_id: ids.run,
                workflow_id: new.workflow,
                thread_id: Some(thread),
                dialect: new.dialect,
            }],
            ..Batch::default()
        };
        let mut events = Vec::with_capacity(3);
        if let Target::NewThread(owner) = new.target {
            batch.threads.push(ThreadRow {
                id: thread,
                workflow_id: new.workflow,
                workspace_id: new.workspace,
                owner_kind: owner.kind,
                owner_id: owner.id,
                created_at: now,
            });
            events.push(ChatEvent::ThreadCreated {
                thread: Thread {
                    id: thread.to_string(),
                    created_at,
                    status: ThreadStatus::Active,
                    items: Page::default(),
                    title: None,
                    metadata: Map::new(),
                },
            });
        }
        events.push(ChatEvent::ItemDone { item: user_message });
        events.push(ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } });
        let mut frames = String::with_capacity(1024);
        let mut next_seq = 1;
        for event in &events {
            sse::push_event(&mut frames, ids.stream, next_seq, &to_json(event));
            next_seq += 1;
        }
        let frames =
            EventFrames { stream: ids.stream, first_seq: 1, last_seq: next_seq - 1, frames, end: false };
        let turn = Turn {
            run: ids.run,
            stream: ids.stream,
            thread,
            workflow: new.workflow,
            version: new.version,
            dialect: new.dialect,
            inputs: Arc::new(inputs),
            progress: Progress::New { next_seq, user_item: item },
        };
        (batch, frames, turn)
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
            self.threads.stop(thread, run.id);
            let ended = self.ended(run.id);
            return Ok(kernel::timeout(&*self.clock, STOP_LIMIT, ended)
                .await
                .transpose()?
                .unwrap_or(StopStatus::Stopping));
        }
        Ok(stop_status(run.status))
    }

    async fn ended(&self, run: Uuid) -> Result<StopStatus, StoreError> {
        loop {
            match self.store.run(run).await? {
                Some(run) if !run.status.is_terminal() => {
                    self.clock.sleep(Duration::from_millis(10)).await;
                }
                Some(run) => return Ok(stop_status(run.status)),
                None => return Ok(StopStatus::Completed),
            }
        }
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
