//! Reads, renames and deletes threads.

use kernel::{ItemKey, ThreadId};
use store::{Slice, StoreError, StoredStream, StoredThread, ThreadsOf, TurnsToStop};
use wire::chat::ThreadItem;

use super::Chat;

impl Chat {
    /// Returns a thread, for authorization.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread(&self, id: ThreadId) -> Result<Option<StoredThread>, StoreError> {
        self.ports.store.thread(id).await
    }

    /// Records that a request has presented the visitor's cookie for a thread.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn require_cookie(&self, id: ThreadId) -> Result<(), StoreError> {
        self.ports.store.require_cookie(id).await
    }

    /// Returns an owner's threads; `None` if the cursor is not among them.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn threads_of(
        &self,
        of: ThreadsOf<'_>,
        slice: Slice<ThreadId>,
    ) -> Result<Option<Vec<StoredThread>>, StoreError> {
        self.ports.store.threads_of(of, slice).await
    }

    /// Returns a page of a thread's items, including hidden ones.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn items(
        &self,
        thread: ThreadId,
        slice: Slice<ItemKey>,
    ) -> Result<Vec<ThreadItem>, StoreError> {
        self.ports.store.items_of(thread, slice).await
    }

    /// Returns the given items that are in the thread.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn items_named(
        &self,
        thread: ThreadId,
        keys: &[ItemKey],
    ) -> Result<Vec<ThreadItem>, StoreError> {
        self.ports.store.items_named(thread, keys).await
    }

    /// Returns the stream of the turn that executes in a thread, or else of a parked one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn running(&self, thread: ThreadId) -> Result<Option<StoredStream>, StoreError> {
        match self.ports.store.running_turn(thread).await? {
            Some(turn) => self.ports.store.stream(turn.stream).await,
            None => Ok(None),
        }
    }

    /// Renames a thread; `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn rename(&self, id: ThreadId, title: &str) -> Result<Option<StoredThread>, StoreError> {
        self.ports.store.rename_thread(id, title).await
    }

    /// Deletes a thread and stops its turns; false if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; nothing is deleted then.
    pub async fn delete(&self, id: ThreadId) -> Result<bool, StoreError> {
        let Some(turns) = self.ports.store.delete_thread(id).await? else { return Ok(false) };
        // Notified at once, even if the next query fails.
        self.notify_stops(id, &turns);
        if let Err(error) = self.stop_turns(id, TurnsToStop::All).await {
            tracing::warn!(thread = %id, %error, "failed to wait for the turns of a deleted thread");
        }
        Ok(true)
    }
}
