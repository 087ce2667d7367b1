//! The threads with a turn in this process, and access to their actors.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use engine::RunInput;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kernel::ThreadId;
use store::StoreError;
use uuid::Uuid;

use super::actor::{ThreadBlueprint, ThreadMessage};
use super::slots::{Busy, Slot, Slots};
use crate::kinds::turn::{TurnOf, Turns};
use crate::run::RunPorts;
use crate::run::drive::Driver;
use crate::run::kind::{Accepted, Door, Kind, KindRow, PastRun, RecoveredRun};
use crate::run::lease::RunToken;
use crate::runtime::{ActorKind, Guardian, Handle, TellError};

/// An accepted turn with its slot in the thread.
pub(crate) struct AcceptedTurn {
    pub(crate) accepted: Accepted<Turns>,
    /// Released when the turn is dropped.
    pub(crate) slot: Slot,
}

/// The threads in this process. Cheap to clone.
#[derive(Clone)]
pub struct Threads {
    pub(super) inner: Arc<ThreadsInner>,
}

pub(super) struct ThreadsInner {
    pub(super) kind: Arc<Turns>,
    pub(super) ports: RunPorts,
    guardian: Guardian,
    actors: DashMap<ThreadId, Handle<ThreadMessage>>,
    slots: Slots,
}

impl Threads {
    pub(crate) fn new(kind: Turns, guardian: Guardian, ports: RunPorts) -> Self {
        let (kind, actors, slots) = (Arc::new(kind), DashMap::new(), Slots::default());
        Self { inner: Arc::new(ThreadsInner { kind, ports, guardian, actors, slots }) }
    }

    pub(super) fn driver(&self, run: Arc<TurnOf>) -> Driver<Turns> {
        Driver { kind: Arc::clone(&self.inner.kind), run, ports: self.inner.ports.clone() }
    }

    /// Takes a slot for one more turn.
    pub(crate) fn slot(&self, thread: ThreadId) -> Result<Slot, Busy> {
        self.inner.slots.take(thread)
    }

    /// Takes a slot for a turn accepted in an earlier life, regardless of the maximum.
    pub(super) fn old_slot(&self, thread: ThreadId) -> Slot {
        self.inner.slots.take_stored(thread)
    }

    /// Hands a turn to its thread, and creates the thread's actor if necessary.
    pub(crate) fn accept(&self, mut turn: AcceptedTurn) {
        turn.slot.stored();
        let thread = turn.accepted.run.own.thread;
        self.tell(thread, ThreadMessage::Accepted(Box::new(turn)), true);
    }

    /// Notifies a thread of a stop request. A thread without an actor has no turn here.
    pub(crate) fn notify_stop(&self, thread: ThreadId, run: Uuid) {
        self.tell(thread, ThreadMessage::Stop(run), false);
    }

    fn tell(&self, thread: ThreadId, message: ThreadMessage, make: bool) {
        let told = match self.inner.actors.entry(thread) {
            // An actor may retire at any moment, except while a mailbox slot is reserved.
            Entry::Occupied(mut entry) => match entry.get().reserve() {
                Ok(place) => {
                    place.put(message);
                    Ok(())
                }
                Err(TellError::Gone) if make => {
                    entry.insert(self.spawn(thread));
                    entry.get().tell(message)
                }
                Err(TellError::Gone) => Ok(()),
                Err(full) => Err(full),
            },
            Entry::Vacant(entry) if make => entry.insert(self.spawn(thread)).tell(message),
            Entry::Vacant(_) => Ok(()),
        };
        if let Err(error) = told {
            // A stored run becomes orphaned, and the sweeper hands it over again. An early start is dropped, which
            // refuses it.
            tracing::warn!(%thread, %error, "failed to notify a thread; the sweeper will");
        }
    }

    fn spawn(&self, thread: ThreadId) -> Handle<ThreadMessage> {
        let blueprint = ThreadBlueprint { thread, threads: self.clone() };
        self.inner.guardian.supervise(ActorKind::Thread, blueprint)
    }

    pub(super) fn ended(&self, thread: ThreadId, handle: &Handle<ThreadMessage>) {
        self.inner.actors.remove_if(&thread, |_, known| known.is_same(handle));
    }

    /// Number of threads with an actor.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.actors.len()
    }

    /// Whether no thread has an actor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.actors.is_empty()
    }
}

impl Door for Threads {
    fn row(&self) -> KindRow {
        Turns::ROW
    }

    fn take_up(&self, recovered: RecoveredRun, token: RunToken) -> Result<(), String> {
        let accepted = Accepted::recovered(&*self.inner.kind, recovered, token)?;
        let slot = self.old_slot(accepted.run.own.thread);
        self.accept(AcceptedTurn { accepted, slot });
        Ok(())
    }

    fn stop(&self, run: Uuid, thread: Option<ThreadId>) {
        if let Some(thread) = thread {
            self.notify_stop(thread, run);
        }
    }

    fn pause(&self, _run: Uuid) {}

    fn past_input<'a>(&'a self, past: PastRun<'a>) -> BoxFuture<'a, Result<RunInput, StoreError>> {
        self.inner.kind.past_input(past, &self.inner.ports).boxed()
    }
}
