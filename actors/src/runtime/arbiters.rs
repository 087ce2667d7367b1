//! The threads that actors run on, separate from the HTTP workers.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_rt::{Arbiter, ArbiterHandle};
use parking_lot::Mutex;

/// A pool of arbiters; actors are distributed in turn.
pub struct ArbiterPool {
    handles: Vec<ArbiterHandle>,
    owned: Mutex<Vec<Arbiter>>,
    next: AtomicUsize,
}

impl ArbiterPool {
    /// Starts `threads` arbiters; must be called inside an actix system.
    #[must_use]
    pub fn start(threads: usize) -> Self {
        let owned: Vec<Arbiter> = (0..threads.max(1)).map(|_| Arbiter::new()).collect();
        let handles = owned.iter().map(Arbiter::handle).collect();
        Self { handles, owned: Mutex::new(owned), next: AtomicUsize::new(0) }
    }

    /// Starts a future on one of the arbiters; the future need not be `Send`.
    pub fn spawn<M, F>(&self, make: M)
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(arbiter) = next.checked_rem(self.handles.len()).and_then(|n| self.handles.get(n)) {
            arbiter.spawn_fn(move || {
                actix_rt::spawn(make());
            });
        }
    }

    /// Stops the arbiters and waits for their threads.
    pub fn stop(&self) {
        for arbiter in self.owned.lock().drain(..) {
            arbiter.stop();
            let _ = arbiter.join();
        }
    }
}
