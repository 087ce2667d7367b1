//! Threads and their items.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use kernel::ThreadId;
use uuid::Uuid;
use wire::chat::ThreadItem;

use crate::error::corrupt;
use crate::schema::{thread_items, threads};
use crate::{Store, StoreError};

/// A thread and whose it is.
#[derive(Debug, Clone)]
pub struct StoredThread {
    /// Its id.
    pub id: ThreadId,
    /// The workflow it belongs to.
    pub workflow_id: Uuid,
    /// `visitor`, `session`, `user` or `anyone`.
    pub owner_kind: String,
    /// Who, where the kind has somebody.
    pub owner_id: Option<String>,
    /// When it was begun.
    pub created_at: DateTime<Utc>,
}

impl Store {
    /// A thread by its id.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread(&self, id: ThreadId) -> Result<Option<StoredThread>, StoreError> {
        let row: Option<(Uuid, String, Option<String>, DateTime<Utc>)> = threads::table
            .find(id.0)
            .select((threads::workflow_id, threads::owner_kind, threads::owner_id, threads::created_at))
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(row.map(|(workflow_id, owner_kind, owner_id, created_at)| StoredThread {
            id,
            workflow_id,
            owner_kind,
            owner_id,
            created_at,
        }))
    }

    /// Every item of a thread, hidden ones included, in order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread_items(&self, id: ThreadId) -> Result<Vec<ThreadItem>, StoreError> {
        let rows: Vec<String> = thread_items::table
            .filter(thread_items::thread_id.eq(id.0))
            .order(thread_items::id)
            .select(thread_items::content)
            .load(&mut *self.connection().await?)
            .await?;
        rows.iter().map(|row| serde_json::from_str(row).map_err(|e| corrupt("thread item", e))).collect()
    }
}
