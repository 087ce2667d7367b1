//! Erases the data of a visitor.

use std::time::Duration;

use store::{ChatVisitor, StoreError, TurnsToStop};

use super::Chat;

/// How long the ends of turns are waited for until the next look.
const PAUSE: Duration = Duration::from_millis(100);

impl Chat {
    /// Stops the turns of a visitor and erases all data, once an erasure was requested; returns how many threads it has erased. Ends when
    /// nothing is left; if it is dropped before, another call continues.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase(&self, visitor: &ChatVisitor) -> Result<u64, StoreError> {
        let store = &self.ports.store;
        let mut erased = 0;
        loop {
            let unended = store.unended_threads_of(visitor).await?;
            for thread in &unended {
                let turns = match store.delete_thread(*thread).await? {
                    Some(turns) => turns,
                    None => store.request_cancel_of_thread(*thread, TurnsToStop::All).await?,
                };
                self.notify_stops(*thread, &turns);
            }
            let part = store.erase_threads_of(visitor).await?;
            erased += part;
            if part == 0 && unended.is_empty() && store.end_erasure(visitor).await? {
                return Ok(erased);
            }
            if part == 0 {
                self.ports.clock.sleep(PAUSE).await;
            }
        }
    }
}
