//! Erases a visitor's data.

use std::collections::HashSet;
use std::time::Duration;

use store::{Erasure, StoreError, TurnsToStop};

use super::Chat;

/// Poll interval while turns end.
const PAUSE: Duration = Duration::from_millis(100);

impl Chat {
    /// Stops a visitor's turns and erases all data from before the request. Returns when nothing is left; if the future
    /// is dropped earlier, another call continues.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase(&self, erasure: &Erasure) -> Result<(), StoreError> {
        let store = &self.ports.store;
        let mut stopped = HashSet::new();
        loop {
            let unended = store.unended_threads_of(erasure).await?;
            for thread in &unended {
                // One request per thread is enough; polling writes nothing.
                if !stopped.insert(*thread) {
                    continue;
                }
                let turns = match store.delete_thread(*thread).await? {
                    Some(turns) => turns,
                    None => store.request_cancel_of_thread(*thread, TurnsToStop::All).await?,
                };
                self.notify_stops(*thread, &turns);
            }
            let erased = store.erase_threads_of(erasure).await?;
            if erased == 0 && unended.is_empty() && store.end_erasure(erasure).await? {
                return Ok(());
            }
            if erased == 0 {
                self.ports.clock.sleep(PAUSE).await;
            }
        }
    }
}
