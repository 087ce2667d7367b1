//! What people think of thread items.

use diesel::prelude::*;
use diesel::upsert::excluded;
use diesel_async::RunQueryDsl;
use kernel::{ItemKey, ThreadId};

use crate::schema::item_feedback;
use crate::{OwnerKind, Store, StoreError};

/// One author's feedback on items of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Feedback<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// The items, each once.
    pub items: &'a [ItemKey],
    /// Kind of the author.
    pub author_kind: OwnerKind,
    /// The author's id; empty if the author is unknown.
    pub author_id: &'a str,
    /// `positive` or `negative`.
    pub kind: &'a str,
}

impl Store {
    /// Keeps it, in the place of what the same author thought before.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn put_feedback(&self, feedback: Feedback<'_>) -> Result<(), StoreError> {
        let Feedback { thread, items, author_kind, author_id, kind } = feedback;
        let now = self.now();
        let rows: Vec<_> = items
            .iter()
            .map(|item| {
                (
                    item_feedback::thread_id.eq(thread.0),
                    item_feedback::item_id.eq(item.0.to_vec()),
                    item_feedback::author_kind.eq(author_kind.as_str()),
                    item_feedback::author_id.eq(author_id),
                    item_feedback::kind.eq(kind),
                    item_feedback::created_at.eq(now),
                )
            })
            .collect();
        diesel::insert_into(item_feedback::table)
            .values(rows)
            .on_conflict((
                item_feedback::thread_id,
                item_feedback::item_id,
                item_feedback::author_kind,
                item_feedback::author_id,
            ))
            .do_update()
            .set((
                item_feedback::kind.eq(excluded(item_feedback::kind)),
                item_feedback::created_at.eq(excluded(item_feedback::created_at)),
            ))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}
