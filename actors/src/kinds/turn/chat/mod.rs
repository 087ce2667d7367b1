//! The entry point of the chat: starts turns, opens streams, stops turns.

mod answer;
mod dictation;
mod endpoint;
mod erase;
mod feedback;
mod history;
mod start;
mod stop;
mod title;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kernel::{AttachmentId, ItemKey, ThreadId};
use parking_lot::Mutex;
use store::{AttachmentClaim, OwnerKind, StoreError, StoredStream, TurnsToStop};
use tokio::sync::oneshot;
use uuid::Uuid;
use wire::{BusyThread, ChatLimits};

use crate::kinds::turn::answered_before;
use crate::kinds::turn::thread::{AcceptedTurn, Slot, Threads};
use crate::plans::{PlanError, Runnable};
use crate::run::RunPorts;
pub use crate::run::budget::BudgetSpent;
use crate::run::cancel::Cancel;
use crate::run::kind::Accepted;
use crate::run::quota::WorkspaceFull;
use crate::run::start::{Claim, Claimed, Starts};
pub use crate::run::start::{IdempotencyKey, RunStartError};
use crate::streams::Reader;
pub use answer::NewItemAnswer;
pub use dictation::DictationError;
pub use feedback::FeedbackInput;
pub use start::{ActionInput, Attached, NewTurn, Owner, Target};
use start::{ThreadSnapshot, TurnIds};
use title::FirstMessage;
pub use title::NewTitle;

/// A turn that was started, by this request or an earlier one with the same key.
pub struct StartedTurn {
    /// Its stream, from the first event on.
    pub reader: Reader,
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// Whether an earlier request started it.
    pub replayed: bool,
}

/// Starts turns, opens streams, stops turns. Cheap to clone.
#[derive(Clone)]
pub struct Chat {
    pub(crate) ports: RunPorts,
    pub(crate) threads: Threads,
    pub(crate) starts: Starts,
    pub(crate) cancel: Cancel,
}

impl Chat {
    /// Returns a workflow with its latest version, at most a second old.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read.
    pub async fn runnable(&self, workflow: Uuid) -> Result<Option<Runnable>, PlanError> {
        self.ports.plans.runnable(workflow).await
    }

    /// Refreshes a workflow that was just read: other instances may have changed the versions that its chat uses.
    ///
    /// # Errors
    /// [`PlanError`] when they cannot be read.
    pub async fn current(&self, known: Runnable) -> Result<Runnable, PlanError> {
        if self.ports.others.load(Ordering::Relaxed) {
            self.ports.plans.current(known).await
        } else {
            Ok(known)
        }
    }

    /// Drops a workflow that was changed here from the cache.
    pub fn forget(&self, workflow: Uuid) {
        self.ports.plans.forget(workflow);
    }

    /// Stores a turn's start and opens its stream. After this returns, the turn runs even if the caller disconnects.
    ///
    /// # Errors
    /// [`RunStartError`]; only [`RunStartError::Unacknowledged`] leaves open whether the turn was stored.
    pub async fn start(&self, new: NewTurn) -> Result<StartedTurn, RunStartError> {
        let key = new.idempotency.clone();
        let token = self.starts.admit::<TurnIds>(new.workspace, key.as_ref()).await?;
        let ids = TurnIds {
            run: token.run(),
            stream: self.ports.ids.uuid()?,
            thread: match new.target.thread() {
                None => self.ports.ids.thread()?.0,
                Some(thread) => thread.0,
            },
            item: self.ports.ids.item()?.0,
        };
        // Before the key is reserved, so a caller that is refused now can retry with the same key.
        let mut slot = match self.place(&new, ThreadId(ids.thread)).await {
            Ok(slot) => slot,
            Err(error) => {
                token.released();
                return Err(error);
            }
        };
        let wanted = ids.thread;
        let (ids, claim) = match self.starts.claim(key.as_ref(), ids, token).await? {
            Claimed::Start(ids, claim) => (ids, claim),
            Claimed::Started(known) => return Ok(self.replayed(known)),
        };
        let thread = ThreadId(ids.thread);
        if ids.thread != wanted {
            slot = self.threads.slot(thread).map_err(|_| RunStartError::ThreadBusy)?;
        }
        if !new.attachments.is_empty()
            && let Err(refused) = Box::pin(self.claim_attachments(&new, thread)).await
        {
            claim.released();
            return Err(refused);
        }
        let claimed = new.claims(thread);
        let started = self.start_claimed(new, ids, key.is_none(), claim, slot).await;
        if let (Err(error), Some((files, thread))) = (&started, claimed)
            && !matches!(error, RunStartError::Unacknowledged)
        {
            // Otherwise they are released after some minutes.
            if let Err(error) = Box::pin(self.ports.store.release_attachments(&files, thread)).await {
                tracing::warn!(%error, "failed to release the attachments of a message that is not stored");
            }
        }
        started
    }

    /// Starts an admitted turn whose attachments are claimed.
    async fn start_claimed(
        &self,
        new: NewTurn,
        mut ids: TurnIds,
        without_key: bool,
        claim: Claim,
        slot: Slot,
    ) -> Result<StartedTurn, RunStartError> {
        let thread = ThreadId(ids.thread);
        if new.busy == BusyThread::Interrupt && !matches!(new.target, Target::NewThread(_)) {
            Box::pin(self.stop_turns(thread, TurnsToStop::NotParked)).await?;
        }
        let seen = match new.target {
            Target::Again(thread, message) => match Box::pin(self.seen(thread, message)).await? {
                Some(seen) => Some(seen),
                None => {
                    claim.released();
                    return Err(RunStartError::MessageGone);
                }
            },
            Target::NewThread(_) | Target::Thread(_) | Target::Action(..) => None,
        };
        // As late as possible: an earlier request may have reserved the key long ago, and items are ordered by id.
        ids.item = self.ports.ids.item()?.0;
        let is_new = matches!(new.target, Target::NewThread(_));
        let mut new = new;
        new.choose_version(thread);
        let title = new.title.take().filter(|_| is_new).map(|title| {
            let content = new.input.content.clone();
            (title, FirstMessage { workspace: new.workspace, workflow: new.workflow, thread, content })
        });
        let (rows, mut run) = start::rows(new, ids, seen, self.ports.clock.now());
        let announced = title.is_some().then(oneshot::channel);
        let (announce, announced) = announced.unzip();
        run.own.retitled = Mutex::new(announced);
        // The topic first: a stream without a writer here counts as another instance's stream.
        let _topic = self.ports.topics.produce(ids.stream);
        let reader = self.ports.read(ids.stream, 0, true);
        let threads = self.threads.clone();
        let accept = move |run, token| {
            let accepted = Accepted { run: Arc::new(run), token, stop: false };
            threads.accept(AcceptedTurn { accepted, slot });
        };
        // Until the start is stored, only this request knows a new thread; with a key, another instance may start it
        // too.
        let is_alone = without_key || !self.ports.others.load(Ordering::Relaxed);
        if is_new && is_alone && !claim.is_for_another() {
            let accept = move |token, early| {
                run.early = Mutex::new(Some(early));
                accept(run, token);
            };
            self.starts.commit_early(claim, rows, accept).await?;
        } else {
            self.starts.commit(claim, rows, move |token| accept(run, token)).await?;
        }
        if let Some(((title, first), announce)) = title.zip(announce) {
            self.write_title(title, first, announce);
        }
        Ok(StartedTurn { reader, thread, replayed: false })
    }

    /// Assigns a new message's attachments to its thread.
    async fn claim_attachments(&self, new: &NewTurn, thread: ThreadId) -> Result<(), RunStartError> {
        let Some((claimed, _)) = new.claims(thread) else { return Ok(()) };
        let (owner_kind, owner_id) = match &new.target {
            Target::NewThread(owner) => (owner.kind, owner.id.as_deref()),
            // The thread's row has the owner.
            _ => (OwnerKind::Anyone, None),
        };
        let ids: Vec<AttachmentId> = claimed.iter().map(|one| one.id).collect();
        let store = &self.ports.store;
        match store.claim_attachments(&ids, thread, new.workflow, owner_kind, owner_id).await? {
            AttachmentClaim::Claimed => Ok(()),
            AttachmentClaim::InUse => Err(RunStartError::AttachmentInUse),
            AttachmentClaim::Deleted => Err(RunStartError::AttachmentDeleted),
        }
    }

    /// Checks the budget of a chat's models, and returns a limit that is reached.
    /// `session`: pays; `None` if the caller is unknown.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn check_budget(
        &self,
        workflow: Uuid,
        session: Option<&str>,
        limits: &ChatLimits,
    ) -> Result<Option<BudgetSpent>, StoreError> {
        // A caller without a session has spent nothing.
        let mut limits = *limits;
        if session.is_none() {
            (limits.session_tokens_per_day, limits.session_usd_per_day) = (None, None);
        }
        let session = session.unwrap_or_default();
        let (store, clock) = (&self.ports.store, &*self.ports.clock);
        self.ports.budgets.check(workflow, session, &limits, store, clock).await
    }

    /// Checks whether a workspace may store more.
    ///
    /// # Errors
    /// [`WorkspaceFull`] if it may not.
    pub fn check_room(&self, workspace: Uuid) -> Result<(), WorkspaceFull> {
        self.ports.quota.room(workspace)
    }

    /// Takes a slot in the thread, unless the thread or its workflow accepts no more turns now.
    async fn place(&self, new: &NewTurn, thread: ThreadId) -> Result<Slot, RunStartError> {
        let slot = self.threads.slot(thread).map_err(|_| RunStartError::ThreadBusy)?;
        self.refuse_busy(new, &slot).await?;
        Ok(slot)
    }

    /// Refuses a second message if the workflow accepts only one at a time.
    async fn refuse_busy(&self, new: &NewTurn, slot: &Slot) -> Result<(), RunStartError> {
        let (BusyThread::Reject, Some(thread)) = (new.busy, new.target.thread()) else { return Ok(()) };
        // The database knows the stored turns on all instances. A slot may briefly outlive its turn.
        let running = Box::pin(self.ports.store.running_turn(thread)).await?;
        if slot.is_behind_unstored() || running.is_some_and(|turn| !turn.parked) {
            return Err(RunStartError::TurnRunning);
        }
        Ok(())
    }

    /// Reads the thread for a retried message; `None` if the message is gone. It existed when the request was checked,
    /// but reserving the key takes time. Later changes are handled when the turn starts: another retry may cut the
    /// message.
    async fn seen(
        &self,
        thread: ThreadId,
        message: ItemKey,
    ) -> Result<Option<ThreadSnapshot>, RunStartError> {
        let until = self.ports.ids.item()?;
        let items = self.ports.store.thread_items(thread).await?;
        let id = message.wire("msg");
        if items.iter().all(|stored| stored.item.id() != id) {
            return Ok(None);
        }
        let kept = answered_before(&self.ports.store, thread, message, &items).await?;
        Ok(Some(ThreadSnapshot { until, kept }))
    }

    /// Returns the turn that an earlier request with this key started, if its start is stored.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] when the key belongs to another request.
    pub async fn started(&self, key: &IdempotencyKey) -> Result<Option<StartedTurn>, RunStartError> {
        Ok(self.starts.started(key).await?.map(|ids| self.replayed(ids)))
    }

    fn replayed(&self, ids: TurnIds) -> StartedTurn {
        StartedTurn { reader: self.open(ids.stream, 0), thread: ThreadId(ids.thread), replayed: true }
    }

    /// Returns a stream, for authorization.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stream(&self, id: Uuid) -> Result<Option<StoredStream>, StoreError> {
        self.ports.store.stream(id).await
    }

    /// Reads a stream after event `after`.
    #[must_use]
    pub fn open(&self, stream: Uuid, after: u64) -> Reader {
        self.ports.read(stream, after, false)
    }

    /// Whether a finished stream has no events after `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn all_seen(&self, stream: &StoredStream, after: u64) -> Result<bool, StoreError> {
        Ok(stream.ended && self.ports.store.frames_after(stream.id, after, 1).await?.is_empty())
    }

    /// Whether a stream has reached event `seq`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn reaches(&self, stream: &StoredStream, seq: u64) -> Result<bool, StoreError> {
        let Some(before) = seq.checked_sub(1) else { return Ok(true) };
        Ok(!self.ports.store.frames_after(stream.id, before, 1).await?.is_empty())
    }
}
