//! Limits how many trainings execute concurrently on this instance: workspaces take turns, each with its oldest run
//! first.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

/// An instance's slots. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Slots(Arc<Mutex<SlotQueue>>);

struct SlotQueue {
    free: usize,
    /// Waiting runs, by workspace.
    waiting: BTreeMap<Uuid, BTreeMap<Uuid, oneshot::Sender<Slot>>>,
    /// The workspace that was served last.
    last: Uuid,
}

/// A slot, returned when dropped.
pub(crate) struct Slot {
    slots: Slots,
}

impl Slots {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(SlotQueue { free: places, waiting: BTreeMap::new(), last: Uuid::nil() })))
    }

    /// Waits for a slot. Cancel-safe.
    pub(super) async fn take(&self, workspace: Uuid, run: Uuid) -> Slot {
        let waits = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Slot { slots: self.clone() };
            }
            let (give, given) = oneshot::channel();
            state.waiting.entry(workspace).or_default().insert(run, give);
            given
        };
        match waits.await {
            Ok(slot) => slot,
            // Another life of the run has replaced this one in the queue.
            Err(_) => std::future::pending().await,
        }
    }
}

impl SlotQueue {
    /// Takes the next run from the queue.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let after = self.waiting.range((std::ops::Bound::Excluded(self.last), std::ops::Bound::Unbounded));
        let workspace = after.map(|(workspace, _)| *workspace).next();
        let workspace = workspace.or_else(|| self.waiting.keys().next().copied())?;
        self.last = workspace;
        let runs = self.waiting.get_mut(&workspace)?;
        let next = runs.pop_first().map(|(_, give)| give);
        if runs.is_empty() {
            self.waiting.remove(&workspace);
        }
        next
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.slots.0.lock();
            let next = state.next();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // If the receiver is gone, the slot is dropped again, which serves the next run.
            let _ = next.send(Self { slots: self.slots.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn slots_rotate_between_workspaces_and_start_with_their_oldest_run() {
        let slots = Slots::new(1);
        let [one, two] = [1, 2].map(Uuid::from_u128);
        let run = |number: u128| Uuid::from_u128(100 + number);
        let mut held = slots.take(one, run(0)).now_or_never().unwrap();
        let order = [(one, 3), (one, 1), (two, 4), (one, 2)];
        let mut waiting: Vec<_> = order
            .iter()
            .map(|(workspace, number)| (*number, Box::pin(slots.take(*workspace, run(*number)))))
            .collect();
        for (_, waits) in &mut waiting {
            assert!(waits.as_mut().now_or_never().is_none());
        }
        let mut served = Vec::new();
        for _ in 0..order.len() {
            drop(held);
            let mut next = None;
            waiting.retain_mut(|(number, waits)| match waits.as_mut().now_or_never() {
                Some(slot) => {
                    served.push(*number);
                    next = Some(slot);
                    false
                }
                None => true,
            });
            held = next.unwrap();
        }
        assert_eq!(served, [1, 4, 2, 3]);
    }

    #[test]
    fn a_cancelled_wait_takes_no_slot() {
        let slots = Slots::new(1);
        let workspace = Uuid::from_u128(1);
        let held = slots.take(workspace, Uuid::from_u128(1)).now_or_never().unwrap();
        let mut gone = Box::pin(slots.take(workspace, Uuid::from_u128(2)));
        let mut next = Box::pin(slots.take(workspace, Uuid::from_u128(3)));
        assert!(gone.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        let held = next.as_mut().now_or_never().unwrap();
        drop(held);
        assert!(slots.take(workspace, Uuid::from_u128(4)).now_or_never().is_some());
    }
}
