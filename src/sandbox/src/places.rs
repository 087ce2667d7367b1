//! Places for calls, given out in turn among those who share them: who asks for many waits behind himself.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Places that are free or held.
pub(crate) struct Places {
    /// Most that wait.
    queue: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// Those who wait, by whose they are; nobody does while a place is free.
    waiting: BTreeMap<Uuid, VecDeque<oneshot::Sender<Place>>>,
    /// Whose turn it was last.
    last: Uuid,
}

/// Held while a call has its place.
pub(crate) struct Place(Option<Arc<Places>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.give_back();
        }
    }
}

impl Places {
    pub(crate) fn new(places: usize, queue: usize) -> Arc<Self> {
        let state = State { free: places, waiting: BTreeMap::new(), last: Uuid::nil() };
        Arc::new(Self { queue, state: Mutex::new(state) })
    }

    /// A place that is free now.
    pub(crate) fn free(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state.lock();
        state.free = state.free.checked_sub(1)?;
        Some(Place(Some(Arc::clone(self))))
    }

    /// A place, as soon as there is one; `None` when too many wait already. Each may fill half of what the others leave
    /// of the queue.
    pub(crate) async fn wait(self: &Arc<Self>, whose: Uuid) -> Option<Place> {
        let given = {
            let mut state = self.state.lock();
            if let Some(free) = state.free.checked_sub(1) {
                state.free = free;
                return Some(Place(Some(Arc::clone(self))));
            }
            state.forget_gone();
            let all: usize = state.waiting.values().map(VecDeque::len).sum();
            let own = state.waiting.entry(whose).or_default();
            if own.len() >= self.queue.saturating_sub(all - own.len()).div_ceil(2) {
                return None;
            }
            let (give, given) = oneshot::channel();
            own.push_back(give);
            given
        };
        given.await.ok()
    }

    fn give_back(self: Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            let Some(next) = state.next() else {
                state.free += 1;
                return;
            };
            drop(state);
            // Who is gone meanwhile is passed over; whoever goes without having looked drops the place again.
            match next.send(Place(Some(Arc::clone(&self)))) {
                Ok(()) => return,
                Err(mut place) => place.0 = None,
            }
        }
    }
}

impl State {
    /// Who is next: the first of those behind whose turn it was last.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        self.forget_gone();
        let behind = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded)).next();
        let whose = *behind.or_else(|| self.waiting.iter().next())?.0;
        self.last = whose;
        self.waiting.get_mut(&whose)?.pop_front()
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
    async fn who_shares_has_turns_whoever_asks_for_more() {
        let places = Places::new(1, 100);
        let (one, two, three) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let mut held = places.wait(one).await;
        let asked = [one, one, one, two, three, two];
        let mut waiting: Vec<_> = asked.into_iter().map(|whose| Box::pin(places.wait(whose))).collect();
        assert!(waiting.iter_mut().all(|wait| wait.now_or_never().is_none()));
        let mut order = Vec::new();
        for _ in asked {
            drop(held.take());
            let next = waiting.iter_mut().enumerate();
            let (index, place) =
                next.filter_map(|(index, wait)| Some((index, wait.now_or_never()?))).next().unwrap();
            drop(waiting.remove(index));
            order.push(index);
            held = place;
        }
        // Each index is that among those who still wait.
        assert_eq!(order, [0, 2, 2, 0, 1, 0]);
        drop(held);
        assert!(places.free().is_some());
    }

    #[tokio::test]
    async fn who_goes_away_takes_no_place_with_him() {
        let places = Places::new(1, 100);
        let held = places.free().unwrap();
        let mut gone = Box::pin(places.wait(Uuid::nil()));
        let mut unheard = Box::pin(places.wait(Uuid::nil()));
        let mut waits = Box::pin(places.wait(Uuid::from_u128(7)));
        for wait in [&mut gone, &mut unheard, &mut waits] {
            assert!(wait.now_or_never().is_none());
        }
        drop(gone);
        // It is given to one who never looks.
        drop(held);
        assert!(places.free().is_none());
        drop((unheard, waits));
        assert!(places.free().is_some());
    }

    #[tokio::test]
    async fn the_queue_has_room_for_everybody() {
        let places = Places::new(0, 8);
        let waits = |whose: u128| {
            let mut wait = Box::pin(places.wait(Uuid::from_u128(whose)));
            match (&mut wait).now_or_never() {
                None => Some(wait),
                Some(none) => {
                    assert!(none.is_none());
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
}
