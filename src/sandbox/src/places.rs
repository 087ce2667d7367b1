//! Worker slots, shared fairly among workspaces.
//!
//! A workspace may take another slot only if it holds fewer slots than are free. A single workspace therefore uses half
//! the slots, and the next workspace always finds a free slot. Waiting calls are served round robin.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Free and held slots.
pub(crate) struct WorkerSlots {
    /// Maximum waiting calls.
    queue: usize,
    state: Mutex<SlotState>,
}

struct SlotState {
    free: usize,
    /// Held slots by owner.
    held: BTreeMap<Uuid, usize>,
    /// Waiting calls, by owner.
    waiting: BTreeMap<Uuid, VecDeque<oneshot::Sender<WorkerSlot>>>,
    /// The owner served last.
    last: Uuid,
}

/// A held slot; dropping it releases the slot.
pub(crate) struct WorkerSlot {
    slots: Option<Arc<WorkerSlots>>,
    owner: Uuid,
}

/// The queue is full.
#[derive(Debug)]
pub(crate) struct QueueFull;

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.give_back(self.owner);
        }
    }
}

impl WorkerSlots {
    pub(crate) fn new(slots: usize, queue: usize) -> Arc<Self> {
        let state =
            SlotState { free: slots, held: BTreeMap::new(), waiting: BTreeMap::new(), last: Uuid::nil() };
        Arc::new(Self { queue, state: Mutex::new(state) })
    }

    /// Takes a free slot, if there is one, for the pool's own work.
    pub(crate) fn free(self: &Arc<Self>) -> Option<WorkerSlot> {
        let mut state = self.state.lock();
        if state.free == 0 {
            return None;
        }
        Some(self.take(&mut state, Uuid::nil()))
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// [`QueueFull`]. Each owner may fill half the queue space that other owners leave.
    pub(crate) async fn wait(self: &Arc<Self>, owner: Uuid) -> Result<WorkerSlot, QueueFull> {
        let given = {
            let mut state = self.state.lock();
            state.forget_gone();
            if state.may_take(owner) && !state.waiting.contains_key(&owner) {
                return Ok(self.take(&mut state, owner));
            }
            let all: usize = state.waiting.values().map(VecDeque::len).sum();
            let own = state.waiting.get(&owner).map_or(0, VecDeque::len);
            if own >= self.queue.saturating_sub(all - own).div_ceil(2) {
                return Err(QueueFull);
            }
            let (give, given) = oneshot::channel();
            state.waiting.entry(owner).or_default().push_back(give);
            given
        };
        given.await.map_err(|_| QueueFull)
    }

    /// The number of slots that an owner holds.
    pub(crate) fn held(&self, owner: Uuid) -> usize {
        self.state.lock().held(owner)
    }

    fn take(self: &Arc<Self>, state: &mut SlotState, owner: Uuid) -> WorkerSlot {
        state.free -= 1;
        *state.held.entry(owner).or_default() += 1;
        WorkerSlot { slots: Some(Arc::clone(self)), owner }
    }

    fn give_back(self: Arc<Self>, owner: Uuid) {
        self.state.lock().release(owner);
        loop {
            let mut state = self.state.lock();
            let Some((owner, next)) = state.next() else { return };
            let slot = self.take(&mut state, owner);
            drop(state);
            // A caller that has gone is skipped. A caller that goes before it reads its slot drops the slot.
            if let Err(mut slot) = next.send(slot) {
                slot.slots = None;
                self.state.lock().release(owner);
            }
        }
    }
}

impl SlotState {
    fn held(&self, owner: Uuid) -> usize {
        self.held.get(&owner).copied().unwrap_or_default()
    }

    fn may_take(&self, owner: Uuid) -> bool {
        self.held(owner) < self.free
    }

    fn release(&mut self, owner: Uuid) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(&owner) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&owner);
            }
        }
    }

    /// The next call to serve: from the first owner, after the last served one, that may take a slot.
    fn next(&mut self) -> Option<(Uuid, oneshot::Sender<WorkerSlot>)> {
        self.forget_gone();
        let after = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded));
        let from_start = self.waiting.range(..=self.last);
        let owner = after.chain(from_start).map(|(owner, _)| *owner).find(|owner| self.may_take(*owner))?;
        self.last = owner;
        Some((owner, self.waiting.get_mut(&owner)?.pop_front()?))
    }

    fn forget_gone(&mut self) {
        self.waiting.retain(|_, own| {
            own.retain(|waiting| !waiting.is_closed());
            !own.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn waiting_owners_are_served_round_robin() {
        let slots = WorkerSlots::new(1, 100);
        let (one, two, three) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let mut held = slots.wait(one).await.ok();
        let owners = [one, one, one, two, three, two];
        let mut waiting: Vec<_> = owners.into_iter().map(|whose| Box::pin(slots.wait(whose))).collect();
        assert!(waiting.iter_mut().all(|wait| wait.now_or_never().is_none()));
        let mut order = Vec::new();
        for _ in owners {
            drop(held.take());
            let next = waiting.iter_mut().enumerate();
            let (index, slot) =
                next.filter_map(|(index, wait)| Some((index, wait.now_or_never()?))).next().unwrap();
            drop(waiting.remove(index));
            order.push(index);
            held = slot.ok();
        }
        // Each index is the position among the calls still waiting.
        assert_eq!(order, [0, 2, 2, 0, 1, 0]);
        drop(held);
        assert!(slots.free().is_some());
    }

    #[tokio::test]
    async fn a_cancelled_caller_frees_its_slot() {
        let slots = WorkerSlots::new(1, 100);
        let held = slots.free().unwrap();
        let mut gone = Box::pin(slots.wait(Uuid::nil()));
        let mut unheard = Box::pin(slots.wait(Uuid::nil()));
        let mut waits = Box::pin(slots.wait(Uuid::from_u128(7)));
        for wait in [&mut gone, &mut unheard, &mut waits] {
            assert!(wait.now_or_never().is_none());
        }
        drop(gone);
        // The slot goes to a caller that never reads it.
        drop(held);
        assert!(slots.free().is_none());
        drop((unheard, waits));
        assert!(slots.free().is_some());
    }

    #[tokio::test]
    async fn each_owner_leaves_room_in_the_queue() {
        let slots = WorkerSlots::new(0, 8);
        let waits = |whose: u128| {
            let mut wait = Box::pin(slots.wait(Uuid::from_u128(whose)));
            match (&mut wait).now_or_never() {
                None => Some(wait),
                Some(none) => {
                    assert!(none.is_err());
                    None
                }
            }
        };
        let first: Vec<_> = std::iter::repeat_with(|| waits(1)).take_while(Option::is_some).collect();
        let second: Vec<_> = std::iter::repeat_with(|| waits(2)).take_while(Option::is_some).collect();
        let third: Vec<_> = std::iter::repeat_with(|| waits(3)).take_while(Option::is_some).collect();
        assert_eq!((first.len(), second.len(), third.len()), (4, 2, 1));
        drop(first);
        assert!(waits(1).is_some());
    }

    #[tokio::test]
    async fn an_owner_leaves_slots_to_others() {
        let slots = WorkerSlots::new(8, 100);
        let takes = |owner: u128| {
            let mut wait = Box::pin(slots.wait(Uuid::from_u128(owner)));
            let taken = (&mut wait).now_or_never().map(Result::unwrap);
            (taken, wait)
        };
        let mut held = Vec::new();
        let mut waiting = Vec::new();
        let mut counts = Vec::new();
        for owner in 1..=5 {
            let (taken, waits): (Vec<_>, Vec<_>) =
                (0..8).map(|_| takes(owner)).partition(|(taken, _)| taken.is_some());
            counts.push(taken.len());
            held.push(taken);
            waiting.push(waits);
        }
        assert_eq!(counts, [4, 2, 1, 1, 0]);
        // A released slot goes to the owner without one.
        held[0].pop();
        let got = waiting.iter_mut().map(|waits| -> Vec<_> {
            waits.iter_mut().filter_map(|(_, wait)| wait.now_or_never()).collect()
        });
        let got: Vec<Vec<_>> = got.collect();
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
    }

    #[tokio::test]
    async fn a_single_slot_is_used() {
        let slots = WorkerSlots::new(1, 100);
        let held = slots.wait(Uuid::nil()).await.unwrap();
        assert_eq!(slots.held(Uuid::nil()), 1);
        drop(held);
        assert_eq!(slots.held(Uuid::nil()), 0);
        assert!(slots.wait(Uuid::nil()).now_or_never().is_some());
    }
}
