//! What stands in threads, and what becomes of them.

use kernel::{ItemKey, ThreadId};
use store::{Slice, StoreError, StoredStream, StoredThread, ThreadsOf, TurnsToStop};
use wire::chat::ThreadItem;

use super::Chat;

impl Chat {
    /// A thread, to see whose it is.
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

    /// The threads of an owner; `None` when the cursor is not one of them.
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

    /// Part of a thread's items, hidden ones included.
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

    /// Those of these items that are in the thread.
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

    /// The stream of the turn that executes in a thread, else of one that is parked.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn running(&self, thread: ThreadId) -> Result<Option<StoredStream>, StoreError> {
        match self.ports.store.running_turn(thread).await? {
            Some(turn) => self.ports.store.stream(turn.stream).await,
            None => Ok(None),
        }
    }

    /// Gives a thread another title; `None` when it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn rename(&self, id: ThreadId, title: &str) -> Result<Option<StoredThread>, StoreError> {
        self.ports.store.rename_thread(id, title).await
    }

    /// Deletes a thread and stops its turns; false when it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; nothing is deleted then.
    pub async fn delete(&self, id: ThreadId) -> Result<bool, StoreError> {
        let Some(turns) = self.ports.store.delete_thread(id).await? else { return Ok(false) };
        // Notified at once, whether or not the database answers once more.
        self.notify_stops(id, &turns);
        if let Err(error) = self.stop_turns(id, TurnsToStop::All).await {
            tracing::warn!(thread = %id, %error, "failed to wait for the turns of a deleted thread");
        }
        Ok(true)
    }
}
