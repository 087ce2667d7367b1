//! Slots for turns: each thread has a few.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use kernel::ThreadId;

use super::WAITING_TURNS;

/// The maximum number of turns waits in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many turns wait in this thread")]
pub struct Busy;

/// Slots in this process's threads. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Slots(Arc<DashMap<ThreadId, SlotCounts>>);

#[derive(Default)]
struct SlotCounts {
    places: usize,
    /// Slots of turns that are not stored yet.
    unstored: usize,
}

impl Slots {
    /// Takes a slot for a turn that will be stored.
    pub(super) fn take(&self, thread: ThreadId) -> Result<Slot, Busy> {
        let mut taken = self.0.entry(thread).or_default();
        if taken.places > WAITING_TURNS {
            return Err(Busy);
        }
        let is_behind = taken.unstored > 0;
        taken.places += 1;
        taken.unstored += 1;
        Ok(Slot { thread, slots: self.clone(), stored: false, is_behind })
    }

    /// Takes a slot for a turn accepted in an earlier life, regardless of the maximum.
    pub(super) fn take_stored(&self, thread: ThreadId) -> Slot {
        self.0.entry(thread).or_default().places += 1;
        Slot { thread, slots: self.clone(), stored: true, is_behind: false }
    }
}

/// A turn's slot in its thread, from before its start is stored until its end is stored.
pub(crate) struct Slot {
    thread: ThreadId,
    slots: Slots,
    stored: bool,
    is_behind: bool,
}

impl Slot {
    /// Whether an unstored turn took its slot before this one. The database knows the stored turns, and learns of their
    /// ends before readers do.
    pub(crate) fn is_behind_unstored(&self) -> bool {
        self.is_behind
    }

    /// Marks the turn as stored.
    pub(super) fn stored(&mut self) {
        if let Some(mut taken) = self.slots.0.get_mut(&self.thread)
            && !std::mem::replace(&mut self.stored, true)
        {
            taken.unstored = taken.unstored.saturating_sub(1);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.stored();
        if let Entry::Occupied(mut entry) = self.slots.0.entry(self.thread) {
            let taken = entry.get_mut();
            taken.places = taken.places.saturating_sub(1);
            if taken.places == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const THREAD: ThreadId = ThreadId(Uuid::nil());

    #[test]
    fn a_thread_has_slots_for_the_running_turn_and_a_limited_queue() {
        let slots = Slots::default();
        let mut taken: Vec<Slot> = (0..=WAITING_TURNS).map(|_| slots.take(THREAD).unwrap()).collect();
        assert!(slots.take(THREAD).is_err());
        assert!(slots.take(ThreadId(Uuid::max())).is_ok(), "another thread");
        let old = slots.take_stored(THREAD);
        taken.pop();
        assert!(slots.take(THREAD).is_err(), "a turn above the limit has a slot");
        drop(old);
        assert!(slots.take(THREAD).is_ok());
        taken.clear();
        assert!(slots.0.is_empty());
    }

    #[test]
    fn a_turn_queues_after_unstored_turns_only() {
        let slots = Slots::default();
        let mut first = slots.take(THREAD).unwrap();
        let mut second = slots.take(THREAD).unwrap();
        assert_eq!((first.is_behind_unstored(), second.is_behind_unstored()), (false, true));
        first.stored();
        first.stored();
        assert!(slots.take(THREAD).unwrap().is_behind_unstored());
        second.stored();
        assert!(!slots.take(THREAD).unwrap().is_behind_unstored());
        let unstored = slots.take(THREAD).unwrap();
        drop(unstored);
        assert!(!slots.take(THREAD).unwrap().is_behind_unstored(), "it was dropped");
        drop((first, second));
        assert!(slots.0.is_empty());
    }
}
