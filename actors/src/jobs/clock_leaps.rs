//! Handles wall clock leaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use store::StoreError;

use crate::clock_watch::{ClockWatch, Leap};
use crate::jobs::retention::Retention;
use crate::triggers::CronRounds;

/// Checks the clock in each lease round. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClockLeaps {
    watch: Arc<Mutex<ClockWatch>>,
    /// Whether due times in the database must be recomputed; stays set until that succeeds.
    set_back: Arc<AtomicBool>,
    rounds: CronRounds,
    retention: Retention,
}

impl ClockLeaps {
    pub(crate) fn new(
        watch: ClockWatch,
        set_back: Arc<AtomicBool>,
        rounds: CronRounds,
        retention: Retention,
    ) -> Self {
        Self { watch: Arc::new(Mutex::new(watch)), set_back, rounds, retention }
    }

    pub(crate) async fn look(&self) {
        let clock = &self.rounds.clock;
        let leap = self.watch.lock().look(clock.now(), clock.monotonic());
        match leap {
            Leap::None => {}
            Leap::Ahead(by) => {
                tracing::warn!(seconds = by.num_seconds(), "clock set ahead");
                self.retention.delete_nothing_for_now();
            }
            Leap::Back(by) => {
                tracing::warn!(seconds = by.num_seconds(), "clock set back");
                self.set_back.store(true, Ordering::Relaxed);
            }
        }
        if leap != Leap::None
            && let Err(error) = self.retention.make_partitions().await
        {
            // A lane that needs a partition creates it.
            tracing::warn!(%error, "failed to create partitions ahead");
        }
        if self.set_back.load(Ordering::Relaxed) {
            match self.recompute_due_times().await {
                Ok(()) => self.set_back.store(false, Ordering::Relaxed),
                Err(error) => tracing::warn!(%error, "failed to recompute due times; retrying"),
            }
        }
    }

    async fn recompute_due_times(&self) -> Result<(), StoreError> {
        self.rounds.store.clock_went_back(self.rounds.clock.now()).await?;
        self.rounds.plan_again().await
    }
}
