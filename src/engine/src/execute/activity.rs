//! Tracks whether a run works or only waits.
//!
//! A waiting run need not stay in memory: its driver may drop it, and resume it from its journal when the awaited
//! event arrives. So [`Activity`] counts working tasks. A task that runs nested work lends its place to it, and a
//! task that only waits releases its place meanwhile. Tasks that neither hold a place nor wait do not count.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The activity of one run.
#[derive(Debug, Default)]
pub struct Activity {
    state: Mutex<ActivityState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ActivityState {
    busy: i64,
    /// Current waits by key.
    waits: BTreeMap<u64, Wait>,
    /// Time limits of work in progress: no wait inside lasts longer.
    bounds: BTreeMap<u64, DateTime<Utc>>,
    changes: u64,
}

#[derive(Debug)]
struct Wait {
    /// Deadline; `None`: waits for a person.
    until: Option<DateTime<Utc>>,
    /// Whether it waits for a person.
    for_person: bool,
    /// The item question that it waits for.
    asks: Option<AskingStep>,
}

/// An attempt that waits for the answer to an item's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingStep {
    /// The node's name in the journal.
    pub node: String,
    /// The visit, from 1.
    pub visit: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// A run in which no task works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// When its next wait is due; `None` if it only waits for a person.
    pub until: Option<DateTime<Utc>>,
    /// Whether it also waits for a person, however soon `until` is.
    pub for_person: bool,
    /// Increases with each change.
    pub changes: u64,
}

impl Activity {
    /// Returns the run's waits if it only waits.
    #[must_use]
    pub fn idle(&self) -> Option<Idle> {
        let state = self.state.lock();
        if state.busy > 0 || state.waits.is_empty() {
            return None;
        }
        let due = state.waits.values().filter_map(|wait| wait.until.as_ref()).chain(state.bounds.values());
        let for_person = state.waits.values().any(|wait| wait.for_person);
        Some(Idle { until: due.min().copied(), for_person, changes: state.changes })
    }

    /// Lists the attempts that wait for answers to item questions.
    #[must_use]
    pub fn asking(&self) -> Vec<AskingStep> {
        self.state.lock().waits.values().filter_map(|wait| wait.asks.clone()).collect()
    }

    /// Waits for a change since the last call or poll.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn change(&self, change: impl FnOnce(&mut ActivityState)) {
        let mut state = self.state.lock();
        state.changes += 1;
        change(&mut state);
        drop(state);
        self.changed.notify_one();
    }

    /// Marks a task as working.
    pub(super) fn busy(&self) -> ActivityGuard<'_> {
        self.change(|state| state.busy += 1);
        ActivityGuard { activity: self, change: -1 }
    }

    /// Marks the working task as waiting only for its nested work.
    pub(super) fn lent(&self) -> ActivityGuard<'_> {
        self.change(|state| state.busy -= 1);
        ActivityGuard { activity: self, change: 1 }
    }

    /// Marks the working task as waiting, at most until `until`.
    pub(super) fn waits(&self, until: Option<DateTime<Utc>>) -> WaitGuard<'_> {
        self.waits_for(until, false, None)
    }

    /// Marks the working task as waiting for a person, at most until `until`.
    pub(super) fn waits_for_person(&self, until: Option<DateTime<Utc>>) -> WaitGuard<'_> {
        self.waits_for(until, true, None)
    }

    /// Marks the working task as waiting for the answer to an item's question.
    pub(super) fn asks(&self, step: AskingStep) -> WaitGuard<'_> {
        self.waits_for(None, true, Some(step))
    }

    fn waits_for(
        &self,
        until: Option<DateTime<Utc>>,
        for_person: bool,
        asks: Option<AskingStep>,
    ) -> WaitGuard<'_> {
        let lent = self.lent();
        let mut key = 0;
        self.change(|state| {
            key = state.changes;
            state.waits.insert(key, Wait { until, for_person, asks });
        });
        WaitGuard { _lent: lent, _entry: ActivityEntry { activity: self, key, bound: false } }
    }

    /// Limits work in progress to this time.
    pub(super) fn bound(&self, at: DateTime<Utc>) -> ActivityEntry<'_> {
        let mut key = 0;
        self.change(|state| {
            key = state.changes;
            state.bounds.insert(key, at);
        });
        ActivityEntry { activity: self, key, bound: true }
    }
}

/// Held while a task works or lends its place.
pub(crate) struct ActivityGuard<'a> {
    activity: &'a Activity,
    change: i64,
}

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.activity.change(|state| state.busy += self.change);
    }
}

/// Held while a task waits.
pub(super) struct WaitGuard<'a> {
    _entry: ActivityEntry<'a>,
    _lent: ActivityGuard<'a>,
}

/// Held while a wait or a time limit is active.
pub(super) struct ActivityEntry<'a> {
    activity: &'a Activity,
    key: u64,
    bound: bool,
}

impl Drop for ActivityEntry<'_> {
    fn drop(&mut self) {
        self.activity.change(|state| {
            if self.bound {
                state.bounds.remove(&self.key);
            } else {
                state.waits.remove(&self.key);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_run_is_idle_while_all_remaining_tasks_wait() {
        let activity = Activity::default();
        let until = || activity.idle().map(|idle| idle.until);
        assert_eq!(until(), None, "nothing waits");
        let main = activity.busy();
        let lent = activity.lent();
        let (one, two) = (activity.busy(), activity.busy());
        let waits = activity.waits(Some(at(9)));
        assert_eq!(until(), None, "another task is working");
        let asks = activity.waits(None);
        assert_eq!(until(), Some(Some(at(9))));
        let bound = activity.bound(at(5));
        assert_eq!(until(), Some(Some(at(5))), "a limit comes first");
        drop((bound, waits));
        assert_eq!(until(), None, "it continues");
        drop(one);
        assert_eq!(until(), Some(None), "only a question is open");
        drop((asks, two, lent));
        assert_eq!(until(), None, "it is the main path's turn");
        drop(main);
        assert_eq!(activity.state.lock().busy, 0);
    }
}
