//! The lease of this instance, and its unfinished runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::{Ids, RandomError};
use parking_lot::Mutex;
use store::LEASE_SECONDS;
use tokio::sync::MutexGuard;
use uuid::Uuid;

use crate::clock_watch::{ClockWatch, Leap};

/// Runs of this instance whose end is not durable yet.
#[derive(Clone)]
pub(crate) struct InFlight {
    ids: Ids,
    runs: Arc<Mutex<BTreeMap<Uuid, Ownership>>>,
    naming: Arc<tokio::sync::Mutex<()>>,
}

/// Ownership of a run within this instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// No task owns the run: it is orphaned.
    Unowned,
    /// The holder of its token owns the run.
    Owned,
    /// The token's holder owns the run and has parked it; this instance has claimed the run again from the queue. It is
    /// orphaned once the holder drops the token.
    Reacquired,
}

/// Ownership of a run. If the token is dropped without [`RunToken::released`], the run is orphaned, and the next lease
/// round adopts it.
pub(crate) struct RunToken {
    run: Uuid,
    runs: Arc<Mutex<BTreeMap<Uuid, Ownership>>>,
    released: bool,
}

/// Times of lease renewals, in monotonic time.
///
/// After a gap, the database may have been unavailable to all instances, so leases of live instances have expired. The
/// same holds after a leap of the database clock. Other instances have one lease duration to renew before any of them
/// counts as dead.
pub(crate) struct Renewals {
    last: Duration,
    database: Option<ClockWatch>,
    patient_until: Duration,
}

impl Renewals {
    const GAP: Duration = Duration::from_secs(5);

    fn patience() -> Duration {
        Duration::from_secs(LEASE_SECONDS.unsigned_abs().into())
    }

    /// Starts with a lease acquired at this time. After a database failure, other instances may be about to renew their
    /// leases; they do so every two seconds.
    pub(crate) fn new(now: Duration) -> Self {
        Self { last: now, database: None, patient_until: now + Self::GAP }
    }

    /// Records a renewal at this database time. Returns whether an instance with an expired lease may be considered
    /// dead.
    pub(crate) fn renewed(&mut self, now: Duration, database: DateTime<Utc>) -> bool {
        let watch = self.database.get_or_insert_with(|| ClockWatch::new(database, now));
        let leaped = watch.look(database, now) != Leap::None;
        if leaped || now.saturating_sub(self.last) > Self::GAP {
            self.patient_until = now + Self::patience();
        }
        self.last = now;
        now >= self.patient_until
    }
}

impl InFlight {
    pub(crate) fn new(ids: Ids) -> Self {
        Self { ids, runs: Arc::default(), naming: Arc::default() }
    }

    /// Creates a new run id, which counts as unfinished from now on.
    pub(crate) fn begin(&self) -> Result<RunToken, RandomError> {
        let mut runs = self.runs.lock();
        // Under the lock, so the oldest run is never computed between creating the id and inserting it.
        let run = self.ids.uuid()?;
        runs.insert(run, Ownership::Owned);
        Ok(RunToken { run, runs: Arc::clone(&self.runs), released: false })
    }

    /// Adds runs that this instance has claimed, or may have claimed. They are orphaned unless a holder still
    /// owns them.
    pub(crate) fn given(&self, found: &[Uuid]) {
        let mut runs = self.runs.lock();
        for run in found {
            let ownership = runs.entry(*run).or_insert(Ownership::Unowned);
            if *ownership == Ownership::Owned {
                *ownership = Ownership::Reacquired;
            }
        }
    }

    /// Takes ownership of an existing run. Returns `None` if it already has an owner.
    pub(crate) fn adopt(&self, run: Uuid) -> Option<RunToken> {
        let mut runs = self.runs.lock();
        if runs.get(&run).is_some_and(|ownership| *ownership != Ownership::Unowned) {
            return None;
        }
        runs.insert(run, Ownership::Owned);
        Some(RunToken { run, runs: Arc::clone(&self.runs), released: false })
    }

    /// A lock held from computing the oldest run until the lease names it. Otherwise an older run could be adopted in
    /// between: the lease would omit it, and no instance would find it after a crash.
    pub(crate) async fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock().await
    }

    /// Whether a run counts as unfinished here, with or without an owner.
    pub(crate) fn knows(&self, run: Uuid) -> bool {
        self.runs.lock().contains_key(&run)
    }

    /// Returns the oldest unfinished run of this instance, or a new id if it has none.
    pub(crate) fn oldest(&self) -> Result<Uuid, RandomError> {
        let runs = self.runs.lock();
        match runs.keys().next() {
            Some(oldest) => Ok(*oldest),
            None => self.ids.uuid(),
        }
    }

    /// Returns the orphaned runs.
    pub(crate) fn orphans(&self) -> Vec<Uuid> {
        let runs = self.runs.lock();
        runs.iter().filter(|(_, ownership)| **ownership == Ownership::Unowned).map(|(run, _)| *run).collect()
    }
}

impl RunToken {
    pub(crate) fn run(&self) -> Uuid {
        self.run
    }

    /// Releases ownership: the run's end is durable, the run is in the queue, or it was never stored.
    pub(crate) fn released(mut self) {
        self.released = true;
    }
}

impl Drop for RunToken {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        match runs.get_mut(&self.run) {
            Some(Ownership::Owned) if self.released => _ = runs.remove(&self.run),
            Some(ownership) => *ownership = Ownership::Unowned,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{SystemClock, SystemRandom};

    #[test]
    fn no_instance_is_considered_dead_right_after_a_start_or_a_gap() {
        let second = Duration::from_secs;
        let mut renewals = Renewals::new(second(100));
        let time = |at: u64| DateTime::UNIX_EPOCH + second(at);
        let started = [102, 104, 106, 110].map(|at| renewals.renewed(second(at), time(at)));
        assert_eq!(started, [false, false, true, true]);
        let gap = [121, 123, 127, 130, 131, 133].map(|at| renewals.renewed(second(at), time(at)));
        assert_eq!(gap, [false, false, false, false, true, true]);
    }

    #[test]
    fn a_jump_of_the_database_clock_makes_no_instance_dead() {
        let second = Duration::from_secs;
        let mut renewals = Renewals::new(second(100));
        let time = |at: u64| DateTime::UNIX_EPOCH + second(at);
        let started = [102, 106, 110].map(|at| renewals.renewed(second(at), time(at)));
        assert_eq!(started, [false, true, true]);
        let leaped = [112, 116, 120, 122, 124].map(|at| renewals.renewed(second(at), time(at + 864_000)));
        assert_eq!(leaped, [false, false, false, true, true]);
    }

    #[test]
    fn a_run_is_counted_until_its_end_is_durable() {
        let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
        let runs = InFlight::new(ids);
        let (first, second) = (runs.begin().unwrap(), runs.begin().unwrap());
        let (one, two) = (first.run(), second.run());
        assert_eq!(runs.oldest().unwrap(), one);
        assert!(runs.adopt(one).is_none(), "it already has an owner");
        drop(first);
        assert_eq!(runs.orphans(), [one]);
        assert_eq!(runs.oldest().unwrap(), one, "an orphan still counts");
        second.released();
        let again = runs.adopt(one).unwrap();
        assert_eq!(runs.oldest().unwrap(), one);
        assert!(runs.orphans().is_empty());
        again.released();
        assert!(runs.oldest().unwrap() > two);
    }

    #[test]
    fn a_run_claimed_again_before_its_release_is_found_by_the_sweeper() {
        let runs = InFlight::new(Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new())));
        let token = runs.begin().unwrap();
        let run = token.run();
        // The run was parked and claimed again before its holder received the confirmation.
        runs.given(&[run]);
        assert!(runs.adopt(run).is_none(), "it already has an owner");
        assert!(runs.orphans().is_empty());
        token.released();
        assert_eq!(runs.orphans(), [run]);
        runs.adopt(run).unwrap().released();
        assert!(runs.orphans().is_empty());
    }
}
