//! The lease of this instance, and which of its runs are not over.

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

/// The runs of this instance whose end is not durable yet.
#[derive(Clone)]
pub(crate) struct InFlight {
    ids: Ids,
    runs: Arc<Mutex<BTreeMap<Uuid, Care>>>,
    naming: Arc<tokio::sync::Mutex<()>>,
}

/// Who looks after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Nobody.
    Nobody,
    /// Whoever holds its token.
    Held,
    /// Whoever holds its token; when they are done with it, somebody else has to: it was given to this instance anew, out of
    /// the queue into which they have put it.
    HeldAndGivenAgain,
}

/// Holds a run as being looked after. Dropped without [`RunToken::released`], the run is an orphan that the sweeper
/// finds.
pub(crate) struct RunToken {
    run: Uuid,
    runs: Arc<Mutex<BTreeMap<Uuid, Care>>>,
    released: bool,
}

/// When the lease was renewed, in monotonic time.
///
/// After a gap the database may have been away for all instances: the leases of others have expired although they live. The
/// same holds after the database's clock has leaped. They get the time of a lease to renew it before any of them is taken for dead.
pub(crate) struct Renewals {
    last: Duration,
    database: Option<ClockWatch>,
    patient_until: Duration,
}

impl Renewals {
    const GAP: Duration = Duration::from_secs(5);

    /// Taken just now.
    pub(crate) fn new(now: Duration) -> Self {
        Self { last: now, database: None, patient_until: now }
    }

    /// Renewed just now, at this time of the database; returns whether an instance whose lease has expired may be taken for
    /// dead.
    pub(crate) fn renewed(&mut self, now: Duration, database: DateTime<Utc>) -> bool {
        let watch = self.database.get_or_insert_with(|| ClockWatch::new(database, now));
        let leaped = watch.look(database, now) != Leap::None;
        if leaped || now.saturating_sub(self.last) > Self::GAP {
            self.patient_until = now + Duration::from_secs(LEASE_SECONDS.unsigned_abs().into());
        }
        self.last = now;
        now >= self.patient_until
    }
}

impl InFlight {
    pub(crate) fn new(ids: Ids) -> Self {
        Self { ids, runs: Arc::default(), naming: Arc::default() }
    }

    /// A new run's id, counted from the moment it exists.
    pub(crate) fn begin(&self) -> Result<RunToken, RandomError> {
        let mut runs = self.runs.lock();
        // Under the lock: the oldest run is never computed between the id's making and its counting.
        let run = self.ids.uuid()?;
        runs.insert(run, Care::Held);
        Ok(RunToken { run, runs: Arc::clone(&self.runs), released: false })
    }

    /// Runs that this instance has, or perhaps has, and that nobody looks after yet, or that somebody is just done with.
    pub(crate) fn given(&self, found: &[Uuid]) {
        let mut runs = self.runs.lock();
        for run in found {
            let care = runs.entry(*run).or_insert(Care::Nobody);
            if *care == Care::Held {
                *care = Care::HeldAndGivenAgain;
            }
        }
    }

    /// Looks after a run that exists; `None` when somebody does already.
    pub(crate) fn adopt(&self, run: Uuid) -> Option<RunToken> {
        let mut runs = self.runs.lock();
        if runs.get(&run).is_some_and(|care| *care != Care::Nobody) {
            return None;
        }
        runs.insert(run, Care::Held);
        Some(RunToken { run, runs: Arc::clone(&self.runs), released: false })
    }

    /// Held from the moment the oldest run is looked for until the lease names it: a run from before it that is
    /// adopted meanwhile would be left out, and nobody would find it after a crash.
    pub(crate) async fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock().await
    }

    /// Whether a run counts here, whoever looks after it.
    pub(crate) fn knows(&self, run: Uuid) -> bool {
        self.runs.lock().contains_key(&run)
    }

    /// No run of this instance before this one is unfinished.
    pub(crate) fn oldest(&self) -> Result<Uuid, RandomError> {
        let runs = self.runs.lock();
        match runs.keys().next() {
            Some(oldest) => Ok(*oldest),
            None => self.ids.uuid(),
        }
    }

    /// Runs that nobody looks after.
    pub(crate) fn orphans(&self) -> Vec<Uuid> {
        let runs = self.runs.lock();
        runs.iter().filter(|(_, care)| **care == Care::Nobody).map(|(run, _)| *run).collect()
    }
}

impl RunToken {
    pub(crate) fn run(&self) -> Uuid {
        self.run
    }

    /// The run's end is durable, or it stands in the queue, or it never was.
    pub(crate) fn released(mut self) {
        self.released = true;
    }
}

impl Drop for RunToken {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        match runs.get_mut(&self.run) {
            Some(Care::Held) if self.released => _ = runs.remove(&self.run),
            Some(care) => *care = Care::Nobody,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{SystemClock, SystemRandom};

    #[test]
    fn nobody_is_taken_for_dead_right_behind_a_gap() {
        let second = Duration::from_secs;
        let mut renewals = Renewals::new(second(100));
        let time = |at: u64| DateTime::UNIX_EPOCH + second(at);
        let may = [102, 106, 115, 117, 121, 124, 125, 127].map(|at| renewals.renewed(second(at), time(at)));
        assert_eq!(may, [true, true, false, false, false, false, true, true]);
    }

    #[test]
    fn a_leap_of_the_databases_clock_makes_no_instance_dead() {
        let second = Duration::from_secs;
        let mut renewals = Renewals::new(second(100));
        let time = |at: u64| DateTime::UNIX_EPOCH + second(at);
        assert!(renewals.renewed(second(102), time(102)));
        let leaped = [104, 106, 110, 114, 116].map(|at| renewals.renewed(second(at), time(at + 864_000)));
        assert_eq!(leaped, [false, false, false, true, true]);
    }

    #[test]
    fn a_run_is_counted_until_its_end_is_durable() {
        let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
        let runs = InFlight::new(ids);
        let (first, second) = (runs.begin().unwrap(), runs.begin().unwrap());
        let (one, two) = (first.run(), second.run());
        assert_eq!(runs.oldest().unwrap(), one);
        assert!(runs.adopt(one).is_none(), "somebody looks after it");
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
    fn a_run_that_is_given_again_before_its_holder_is_done_is_found_by_the_sweeper() {
        let runs = InFlight::new(Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new())));
        let token = runs.begin().unwrap();
        let run = token.run();
        // It went into the queue and was taken out, all before its holder heard that it is there.
        runs.given(&[run]);
        assert!(runs.adopt(run).is_none(), "somebody holds it");
        assert!(runs.orphans().is_empty());
        token.released();
        assert_eq!(runs.orphans(), [run]);
        runs.adopt(run).unwrap().released();
        assert!(runs.orphans().is_empty());
    }
}
