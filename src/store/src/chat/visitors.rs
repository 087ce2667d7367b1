//! Visitors to a workflow's chat, and all their threads in the workflow owner's view.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::ThreadStatus;

use super::attachments::{AttachmentRow, StoredAttachment};
use super::owner::OwnerKind;
use super::threads::StoredThread;
use crate::schema::{attachments, threads};
use crate::{Changes, Store, StoreError};

/// A chat visitor who is identified by more than a thread id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatVisitor {
    /// The workflow.
    pub workflow: Uuid,
    /// The owner kind in their threads.
    pub kind: OwnerKind,
    /// The visitor's id.
    pub id: String,
}

impl ChatVisitor {
    /// Parses `kind:id`; `None` if it is not valid.
    #[must_use]
    pub fn named(workflow: Uuid, name: &str) -> Option<Self> {
        let (kind, id) = name.split_once(':').filter(|(_, id)| !id.is_empty() && !id.contains('\0'))?;
        let kind = OwnerKind::read(kind).ok().filter(|kind| *kind != OwnerKind::Anyone)?;
        Some(Self { workflow, kind, id: id.to_owned() })
    }

    /// Formats the visitor as `kind:id`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.kind.as_str(), self.id)
    }
}

/// Filters for a workflow's threads. All given filters must match.
#[derive(Debug, Clone, Default)]
pub struct ThreadFilter {
    /// Only threads of this visitor.
    pub visitor: Option<ChatVisitor>,
    /// Only threads with this status.
    pub status: Option<String>,
}

/// A thread in a workflow's list.
#[derive(Debug, Clone)]
pub struct ListedThread {
    /// The thread.
    pub thread: StoredThread,
    /// The number of visible items.
    pub items: u64,
    /// When the last visible item was added.
    pub last_item_at: Option<DateTime<Utc>>,
}

#[derive(QueryableByName)]
struct ListedRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    workflow_id: Uuid,
    #[diesel(sql_type = Text)]
    owner_kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    owner_id: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    title: Option<String>,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Text>)]
    status_reason: Option<String>,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = BigInt)]
    items: i64,
    #[diesel(sql_type = Nullable<Bytea>)]
    last: Option<Vec<u8>>,
}

impl ListedRow {
    fn read(self) -> Result<ListedThread, StoreError> {
        let status = ThreadStatus::read(&self.status, self.status_reason)
            .ok_or_else(|| StoreError::Corrupt(format!("status {} of a thread", self.status)))?;
        let last = self.last.and_then(|key| key.try_into().ok()).map(ItemKey);
        let thread = StoredThread {
            id: ThreadId(self.id),
            workflow_id: self.workflow_id,
            owner_kind: OwnerKind::read(&self.owner_kind)?,
            owner_id: self.owner_id,
            title: self.title,
            status,
            image_domains: None,
            created_at: self.created_at,
            canary: None,
            requires_cookie: false,
        };
        let items = u64::try_from(self.items).unwrap_or_default();
        Ok(ListedThread { thread, items, last_item_at: last.and_then(|last| last.created_at()) })
    }
}

/// A visitor's feedback on an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitorFeedback {
    /// The item's thread, which may be another visitor's.
    pub thread: ThreadId,
    /// The item.
    pub item: ItemKey,
    /// The prefix of its id on the wire.
    pub prefix: String,
    /// `positive` or `negative`.
    pub kind: String,
    /// The visitor's comment.
    pub comment: Option<String>,
    /// When it was given.
    pub created_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct FeedbackRow {
    #[diesel(sql_type = SqlUuid)]
    thread_id: Uuid,
    #[diesel(sql_type = Bytea)]
    item_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    prefix: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    comment: Option<String>,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
}

impl FeedbackRow {
    fn read(self) -> Result<VisitorFeedback, StoreError> {
        let corrupt = |_| StoreError::Corrupt("the item of a feedback".to_owned());
        let item = ItemKey(self.item_id.try_into().map_err(corrupt)?);
        let Self { thread_id, prefix, kind, comment, created_at, .. } = self;
        Ok(VisitorFeedback { thread: ThreadId(thread_id), item, prefix, kind, comment, created_at })
    }
}

/// SQL condition: the thread item `i` is visible.
const VISIBLE: &str = r#"left(i.content, 40) NOT LIKE '{"type":"hidden\_context\_item"%' AND left(i.content, 40) NOT LIKE '{"type":"sdk\_hidden\_context"%'
     AND NOT EXISTS (SELECT FROM thread_cuts c WHERE c.thread_id = i.thread_id AND i.id > c.behind AND i.id < c.id
         AND CASE WHEN left(i.content, 40) LIKE '{"type":"user\_message"%' THEN i.id < c.messages_from ELSE i.id > c.answers_behind END)"#;

impl Store {
    /// Returns a range of a workflow's threads, newest first, after this one. The cursor's thread may be
    /// deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn threads_of_workflow(
        &self,
        workflow: Uuid,
        filter: &ThreadFilter,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<ListedThread>, StoreError> {
        self.listed_threads(workflow, filter, after, None, limit).await
    }

    /// Returns one thread from a workflow's list; `None` if it is not found.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn thread_of_workflow(
        &self,
        workflow: Uuid,
        thread: ThreadId,
    ) -> Result<Option<ListedThread>, StoreError> {
        let only = Some(thread.0);
        Ok(self.listed_threads(workflow, &ThreadFilter::default(), None, only, 1).await?.pop())
    }

    async fn listed_threads(
        &self,
        workflow: Uuid,
        filter: &ThreadFilter,
        after: Option<Uuid>,
        only: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<ListedThread>, StoreError> {
        let visitor = filter.visitor.as_ref();
        let rows: Vec<ListedRow> = diesel::sql_query(format!(
            "SELECT t.*, v.items, v.last FROM (
                 SELECT id, workflow_id, owner_kind, owner_id, title, status, status_reason, created_at FROM threads
                 WHERE workflow_id = $1 AND deleted_at IS NULL
                     AND ($2::text IS NULL OR owner_id = $2 AND owner_kind = $3)
                     AND ($4::text IS NULL OR status = $4) AND ($5::uuid IS NULL OR id = $5)
                     AND ($6::uuid IS NULL OR (created_at, id) < (SELECT a.created_at, a.id FROM threads a WHERE a.id = $6))
                 ORDER BY created_at DESC, id DESC LIMIT $7) t
             CROSS JOIN LATERAL (SELECT count(*) AS items,
                 (SELECT i.id FROM thread_items i WHERE i.thread_id = t.id AND {VISIBLE} ORDER BY i.id DESC LIMIT 1) AS last
                 FROM thread_items i WHERE i.thread_id = t.id AND {VISIBLE}) v
             ORDER BY t.created_at DESC, t.id DESC"
        ))
        .bind::<SqlUuid, _>(workflow)
        .bind::<Nullable<Text>, _>(visitor.map(|visitor| visitor.id.as_str()))
        .bind::<Nullable<Text>, _>(visitor.map(|visitor| visitor.kind.as_str()))
        .bind::<Nullable<Text>, _>(filter.status.as_deref())
        .bind::<Nullable<SqlUuid>, _>(only)
        .bind::<Nullable<SqlUuid>, _>(after)
        .bind::<BigInt, _>(limit)
        .load(&mut *self.connection().await?)
        .await?;
        rows.into_iter().map(ListedRow::read).collect()
    }

    /// Returns a range of a visitor's feedback in the workflow, after the feedback on this thread item.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn feedback_of_visitor(
        &self,
        visitor: &ChatVisitor,
        after: Option<(ThreadId, ItemKey)>,
        limit: i64,
    ) -> Result<Vec<VisitorFeedback>, StoreError> {
        let (thread, item) =
            after.map_or((Uuid::nil(), Vec::new()), |(thread, item)| (thread.0, item.0.to_vec()));
        let rows: Vec<FeedbackRow> = diesel::sql_query(
            "SELECT thread_id, item_id, prefix, kind, comment, created_at FROM item_feedback f
             WHERE workflow_id = $1 AND author_kind = $2 AND author_id = $3 AND (thread_id, item_id) > ($4, $5)
                 AND NOT EXISTS (SELECT FROM threads t WHERE t.id = f.thread_id AND t.deleted_at IS NOT NULL)
             ORDER BY thread_id, item_id LIMIT $6",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .bind::<SqlUuid, _>(thread)
        .bind::<Bytea, _>(item)
        .bind::<BigInt, _>(limit)
        .load(&mut *self.connection().await?)
        .await?;
        rows.into_iter().map(FeedbackRow::read).collect()
    }

    /// Returns a range of a visitor's attachments in the workflow, in messages or not, after this one. Excludes
    /// attachments without a workflow: they may belong to another workspace.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn attachments_of_visitor(
        &self,
        visitor: &ChatVisitor,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredAttachment>, StoreError> {
        let rows: Vec<AttachmentRow> = attachments::table
            .filter(attachments::owner_id.eq(&visitor.id))
            .filter(attachments::owner_kind.eq(visitor.kind.as_str()))
            .filter(attachments::workflow_id.eq(visitor.workflow))
            .filter(attachments::id.gt(after.unwrap_or_default()))
            .order(attachments::id)
            .limit(limit)
            .select(AttachmentRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(AttachmentRow::read).collect()
    }
}

impl Changes {
    /// Changes a workflow's thread; `None` leaves a member unchanged. Returns false if the thread is not found.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn change_thread(
        &mut self,
        workflow: Uuid,
        thread: ThreadId,
        title: Option<&str>,
        status: Option<&ThreadStatus>,
    ) -> Result<bool, StoreError> {
        let connection = &mut *self.connection;
        let reason = status.map(|status| status.clone().into_reason());
        let changed = diesel::update(threads::table.find(thread.0))
            .filter(threads::workflow_id.eq(workflow))
            .filter(threads::deleted_at.is_null())
            .set((
                title.map(|title| threads::title.eq(title)),
                status.map(|status| threads::status.eq(status.as_str())),
                reason.map(|reason| threads::status_reason.eq(reason)),
            ))
            .execute(connection)
            .await?;
        Ok(changed > 0)
    }
}
