//! Feedback on thread items, with copies of the turns.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{ItemKey, ThreadId, first_id_at};
use uuid::Uuid;

use crate::{OwnerKind, Store, StoreError};

/// Maximum entry bytes per page, except that one entry is always included.
const LARGEST_PAGE: i64 = 4 * 1024 * 1024;

/// An item that receives feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatedItem {
    /// Its id.
    pub key: ItemKey,
    /// The prefix of its id on the wire.
    pub prefix: &'static str,
    /// The run that created it.
    pub run: Option<Uuid>,
}

/// A turn that receives feedback: data in addition to its run's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatedTurn {
    /// Its run.
    pub run: Uuid,
    /// The messages that it read, a JSON array.
    pub messages: String,
    /// All text in its reply.
    pub text: String,
}

/// One author's feedback on thread items.
#[derive(Debug, Clone)]
pub struct Feedback<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// The items, each once.
    pub items: Vec<RatedItem>,
    /// Their turns, each once.
    pub turns: Vec<RatedTurn>,
    /// The author kind.
    pub author_kind: OwnerKind,
    /// The author's id; empty if the author is unknown.
    pub author_id: &'a str,
    /// `positive` or `negative`.
    pub kind: &'a str,
    /// The author's comment.
    pub comment: Option<&'a str>,
}

/// Filters for a workflow's feedback. All given filters must match.
#[derive(Debug, Clone, Default)]
pub struct FeedbackFilter {
    /// `positive` or `negative`.
    pub kind: Option<String>,
    /// Given at this time or later.
    pub from: Option<DateTime<Utc>>,
    /// Given before this time.
    pub to: Option<DateTime<Utc>>,
    /// The version number that answered.
    pub version: Option<i32>,
}

/// One author's feedback on an item, with the turn's copy if there is one.
#[derive(Debug, Clone, QueryableByName)]
pub struct ListedFeedback {
    /// UUIDv7.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// When it was given.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// `positive` or `negative`.
    #[diesel(sql_type = Text)]
    pub kind: String,
    /// The author's comment.
    #[diesel(sql_type = Nullable<Text>)]
    pub comment: Option<String>,
    /// The thread.
    #[diesel(sql_type = SqlUuid)]
    pub thread_id: Uuid,
    /// The item.
    #[diesel(sql_type = Binary)]
    pub item_id: Vec<u8>,
    /// The prefix of the item's id on the wire.
    #[diesel(sql_type = Text)]
    pub prefix: String,
    /// The author kind.
    #[diesel(sql_type = Text)]
    pub author_kind: String,
    /// The author's id; empty if the author is unknown.
    #[diesel(sql_type = Text)]
    pub author_id: String,
    /// The run that created the item.
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub run_id: Option<Uuid>,
    /// The number of the executed version; `None` without a copy, or for a draft.
    #[diesel(sql_type = Nullable<Integer>)]
    pub version: Option<i32>,
    /// JSON.
    #[diesel(sql_type = Nullable<Text>)]
    pub inputs: Option<String>,
    /// A JSON array.
    #[diesel(sql_type = Nullable<Text>)]
    pub messages: Option<String>,
    /// JSON.
    #[diesel(sql_type = Nullable<Text>)]
    pub output: Option<String>,
    /// All text in the turn's reply.
    #[diesel(sql_type = Nullable<Text>)]
    pub output_text: Option<String>,
    #[diesel(sql_type = Bool)]
    more: bool,
}

/// A page of feedback.
#[derive(Debug)]
pub struct FeedbackPage {
    /// At most the requested number.
    pub entries: Vec<ListedFeedback>,
    /// The entry after which the next page starts; `None`: last page.
    pub next: Option<Uuid>,
}

impl Store {
    /// Stores feedback with copies of its turns; replaces the author's earlier feedback. Returns false if the
    /// thread is not found. If the run still executes, its copy gets the output with later feedback.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn put_feedback(&self, feedback: Feedback<'_>) -> Result<bool, StoreError> {
        let now = self.now();
        let ids: Vec<Uuid> = feedback.items.iter().map(|_| self.ids().uuid()).collect::<Result<_, _>>()?;
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                // The lock orders this with a deletion: an earlier one makes this return false, a later one
                // also deletes the feedback.
                let found = diesel::sql_query(
                    "SELECT 1 AS found FROM threads WHERE id = $1 AND deleted_at IS NULL FOR SHARE",
                )
                .bind::<SqlUuid, _>(feedback.thread.0)
                .execute(connection)
                .await?;
                if found == 0 {
                    return Ok(false);
                }
                copy_turns(connection, &feedback).await?;
                put_items(connection, &feedback, ids, now).await?;
                Ok(true)
            })
            .await
    }

    /// Returns a page of a workflow's feedback, newest first, after the entry `before`. Omits feedback in
    /// deleted threads. A page may be shorter than `limit` and have a next one: its entries have at most 4 MiB
    /// in total.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn feedback_of_workflow(
        &self,
        workflow: Uuid,
        filter: &FeedbackFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<FeedbackPage, StoreError> {
        let end = filter.to.map_or(Uuid::max(), first_id_at);
        let before = before.map_or(end, |before| before.min(end));
        let entries: Vec<ListedFeedback> = diesel::sql_query(
            "SELECT *, found > place AS more FROM (
                 SELECT *, row_number() OVER newest AS place, count(*) OVER () AS found, sum(size) OVER newest AS total
                 FROM (SELECT f.id, f.created_at, f.kind, f.comment, f.thread_id, f.item_id, f.prefix, f.author_kind,
                           f.author_id, f.run_id, v.number AS version, c.inputs, c.messages, c.output, c.output_text,
                           coalesce(octet_length(c.inputs) + octet_length(c.messages) + octet_length(c.output_text), 0)
                               + coalesce(octet_length(c.output), 0) AS size
                       FROM item_feedback f JOIN threads t ON t.id = f.thread_id
                           -- Feedback on erased threads keeps only its kind.
                           AND (t.deleted_at IS NULL OR t.erased_at IS NOT NULL)
                       LEFT JOIN feedback_turns c ON c.thread_id = f.thread_id AND c.run_id = f.run_id
                       LEFT JOIN workflow_versions v ON v.id = c.version_id
                       WHERE f.workflow_id = $1 AND f.id < $2 AND f.id >= $3
                           AND ($4::text IS NULL OR f.kind = $4) AND ($5::int IS NULL OR v.number = $5)
                       ORDER BY f.id DESC LIMIT $6 + 1) listed
                 WINDOW newest AS (ORDER BY id DESC)) measured
             WHERE place = 1 OR (place <= $6 AND total <= $7) ORDER BY id DESC",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<SqlUuid, _>(before)
        .bind::<SqlUuid, _>(filter.from.map_or(Uuid::nil(), first_id_at))
        .bind::<Nullable<Text>, _>(filter.kind.as_deref())
        .bind::<Nullable<Integer>, _>(filter.version)
        .bind::<BigInt, _>(limit)
        .bind::<BigInt, _>(LARGEST_PAGE)
        .load(&mut *self.connection().await?)
        .await?;
        let next = entries.last().filter(|last| last.more).map(|last| last.id);
        Ok(FeedbackPage { entries, next })
    }
}

/// A deleted run's copy stays unchanged.
async fn copy_turns(
    connection: &mut diesel_async::AsyncPgConnection,
    feedback: &Feedback<'_>,
) -> Result<(), StoreError> {
    let turns = &feedback.turns;
    diesel::sql_query(
        "INSERT INTO feedback_turns (thread_id, run_id, version_id, inputs, messages, output, output_text)
         SELECT $1, r.id, r.version_id, r.inputs, c.messages, r.output, c.text
         FROM unnest($2::uuid[], $3::text[], $4::text[]) c (run, messages, text)
         JOIN runs r ON r.id = c.run AND r.thread_id = $1 ORDER BY r.id
         ON CONFLICT (thread_id, run_id) DO UPDATE SET output = excluded.output, output_text = excluded.output_text",
    )
    .bind::<SqlUuid, _>(feedback.thread.0)
    .bind::<Array<SqlUuid>, _>(turns.iter().map(|turn| turn.run).collect::<Vec<_>>())
    .bind::<Array<Text>, _>(turns.iter().map(|turn| turn.messages.as_str()).collect::<Vec<_>>())
    .bind::<Array<Text>, _>(turns.iter().map(|turn| turn.text.as_str()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Unchanged feedback keeps its id.
async fn put_items(
    connection: &mut diesel_async::AsyncPgConnection,
    feedback: &Feedback<'_>,
    ids: Vec<Uuid>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let items = &feedback.items;
    diesel::sql_query(
        "INSERT INTO item_feedback AS f
             (id, thread_id, workflow_id, item_id, prefix, run_id, author_kind, author_id, kind, comment, created_at)
         SELECT i.id, $1, t.workflow_id, i.item, i.prefix, i.run, $6, $7, $8, $9, $10
         FROM unnest($2::uuid[], $3::bytea[], $4::text[], $5::uuid[]) i (id, item, prefix, run)
         JOIN threads t ON t.id = $1 ORDER BY i.item
         ON CONFLICT (thread_id, item_id, author_kind, author_id) DO UPDATE
         SET id = excluded.id, kind = excluded.kind, comment = excluded.comment, created_at = excluded.created_at,
             prefix = excluded.prefix, run_id = excluded.run_id
         WHERE (f.kind, f.comment) IS DISTINCT FROM (excluded.kind, excluded.comment)",
    )
    .bind::<SqlUuid, _>(feedback.thread.0)
    .bind::<Array<SqlUuid>, _>(ids)
    .bind::<Array<Binary>, _>(items.iter().map(|item| item.key.0.to_vec()).collect::<Vec<_>>())
    .bind::<Array<Text>, _>(items.iter().map(|item| item.prefix).collect::<Vec<_>>())
    .bind::<Array<Nullable<SqlUuid>>, _>(items.iter().map(|item| item.run).collect::<Vec<_>>())
    .bind::<Text, _>(feedback.author_kind.as_str())
    .bind::<Text, _>(feedback.author_id)
    .bind::<Text, _>(feedback.kind)
    .bind::<Nullable<Text>, _>(feedback.comment)
    .bind::<Timestamptz, _>(now)
    .execute(connection)
    .await?;
    Ok(())
}
