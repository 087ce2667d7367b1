//! Fair scheduling on a thread: a workspace's runs share one slice per round, so another workspace's run waits for one
//! slice and not for one slice per run.
//!
//! A round is everything that the thread's runtime polls before it checks timers and sockets again.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kernel::Clock;
use uuid::Uuid;

/// Maximum time a run continues in one poll before it yields, at the next step or piece.
const SLICE: Duration = Duration::from_millis(1);

thread_local! {
    static WORKSPACES: RefCell<HashMap<Uuid, Round>> = RefCell::default();
}

/// A workspace's runs on this thread.
#[derive(Default)]
struct Round {
    /// The run that used up this round's slice.
    spent: Option<Uuid>,
    /// Runs waiting for their turn.
    waiting: VecDeque<(Uuid, Waker)>,
}

/// When the current poll of a run began, in nanoseconds of monotonic time.
#[derive(Clone, Default)]
pub(super) struct Slice(Arc<AtomicU64>);

impl Slice {
    fn begin(&self, now: Duration) {
        self.0.store(nanos(now), Ordering::Relaxed);
    }

    /// Whether the run must yield.
    pub(super) fn is_spent(&self, now: Duration) -> bool {
        nanos(now).saturating_sub(self.0.load(Ordering::Relaxed)) >= nanos(SLICE)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A run's position among its workspace's runs.
pub(super) struct Turn<'a> {
    run: Uuid,
    workspace: Uuid,
    slice: Slice,
    clock: &'a dyn Clock,
    position: QueuePosition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueuePosition {
    None,
    Waiting,
    /// It has the first turn of the next round.
    Next,
}

impl<'a> Turn<'a> {
    pub(super) fn new(run: Uuid, workspace: Uuid, slice: Slice, clock: &'a dyn Clock) -> Self {
        Self { run, workspace, slice, clock, position: QueuePosition::None }
    }

    /// Polls the run if it has the turn; otherwise registers it to be woken.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        run: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if !WORKSPACES.with_borrow_mut(|all| self.has_turn(all, context)) {
            return Poll::Pending;
        }
        self.slice.begin(self.clock.monotonic());
        let polled = run(context);
        let spent = self.slice.is_spent(self.clock.monotonic());
        WORKSPACES.with_borrow_mut(|all| self.pass_on(all, spent));
        polled
    }

    fn has_turn(&mut self, all: &mut HashMap<Uuid, Round>, context: &mut Context<'_>) -> bool {
        let Some(round) = all.get_mut(&self.workspace) else { return true };
        let waits = round.waiting.iter_mut().position(|(run, _)| *run == self.run);
        let is_first = waits.map_or(round.waiting.is_empty(), |at| at == 0);
        let may = match (is_first, round.spent) {
            (false, _) => false,
            (true, None) => true,
            // It used up the slice itself and yielded, or waited for the next round.
            (true, Some(by)) => (by == self.run && waits.is_none()) || self.position == QueuePosition::Next,
        };
        if may {
            if waits.is_some() {
                round.waiting.pop_front();
            }
            self.position = QueuePosition::None;
            return true;
        }
        match waits.and_then(|at| round.waiting.get_mut(at)) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => round.waiting.push_back((self.run, context.waker().clone())),
        }
        self.position = QueuePosition::Waiting;
        if is_first {
            self.position = QueuePosition::Next;
            // The runtime wakes it after everything that is ready now.
            let _ = pin!(tokio::task::yield_now()).poll(context);
        }
        false
    }

    fn pass_on(&self, all: &mut HashMap<Uuid, Round>, spent: bool) {
        if spent {
            all.entry(self.workspace).or_default().spent = Some(self.run);
        }
        let Some(round) = all.get_mut(&self.workspace) else { return };
        if !spent {
            round.spent = None;
        }
        match round.waiting.front() {
            Some((_, waker)) => waker.wake_by_ref(),
            None if !spent => {
                all.remove(&self.workspace);
            }
            None => {}
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The thread-local is gone when its thread ends.
        let _ = WORKSPACES.try_with(|all| {
            let mut all = all.borrow_mut();
            let Some(round) = all.get_mut(&self.workspace) else { return };
            round.waiting.retain(|(run, _)| *run != self.run);
            match round.waiting.front() {
                Some((_, waker)) => waker.wake_by_ref(),
                None => {
                    all.remove(&self.workspace);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::rc::Rc;

    use chrono::{DateTime, Utc};
    use kernel::ManualClock;
    use tokio::task::LocalSet;

    use super::*;

    /// Executes runs of `(workspace, slices)`; returns the owner of each slice.
    async fn slices(runs: &[(u128, usize)]) -> Vec<(u128, u128)> {
        let clock = Rc::new(ManualClock::new(DateTime::<Utc>::UNIX_EPOCH));
        let (local, used) = (LocalSet::new(), Rc::new(RefCell::new(Vec::new())));
        for (number, (workspace, slices)) in (0..).zip(runs.iter().copied()) {
            let (clock, used) = (Rc::clone(&clock), Rc::clone(&used));
            local.spawn_local(async move {
                let mut work = pin!(async {
                    for _ in 0..slices {
                        clock.advance(SLICE);
                        used.borrow_mut().push((workspace, number));
                        tokio::task::yield_now().await;
                    }
                });
                let (id, of) = (Uuid::from_u128(number), Uuid::from_u128(workspace));
                let mut turn = Turn::new(id, of, Slice::default(), &*clock);
                poll_fn(|context| turn.poll(context, |context| work.as_mut().poll(context))).await;
            });
        }
        local.await;
        WORKSPACES.with_borrow(|all| assert!(all.is_empty(), "something is left"));
        used.take()
    }

    #[tokio::test]
    async fn a_workspace_gets_one_slice_per_round_for_any_number_of_runs() {
        let mut runs = vec![(1, 10); 20];
        runs.push((2, 20));
        let used = slices(&runs).await;
        assert_eq!(used.len(), 220, "every run ends");
        let positions: Vec<usize> =
            used.iter().enumerate().filter(|(_, (of, _))| *of == 2).map(|(at, _)| at).collect();
        let between = positions.windows(2).map(|pair| pair[1] - pair[0] - 1).max();
        // The round after the first one begins with tasks that the first one queued.
        assert!(positions[0] <= 20 && between <= Some(2), "{positions:?}");
    }

    #[tokio::test]
    async fn runs_of_a_workspace_take_turns() {
        let used = slices(&[(1, 50); 5]).await;
        for (at, round) in used.chunks(5).enumerate() {
            let mut all: Vec<u128> = round.iter().map(|(_, number)| *number).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4], "slices {at}");
        }
    }

    #[tokio::test]
    async fn a_run_dropped_while_waiting_passes_its_turn_on() {
        let clock = ManualClock::new(DateTime::<Utc>::UNIX_EPOCH);
        let of = Uuid::from_u128(1);
        let turn = |id| Turn::new(Uuid::from_u128(id), of, Slice::default(), &clock);
        let (mut first, mut second, mut third) = (turn(1), turn(2), turn(3));
        let spend = poll_fn(|context| {
            let polled = first.poll(context, |_| {
                clock.advance(SLICE);
                Poll::<()>::Pending
            });
            assert!(polled.is_pending());
            // Two wait for the next round, and one of them is dropped.
            assert!(second.poll(context, |_| Poll::Ready(())).is_pending());
            assert!(third.poll(context, |_| Poll::Ready(())).is_pending());
            Poll::Ready(())
        });
        spend.await;
        drop((first, second));
        poll_fn(|context| third.poll(context, |_| Poll::Ready(()))).await;
        drop(third);
        WORKSPACES.with_borrow(|all| assert!(all.is_empty()));
    }
}
