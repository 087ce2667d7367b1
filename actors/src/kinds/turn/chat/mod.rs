//! The chat's front door: begins turns, opens streams, stops turns.

mod history;
mod start;

use kernel::{ItemKey, ThreadId};
use store::{RunStatus, StoreError, StoredStream, TurnsToStop};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::{BusyThread, StopStatus};

use crate::kinds::turn::answered_before;
use crate::kinds::turn::thread::{Accepted, Slot, Threads};
use crate::plans::{PlanError, Runnable};
use crate::run::RunPorts;
use crate::run::cancel::Cancel;
use crate::run::keyed_start::{self, Claimed};
pub use crate::run::keyed_start::{IdempotencyKey, RunStartError};
use crate::run::lease::RunToken;
use crate::streams::Reader;
pub use start::{NewTurn, Owner, Target};
use start::{Seen, TurnIds};

/// A turn that was begun, now or by an earlier request with the same key.
pub struct StartedTurn {
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
    pub(crate) ports: RunPorts,
    pub(crate) threads: Threads,
    pub(crate) cancel: Cancel,
    pub(crate) draining: CancellationToken,
}

impl Chat {
    /// A workflow with its latest version, at most a second old.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read.
    pub async fn runnable(&self, workflow: Uuid) -> Result<Option<Runnable>, PlanError> {
        self.ports.plans.runnable(workflow).await
    }

    /// The workflow was changed here.
    pub fn forget(&self, workflow: Uuid) {
        self.ports.plans.forget(workflow);
    }

    /// Stores a turn's start and opens its stream. Once this returns, the turn runs whatever becomes of the caller.
    ///
    /// # Errors
    /// [`RunStartError`]; only [`RunStartError::Unacknowledged`] leaves open whether the turn was stored.
    pub async fn start(&self, new: NewTurn) -> Result<StartedTurn, RunStartError> {
        if self.draining.is_cancelled() {
            return Err(RunStartError::Draining);
        }
        if !self.ports.db.takes_new_work() {
            return Err(RunStartError::Overloaded);
        }
        keyed_start::refuse_full::<TurnIds>(&self.ports, new.workspace, new.idempotency.as_ref()).await?;
        let mut token = self.ports.in_flight.begin()?;
        let mut for_another = false;
        let mut ids = TurnIds {
            run: token.run(),
            stream: self.ports.ids.uuid()?,
            thread: match &new.target {
                Target::NewThread(_) => self.ports.ids.thread()?.0,
                Target::Thread(thread) | Target::Again(thread, _) => thread.0,
            },
            item: self.ports.ids.item()?.0,
        };
        // Before the key is reserved: who is refused now comes again with the same key.
        let Ok(mut slot) = self.threads.slot(ThreadId(ids.thread)) else {
            token.released();
            return Err(RunStartError::ThreadBusy);
        };
        if let Err(error) = self.refuse_busy(&new, &slot).await {
            token.released();
            return Err(error);
        }
        if let Some(key) = &new.idempotency {
            let wanted = ids.thread;
            (ids, token) = match keyed_start::claim(&self.ports, key, ids, token).await? {
                Claimed::Begin(ids, token) => (ids, token),
                Claimed::BeginFor(ids, token) => {
                    for_another = true;
                    (ids, token)
                }
                Claimed::Started(known) => return Ok(self.replayed(known)),
            };
            if ids.thread != wanted {
                slot = self.threads.slot(ThreadId(ids.thread)).map_err(|_| RunStartError::ThreadBusy)?;
            }
        }
        if new.busy == BusyThread::Interrupt && !matches!(new.target, Target::NewThread(_)) {
            self.cancel.cancel_thread(ThreadId(ids.thread), TurnsToStop::NotParked).await?;
        }
        let seen = match new.target {
            // It was there when the request was judged; reserving the key takes its time. What comes from here on is
            // left to the turn's beginning: another retry may take the message out.
            Target::Again(thread, message) => {
                let until = self.ports.ids.item()?;
                let Some(kept) = self.kept(thread, message).await? else {
                    token.released();
                    return Err(RunStartError::MessageGone);
                };
                Some(Seen { until, kept })
            }
            Target::NewThread(_) | Target::Thread(_) => None,
        };
        // At the last moment: an earlier request may have reserved the key long ago, and what has a later item comes
        // behind this.
        ids.item = self.ports.ids.item()?.0;
        let thread = ThreadId(ids.thread);
        let reader = self.store_start(new, ids, seen, token, (slot, for_another)).await?;
        if for_another {
            self.cancel.recovery().adopt(&[ids.run]).await;
        }
        Ok(StartedTurn { reader, thread, replayed: false })
    }

    /// Where only one message may be under way, another is refused.
    async fn refuse_busy(&self, new: &NewTurn, slot: &Slot) -> Result<(), RunStartError> {
        let (BusyThread::Reject, Target::Thread(thread) | Target::Again(thread, _)) = (new.busy, &new.target)
        else {
            return Ok(());
        };
        // What is stored the database knows, whichever instance has it. A place may outlive its turn for a moment.
        let running = self.ports.store.running_turn(*thread).await?;
        if slot.is_behind_unstored() || running.is_some_and(|turn| !turn.parked) {
            return Err(RunStartError::TurnRunning);
        }
        Ok(())
    }

    /// The last of what stands behind a message and is no answer to it; `None` when the message is gone.
    async fn kept(&self, thread: ThreadId, message: ItemKey) -> Result<Option<ItemKey>, StoreError> {
        let items = self.ports.store.thread_items(thread).await?;
        let id = message.wire("msg");
        if items.iter().all(|stored| stored.item.id() != id) {
            return Ok(None);
        }
        answered_before(&self.ports.store, thread, message, &items).await.map(Some)
    }

    /// What an earlier request with this key began, if its start is stored.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] when the key stands for another request.
    pub async fn started(&self, key: &IdempotencyKey) -> Result<Option<StartedTurn>, RunStartError> {
        Ok(keyed_start::started(&self.ports, key).await?.map(|ids| self.replayed(ids)))
    }

    fn replayed(&self, ids: TurnIds) -> StartedTurn {
        StartedTurn { reader: self.open(ids.stream, 0), thread: ThreadId(ids.thread), replayed: true }
    }

    /// A turn for another request does not continue at once: its owner is checked first.
    async fn store_start(
        &self,
        new: NewTurn,
        ids: TurnIds,
        seen: Option<Seen>,
        token: RunToken,
        (slot, for_another): (Slot, bool),
    ) -> Result<Reader, RunStartError> {
        let (batch, events, turn) = start::rows(new, ids, seen, self.ports.clock.now());
        let reader = self.ports.read(turn.stream, 0, true);
        let (threads, workspace, stream) = (self.threads.clone(), turn.workspace, turn.stream);
        let topics = self.ports.topics.clone();
        let accept = move |token| {
            if for_another {
                drop((slot, token));
                topics.abandon(stream);
            } else {
                threads.accept(Accepted { turn, slot, token, stop: false });
            }
        };
        keyed_start::commit_start(&self.ports, (workspace, stream), token, batch, Some(events), accept)
            .await?;
        Ok(reader)
    }

    /// A stream, to see whose it is.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stream(&self, id: Uuid) -> Result<Option<StoredStream>, StoreError> {
        self.ports.store.stream(id).await
    }

    /// Reads a stream behind event `after`.
    #[must_use]
    pub fn open(&self, stream: Uuid, after: u64) -> Reader {
        self.ports.read(stream, after, false)
    }

    /// Whether a finished stream has nothing behind event `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn all_seen(&self, stream: &StoredStream, after: u64) -> Result<bool, StoreError> {
        Ok(stream.ended && self.ports.store.frames_after(stream.id, after, 1).await?.is_empty())
    }

    /// Whether a stream has got as far as event `seq`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn reaches(&self, stream: &StoredStream, seq: u64) -> Result<bool, StoreError> {
        let Some(before) = seq.checked_sub(1) else { return Ok(true) };
        Ok(!self.ports.store.frames_after(stream.id, before, 1).await?.is_empty())
    }

    /// Stores that a stream's turn shall end, and waits for its end for a moment.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stop(&self, stream: &StoredStream) -> Result<StopStatus, StoreError> {
        let run = self.cancel.cancel(stream.run_id).await?;
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
