//! What stands in threads, for who may read it.

use kernel::{ItemKey, ThreadId};
use store::{Slice, StoreError, StoredThread, ThreadsOf};
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

    /// Somebody's threads; `None` when the one to go on behind is none of them.
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
}
