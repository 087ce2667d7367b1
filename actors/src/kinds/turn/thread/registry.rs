//! Every thread that has a turn in this process, and the way to its actor.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use kernel::ThreadId;
use uuid::Uuid;

use super::actor::{Message, ThreadBlueprint};
use super::slots::{Busy, Slot, Slots};
use crate::kinds::turn::{Turn, TurnPorts};
use crate::run::lease::RunToken;
use crate::runtime::{ActorKind, Guardian, Handle, TellError};

/// An accepted turn with its place in the thread.
pub(crate) struct Accepted {
    pub(crate) turn: Turn,
    /// Given back when the turn is dropped.
    pub(crate) slot: Slot,
    pub(crate) token: RunToken,
    /// Whether its end was asked for before it was handed over.
    pub(crate) stop: bool,
}

/// The threads of this process. Cheap to clone.
#[derive(Clone)]
pub struct Threads {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) ports: TurnPorts,
    guardian: Guardian,
    actors: DashMap<ThreadId, Handle<Message>>,
    slots: Slots,
}

impl Threads {
    pub(crate) fn new(guardian: Guardian, ports: TurnPorts) -> Self {
        let (actors, slots) = (DashMap::new(), Slots::default());
        Self { inner: Arc::new(Inner { ports, guardian, actors, slots }) }
    }

    /// A place for one more turn.
    pub(crate) fn slot(&self, thread: ThreadId) -> Result<Slot, Busy> {
        self.inner.slots.take(thread)
    }

    /// A place for a turn that was accepted in an earlier life: it has one whatever else waits.
    pub(crate) fn old_slot(&self, thread: ThreadId) -> Slot {
        self.inner.slots.take_stored(thread)
    }

    /// Hands a stored turn to its thread, whose actor is made when there is none.
    pub(crate) fn accept(&self, mut accepted: Accepted) {
        accepted.slot.stored();
        let thread = accepted.turn.thread;
        self.tell(thread, Message::Accepted(Box::new(accepted)), true);
    }

    /// Tells a thread that a turn's end was asked for. A thread without an actor has no turn here.
    pub(crate) fn stop(&self, thread: ThreadId, run: Uuid) {
        self.tell(thread, Message::Stop(run), false);
    }

    fn tell(&self, thread: ThreadId, message: Message, make: bool) {
        let told = match self.inner.actors.entry(thread) {
            // An actor may retire at any moment, but not while a place in its mailbox is held.
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
            // It is stored: its run becomes an orphan, which the sweeper hands over again.
            tracing::warn!(%thread, %error, "a thread was not told; the sweeper will");
        }
    }

    fn spawn(&self, thread: ThreadId) -> Handle<Message> {
        let blueprint = ThreadBlueprint { thread, threads: self.clone() };
        self.inner.guardian.supervise(ActorKind::Thread, blueprint)
    }

    pub(super) fn ended(&self, thread: ThreadId, handle: &Handle<Message>) {
        self.inner.actors.remove_if(&thread, |_, known| known.is_same(handle));
    }

    /// How many threads have an actor.
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
