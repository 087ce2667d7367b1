//! What is done when the wall clock leaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use store::StoreError;

use crate::clock_watch::{ClockWatch, Leap};
use crate::tidying::Tidying;
use crate::triggers::CronRounds;

/// Looks at the clock with each round of the lease. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClockLeaps {
    watch: Arc<Mutex<ClockWatch>>,
    /// Times in the database are to be reckoned anew; stays until that is done.
    set_back: Arc<AtomicBool>,
    rounds: CronRounds,
    tidying: Tidying,
}

impl ClockLeaps {
    pub(crate) fn new(
        watch: ClockWatch,
        set_back: Arc<AtomicBool>,
        rounds: CronRounds,
        tidying: Tidying,
    ) -> Self {
        Self { watch: Arc::new(Mutex::new(watch)), set_back, rounds, tidying }
    }

    pub(crate) async fn look(&self) {
        let clock = &self.rounds.clock;
        let leap = self.watch.lock().look(clock.now(), clock.monotonic());
        match leap {
            Leap::None => {}
            Leap::Ahead(by) => {
                tracing::warn!(seconds = by.num_seconds(), "the clock was set ahead");
                self.tidying.keep_events_for_now();
            }
            Leap::Back(by) => {
                tracing::warn!(seconds = by.num_seconds(), "the clock was set back");
                self.set_back.store(true, Ordering::Relaxed);
            }
        }
        if leap != Leap::None
            && let Err(error) = self.tidying.make_partitions().await
        {
            // Whoever needs one makes it.
            tracing::warn!(%error, "failed to make partitions ahead");
        }
        if self.set_back.load(Ordering::Relaxed) {
            match self.reckon_anew().await {
                Ok(()) => self.set_back.store(false, Ordering::Relaxed),
                Err(error) => tracing::warn!(%error, "failed to move due times; retrying"),
            }
        }
    }

    async fn reckon_anew(&self) -> Result<(), StoreError> {
        self.rounds.store.clock_went_back(self.rounds.clock.now()).await?;
        self.rounds.plan_again().await
    }
}
