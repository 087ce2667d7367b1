//! The lease of this instance, and which of its runs are not over.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Ids, RandomError};
use parking_lot::Mutex;
use uuid::Uuid;

/// The runs of this instance whose end is not durable yet.
#[derive(Clone)]
pub(crate) struct InFlight {
    ids: Ids,
    runs: Arc<Mutex<BTreeMap<Uuid, bool>>>,
}

/// Holds a run as being looked after. Dropped without [`RunToken::finished`], the run is an orphan that the sweeper
/// finds.
pub(crate) struct RunToken {
    run: Uuid,
    runs: Arc<Mutex<BTreeMap<Uuid, bool>>>,
    finished: bool,
}

impl InFlight {
    pub(crate) fn new(ids: Ids) -> Self {
        Self { ids, runs: Arc::default() }
    }

    /// A new run's id, counted from the moment it exists.
    pub(crate) fn begin(&self) -> Result<RunToken, RandomError> {
        let mut runs = self.runs.lock();
        // Under the lock: the oldest run is never computed between the id's making and its counting.
        let run = self.ids.uuid()?;
        runs.insert(run, true);
        Ok(RunToken { run, runs: Arc::clone(&self.runs), finished: false })
    }

    /// Runs that exist and that nobody looks after yet.
    pub(crate) fn abandon(&self, found: &[Uuid]) {
        let mut runs = self.runs.lock();
        for run in found {
            runs.entry(*run).or_insert(false);
        }
    }

    /// Looks after a run that exists; `None` when somebody does already.
    pub(crate) fn adopt(&self, run: Uuid) -> Option<RunToken> {
        let held = self.runs.lock().insert(run, true);
        (held != Some(true)).then(|| RunToken { run, runs: Arc::clone(&self.runs), finished: false })
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
        self.runs.lock().iter().filter(|(_, held)| !**held).map(|(run, _)| *run).collect()
    }

    /// The run is over, or never was.
    pub(crate) fn forget(&self, run: Uuid) {
        self.runs.lock().remove(&run);
    }
}

impl RunToken {
    pub(crate) fn run(&self) -> Uuid {
        self.run
    }

    /// The run's end is durable.
    pub(crate) fn finished(mut self) {
        self.finished = true;
    }
}

impl Drop for RunToken {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        if self.finished {
            runs.remove(&self.run);
        } else if let Some(held) = runs.get_mut(&self.run) {
            *held = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{SystemClock, SystemRandom};

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
        second.finished();
        let again = runs.adopt(one).unwrap();
        assert!(runs.orphans().is_empty());
        again.finished();
        assert!(runs.oldest().unwrap() > two);
    }
}
