//! Threads and their items.

use chrono::{DateTime, Utc};
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::{ItemBody, Page, Thread, ThreadItem, ThreadStatus};

use crate::chat::owner::{OwnerKind, ThreadsOf};
use crate::chat::turns::{self, UnfinishedTurn};
use crate::error::corrupt;
use crate::schema::{thread_cuts, thread_items, threads};
use crate::{Store, StoreError};

/// A thread and its owner.
#[derive(Debug, Clone)]
pub struct StoredThread {
    /// Its id.
    pub id: ThreadId,
    /// The workflow it belongs to.
    pub workflow_id: Uuid,
    /// The owner kind.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// Its title, once it has one.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: ThreadStatus,
    /// Allowed hosts for widget images, if there is a list.
    pub image_domains: Option<Vec<String>>,
    /// When it was started.
    pub created_at: DateTime<Utc>,
    /// The canary version that it uses while that version is the canary.
    pub canary: Option<i32>,
    /// Whether its id alone gives no access, because a request has presented the visitor's cookie.
    pub requires_cookie: bool,
}

/// A thread item.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredItem {
    /// The item.
    pub item: ThreadItem,
    /// The user message that it answers; `None` for a user message, or if unknown.
    pub answers: Option<ItemKey>,
    /// The run that created it; `None` for a user message, or if unknown.
    pub run: Option<Uuid>,
}

/// An item with its relation to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundItem {
    /// Its id.
    pub id: ItemKey,
    /// The item.
    pub item: ThreadItem,
    /// The name by which graphs replace or remove it.
    pub key: Option<String>,
    /// The item before the run changed it, if it did.
    pub before: Option<ThreadItem>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = thread_items)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct FoundRow {
    id: Vec<u8>,
    content: String,
    key: Option<String>,
    changed_by: Option<Uuid>,
    before: Option<String>,
}

impl FoundRow {
    fn read(self, run: Uuid) -> Result<FoundItem, StoreError> {
        let id = self.id.try_into().map_err(|_| StoreError::Corrupt("item key".to_owned()))?;
        let before = self.before.filter(|_| self.changed_by == Some(run));
        let before = before.map(|before| item(&before)).transpose()?;
        Ok(FoundItem { id: ItemKey(id), item: item(&self.content)?, key: self.key, before })
    }
}

/// A range of a list.
#[derive(Debug, Clone, Copy)]
pub struct Slice<K> {
    /// Start after this record, in the requested order.
    pub after: Option<K>,
    /// Oldest first if true, otherwise newest first.
    pub ascending: bool,
    /// Maximum records.
    pub limit: i64,
}

/// Pattern for the beginning of a user message's JSON.
const USER_MESSAGE: &str = r#"{"type":"user\_message"%"#;

/// SQL condition: no retry has cut the item from its thread. Almost free without cuts.
macro_rules! is_shown {
    () => {
        not(exists(
            thread_cuts::table
                .filter(thread_cuts::thread_id.eq(thread_items::thread_id))
                .filter(thread_items::id.gt(thread_cuts::behind))
                .filter(thread_items::id.lt(thread_cuts::id))
                .filter(
                    thread_items::content
                        .like(USER_MESSAGE)
                        .and(thread_items::id.lt(thread_cuts::messages_from))
                        .or(thread_items::content
                            .not_like(USER_MESSAGE)
                            .and(thread_items::id.gt(thread_cuts::answers_behind))),
                ),
        ))
    };
}

/// SQL condition: the thread is not deleted.
macro_rules! not_deleted {
    ($id:ident) => {
        not(exists(threads::table.find($id.0).filter(threads::deleted_at.is_not_null())))
    };
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = threads)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct StoredThreadRow {
    id: Uuid,
    workflow_id: Uuid,
    owner_kind: String,
    owner_id: Option<String>,
    title: Option<String>,
    status: String,
    status_reason: Option<String>,
    image_domains: Option<String>,
    created_at: DateTime<Utc>,
    canary_version: Option<i32>,
    requires_cookie: bool,
}

impl TryFrom<StoredThreadRow> for StoredThread {
    type Error = StoreError;

    fn try_from(row: StoredThreadRow) -> Result<Self, StoreError> {
        let status = ThreadStatus::read(&row.status, row.status_reason)
            .ok_or_else(|| StoreError::Corrupt(format!("status {} of a thread", row.status)))?;
        let hosts = |hosts: String| serde_json::from_str(&hosts).map_err(|e| corrupt("image domains", e));
        let image_domains = row.image_domains.map(hosts).transpose()?;
        Ok(Self {
            id: ThreadId(row.id),
            workflow_id: row.workflow_id,
            owner_kind: OwnerKind::read(&row.owner_kind)?,
            owner_id: row.owner_id,
            title: row.title,
            status,
            image_domains,
            created_at: row.created_at,
            canary: row.canary_version,
            requires_cookie: row.requires_cookie,
        })
    }
}

/// The client's view of a thread, without items.
impl From<StoredThread> for Thread {
    fn from(stored: StoredThread) -> Self {
        Self {
            id: stored.id.to_string(),
            created_at: kernel::timestamp(stored.created_at),
            status: stored.status,
            items: Page::default(),
            title: stored.title,
            allowed_image_domains: stored.image_domains,
            metadata: serde_json::Map::new(),
        }
    }
}

impl Store {
    /// Returns a thread, unless it is deleted.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread(&self, id: ThreadId) -> Result<Option<StoredThread>, StoreError> {
        let row: Option<StoredThreadRow> = threads::table
            .find(id.0)
            .filter(threads::deleted_at.is_null())
            .select(StoredThreadRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Returns an owner's threads in start order; `None` if the cursor is not one of them. A deleted thread
    /// still works as the cursor.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn threads_of(
        &self,
        of: ThreadsOf<'_>,
        slice: Slice<ThreadId>,
    ) -> Result<Option<Vec<StoredThread>>, StoreError> {
        let mut connection = self.connection().await?;
        let theirs = || {
            let owners =
                threads::owner_id.eq(of.owner_id).and(threads::owner_kind.eq(of.owner_kind.as_str()));
            let query = threads::table.into_boxed().filter(threads::workflow_id.eq(of.workflow));
            match of.user {
                None => query.filter(owners),
                Some(user) => query
                    .filter(owners.or(
                        threads::owner_id.eq(user).and(threads::owner_kind.eq(OwnerKind::User.as_str())),
                    )),
            }
        };
        let shown = theirs().filter(threads::deleted_at.is_null());
        let mut query = shown.select(StoredThreadRow::as_select()).limit(slice.limit);
        if let Some(after) = slice.after {
            let place: Option<DateTime<Utc>> = theirs()
                .filter(threads::id.eq(after.0))
                .select(threads::created_at)
                .first(&mut *connection)
                .await
                .optional()?;
            let Some(at) = place else { return Ok(None) };
            query = if slice.ascending {
                query.filter(threads::created_at.ge(at)).filter(
                    threads::created_at.gt(at).or(threads::created_at.eq(at).and(threads::id.gt(after.0))),
                )
            } else {
                query.filter(threads::created_at.le(at)).filter(
                    threads::created_at.lt(at).or(threads::created_at.eq(at).and(threads::id.lt(after.0))),
                )
            };
        }
        query = if slice.ascending {
            query.order((threads::created_at.asc(), threads::id.asc()))
        } else {
            query.order((threads::created_at.desc(), threads::id.desc()))
        };
        let rows: Vec<StoredThreadRow> = query.load(&mut *connection).await?;
        rows.into_iter().map(TryInto::try_into).collect::<Result<_, _>>().map(Some)
    }

    /// Renames a thread; `None` if it is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn rename_thread(&self, id: ThreadId, title: &str) -> Result<Option<StoredThread>, StoreError> {
        let row: Option<StoredThreadRow> = diesel::update(threads::table.find(id.0))
            .filter(threads::deleted_at.is_null())
            .set(threads::title.eq(title))
            .returning(StoredThreadRow::as_returning())
            .get_result(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Renames a thread with the title `from`; false if it is not found or has another title.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn retitle_thread(
        &self,
        id: ThreadId,
        from: Option<&str>,
        title: &str,
    ) -> Result<bool, StoreError> {
        let changed = diesel::update(threads::table.find(id.0))
            .filter(threads::deleted_at.is_null())
            .filter(threads::title.is_not_distinct_from(from))
            .set(threads::title.eq(title))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(changed > 0)
    }

    /// Deletes a thread, leaves a tombstone and requests the end of its turns. Returns the unfinished turns,
    /// latest first, or `None` if the thread is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; nothing has changed then.
    pub async fn delete_thread(&self, id: ThreadId) -> Result<Option<Vec<UnfinishedTurn>>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let deleted = diesel::update(threads::table.find(id.0))
                    .filter(threads::deleted_at.is_null())
                    .set(threads::deleted_at.eq(now))
                    .execute(connection)
                    .await?;
                if deleted == 0 {
                    return Ok::<_, StoreError>(None);
                }
                turns::request_cancel(connection, id, turns::TurnsToStop::All, now).await.map(Some)
            })
            .await
    }

    /// Whether a thread exists and is not deleted; `None` if it is not stored.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_thread_there(&self, id: ThreadId) -> Result<Option<bool>, StoreError> {
        Ok(threads::table
            .find(id.0)
            .select(threads::deleted_at.is_null())
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Returns those of these items that are in the thread.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn items_named(&self, id: ThreadId, keys: &[ItemKey]) -> Result<Vec<ThreadItem>, StoreError> {
        let rows: Vec<String> = thread_items::table
            .filter(thread_items::thread_id.eq(id.0))
            .filter(thread_items::id.eq_any(keys.iter().map(|key| key.0.to_vec())))
            .filter(is_shown!())
            .select(thread_items::content)
            .load(&mut *self.connection().await?)
            .await?;
        items(&rows)
    }

    /// Returns a thread's newest item with this key, for a run that may change it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn item_with_key(
        &self,
        thread: ThreadId,
        key: &str,
        run: Uuid,
    ) -> Result<Option<FoundItem>, StoreError> {
        let row: Option<FoundRow> = thread_items::table
            .filter(thread_items::thread_id.eq(thread.0))
            .filter(thread_items::key.eq(key))
            .filter(is_shown!())
            .order(thread_items::id.desc())
            .select(FoundRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        let found = row.map(|row| row.read(run)).transpose()?;
        // An item that this build cannot parse could not be restored.
        Ok(found.filter(|found| found.item.body != ItemBody::Unknown))
    }

    /// Returns in order: items added by a run, earlier turns' items that it was the last to change, and the
    /// named items.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn items_of_run(
        &self,
        thread: ThreadId,
        run: Uuid,
        named: &[ItemKey],
    ) -> Result<Vec<FoundItem>, StoreError> {
        let is_named = thread_items::id.eq_any(named.iter().map(|key| key.0.to_vec()));
        let of_run = thread_items::run_id.eq(run).or(thread_items::changed_by.eq(run)).or(is_named);
        let rows: Vec<FoundRow> = thread_items::table
            .filter(thread_items::thread_id.eq(thread.0))
            .filter(of_run)
            .filter(is_shown!())
            .order(thread_items::id)
            .select(FoundRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(|row| row.read(run)).collect()
    }

    /// Whether an item is in the thread, and the thread is not deleted.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_item(&self, id: ThreadId, key: ItemKey) -> Result<bool, StoreError> {
        let item =
            thread_items::table.find((id.0, key.0.to_vec())).filter(is_shown!()).filter(not_deleted!(id));
        Ok(diesel::select(exists(item)).get_result(&mut *self.connection().await?).await?)
    }

    /// Returns all items in a thread, including hidden ones, in order; empty for a deleted thread.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn thread_items(&self, id: ThreadId) -> Result<Vec<StoredItem>, StoreError> {
        let rows: Vec<(String, Option<Vec<u8>>, Option<Uuid>)> = thread_items::table
            .filter(thread_items::thread_id.eq(id.0))
            .filter(is_shown!())
            .filter(not_deleted!(id))
            .order(thread_items::id)
            .select((thread_items::content, thread_items::answers, thread_items::run_id))
            .load(&mut *self.connection().await?)
            .await?;
        let key = |key: Vec<u8>| key.try_into().ok().map(ItemKey);
        let items = rows.into_iter().map(|(content, answers, run)| {
            Ok(StoredItem { item: item(&content)?, answers: answers.and_then(key), run })
        });
        items.collect()
    }

    /// Returns a range of a thread's items, including hidden ones.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn items_of(&self, id: ThreadId, slice: Slice<ItemKey>) -> Result<Vec<ThreadItem>, StoreError> {
        let mut query = thread_items::table
            .filter(thread_items::thread_id.eq(id.0))
            .filter(is_shown!())
            .select(thread_items::content)
            .limit(slice.limit)
            .into_boxed();
        let after = slice.after.map(|key| key.0.to_vec());
        query = match (slice.ascending, after) {
            (true, Some(after)) => query.filter(thread_items::id.gt(after)),
            (false, Some(after)) => query.filter(thread_items::id.lt(after)),
            (_, None) => query,
        };
        query = if slice.ascending {
            query.order(thread_items::id.asc())
        } else {
            query.order(thread_items::id.desc())
        };
        let rows: Vec<String> = query.load(&mut *self.connection().await?).await?;
        items(&rows)
    }
}

fn items(rows: &[String]) -> Result<Vec<ThreadItem>, StoreError> {
    rows.iter().map(|row| item(row)).collect()
}

fn item(row: &str) -> Result<ThreadItem, StoreError> {
    serde_json::from_str(row).map_err(|e| corrupt("thread item", e))
}
