//! Turns that have ended with a question, and the runs that continue them.
//!
//! The question item stays; the question and the journal move to the run that continues the turn. Lock order:
//! the question item, the question, the turn, its thread.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

use super::questions::QuestionKey;
use crate::database::scalar::Scalar;
use crate::schema::{question_items, thread_items, turns_sent};
use crate::system::partitions::day_of;
use crate::{Store, StoreError};

/// A run that continues a turn, with the first events for its stream.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// The dialect; `None`: the previous turn's dialect.
    pub dialect: Option<Dialect>,
    /// The first events, as sent.
    pub frames: String,
    /// The last event's sequence number; 0 without events.
    pub last_seq: u64,
}

/// An answered item.
#[derive(Debug, Clone)]
pub struct AnsweredItem {
    /// The thread.
    pub thread: ThreadId,
    /// The item.
    pub id: ItemKey,
    /// The item with its answer, a `wire::chat::ThreadItem` as JSON.
    pub content: String,
}

impl Store {
    /// Returns the latest run that continues this run's turn, or the run itself.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn latest_continuation(&self, run: Uuid) -> Result<Uuid, StoreError> {
        let last: Scalar<Uuid> = diesel::sql_query(
            "WITH RECURSIVE chain (id, length) AS (SELECT $1::uuid, 0 UNION ALL
                 SELECT s.continued_by, length + 1 FROM chain JOIN turns_sent s ON s.run_id = chain.id
                 WHERE s.continued_by IS NOT NULL)
             SELECT id FROM chain ORDER BY length DESC LIMIT 1",
        )
        .bind::<SqlUuid, _>(run)
        .get_result(&mut *self.connection().await?)
        .await?;
        Ok(last.0)
    }

    /// Returns the run that has continued this run's turn.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn continued_by(&self, run: Uuid) -> Result<Option<Uuid>, StoreError> {
        let found: Option<Option<Uuid>> = turns_sent::table
            .find(run)
            .select(turns_sent::continued_by)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.flatten())
    }

    /// Returns the output already sent by the turn that this run continues, JSON.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn sent_before(&self, run: Uuid) -> Result<Option<String>, StoreError> {
        Ok(turns_sent::table
            .filter(turns_sent::continued_by.eq(run))
            .select(turns_sent::sent)
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Returns the stream that continues with the answer to an item.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn stream_of_answer(&self, item: ItemKey) -> Result<Option<Uuid>, StoreError> {
        let found: Option<Option<Uuid>> = question_items::table
            .find(&item.0[..])
            .select(question_items::stream_id)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.flatten())
    }
}

pub(super) fn key(bytes: Vec<u8>) -> Result<ItemKey, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::Corrupt("the id of an item".to_owned()))?;
    Ok(ItemKey(bytes))
}

/// Locks a question item and returns its question, if it is one.
pub(super) async fn lock_item(
    connection: &mut AsyncPgConnection,
    item: ItemKey,
) -> Result<Option<QuestionKey>, StoreError> {
    let row: Option<(Uuid, String, i32, i32)> = question_items::table
        .find(&item.0[..])
        .select((
            question_items::run_id,
            question_items::node,
            question_items::visit,
            question_items::attempt,
        ))
        .for_update()
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(|(run, node, visit, attempt)| QuestionKey { run, node, visit, attempt }))
}

/// Whether a turn has ended with a question and is not continued; locks its row.
pub(super) async fn is_open(connection: &mut AsyncPgConnection, turn: Uuid) -> Result<bool, StoreError> {
    let found: Option<Option<Uuid>> = turns_sent::table
        .find(turn)
        .select(turns_sent::continued_by)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    Ok(found.is_some_and(|continued_by| continued_by.is_none()))
}

/// Records the stream that continues with the answer to an item.
pub(super) async fn name_stream(
    connection: &mut AsyncPgConnection,
    item: ItemKey,
    stream: Uuid,
) -> Result<(), StoreError> {
    diesel::update(question_items::table.find(&item.0[..]))
        .set(question_items::stream_id.eq(stream))
        .execute(connection)
        .await?;
    Ok(())
}

/// Replaces an item's content.
pub(super) async fn change_item(
    connection: &mut AsyncPgConnection,
    thread: ThreadId,
    item: ItemKey,
    content: &str,
) -> Result<(), StoreError> {
    diesel::update(thread_items::table)
        .filter(thread_items::thread_id.eq(thread.0))
        .filter(thread_items::id.eq(&item.0[..]))
        .set(thread_items::content.eq(content))
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores and enqueues the run that continues a turn. Like a run that was parked there, it executes without
/// readers until it has had one. Returns `false` if the thread is deleted.
pub(super) async fn insert(
    connection: &mut AsyncPgConnection,
    turn: Uuid,
    next: &Continuation,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let Continuation { run, stream, frames, .. } = next;
    // A concurrent deletion of the thread waits for this row, and then has a run to stop.
    let stored = diesel::sql_query(
        "WITH thread AS (SELECT id FROM threads WHERE deleted_at IS NULL
             AND id = (SELECT thread_id FROM runs WHERE id = $1) FOR SHARE),
         put_run AS (INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, thread_id, stream_id,
                 status, inputs, options, created_at, parked, continues)
             SELECT $2, r.workspace_id, r.workflow_id, r.version_id, r.trigger, r.writer_id, r.thread_id, $3, 'queued',
                 r.inputs, json_strip_nulls(json_build_object('session', r.options::json->>'session',
                     'base', r.options::json->>'base'))::text, $4, 1, $1
             FROM runs r JOIN thread ON thread.id = r.thread_id WHERE r.id = $1 RETURNING workflow_id, thread_id),
         put_stream AS (INSERT INTO streams (id, day, run_id, workflow_id, thread_id, dialect)
             SELECT $3, $5, $2, workflow_id, thread_id,
                 coalesce($6, (SELECT dialect FROM turns_sent WHERE run_id = $1),
                     (SELECT s.dialect FROM runs r JOIN streams s ON s.id = r.stream_id WHERE r.id = $1), $7) FROM put_run)
         INSERT INTO run_queue (run_id, workflow_id, turn, due_at) SELECT $2, workflow_id, false, $4 FROM put_run",
    )
    .bind::<SqlUuid, _>(turn)
    .bind::<SqlUuid, _>(run)
    .bind::<SqlUuid, _>(stream)
    .bind::<Timestamptz, _>(now)
    .bind::<Date, NaiveDate>(day_of(*stream))
    .bind::<Nullable<Text>, _>(next.dialect.map(Dialect::as_str))
    .bind::<Text, _>(Dialect::Chatkit.as_str())
    .execute(connection)
    .await?;
    if stored == 0 {
        return Ok(false);
    }
    if next.last_seq > 0 {
        diesel::sql_query(
            "INSERT INTO stream_events (day, stream_id, first_seq, last_seq, frames) VALUES ($1, $2, 1, $3, $4)",
        )
        .bind::<Date, NaiveDate>(day_of(*stream))
        .bind::<SqlUuid, _>(stream)
        .bind::<BigInt, _>(i64::try_from(next.last_seq).unwrap_or(i64::MAX))
        .bind::<Text, _>(frames)
        .execute(connection)
        .await?;
    }
    Ok(true)
}
