//! Turns that have ended with a question, and the runs that continue them.
//!
//! The item of a question stays; the question and the journal go to the run that continues the turn. Rows are locked in this order:
//! the item of the question, the question, the turn, its thread.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Date, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

use super::questions::QuestionKey;
use crate::system::partitions::day_of;
use crate::{Store, StoreError};

/// The run that continues a turn, with the first events of its stream.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// Who the texts are written for; `None`: as those of the turn before.
    pub dialect: Option<Dialect>,
    /// The first events.
    pub frames: String,
    /// The number of the last one; 0 without any.
    pub last_seq: u64,
}

/// The answer to an item.
#[derive(Debug, Clone)]
pub struct AnsweredItem {
    /// The thread.
    pub thread: ThreadId,
    /// The item.
    pub id: ItemKey,
    /// The item with its answer, a `wire::chat::ThreadItem` as JSON.
    pub content: String,
}

/// A turn that a run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinuedTurn {
    /// Its run.
    pub run: Uuid,
    /// What it had sent, JSON.
    pub sent: String,
    /// The items of its questions.
    pub items: Vec<AskedItem>,
    /// Whether the run was given the turn only now.
    pub is_first: bool,
}

/// The item of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedItem {
    /// The item.
    pub id: ItemKey,
    /// The answer, if there is one, JSON.
    pub answer: Option<String>,
}

#[derive(QueryableByName)]
pub(super) struct Taken {
    #[diesel(sql_type = Text)]
    sent: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub(super) continued_by: Option<Uuid>,
}

#[derive(QueryableByName)]
struct Before {
    #[diesel(sql_type = SqlUuid)]
    run_id: Uuid,
    #[diesel(sql_type = Text)]
    sent: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    continued_by: Option<Uuid>,
}

#[derive(QueryableByName)]
struct Asked {
    #[diesel(sql_type = Bytea)]
    item_id: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    answer: Option<String>,
}

impl Store {
    /// Makes a run the one that continues a turn, or the latest turn that has continued it: gives it the journal and the questions.
    /// `None` if no turn is left to continue: the latest one has ended without a question, or has not ended. The same turn again for
    /// a run that was given one before.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn continue_turn(&self, run: Uuid, turn: Uuid) -> Result<Option<ContinuedTurn>, StoreError> {
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| take_over(connection, run, turn).await).await
    }

    /// Whether another unfinished run of the thread continues a turn.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_continued_by_another(&self, thread: ThreadId, run: Uuid) -> Result<bool, StoreError> {
        let found = diesel::sql_query(
            "SELECT FROM runs WHERE thread_id = $1 AND id <> $2 AND finished_at IS NULL AND options LIKE '%\"continues\"%' LIMIT 1",
        )
        .bind::<SqlUuid, _>(thread.0)
        .bind::<SqlUuid, _>(run)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(found > 0)
    }

    /// Stores what a turn has sent as it is by now.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn set_turn_sent(&self, run: Uuid, sent: &str) -> Result<(), StoreError> {
        diesel::sql_query("UPDATE turns_sent SET sent = $2 WHERE run_id = $1")
            .bind::<SqlUuid, _>(run)
            .bind::<Text, _>(sent)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// The run that continues the turn of this run now: itself, if no other does.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn latest_continuation(&self, run: Uuid) -> Result<Uuid, StoreError> {
        #[derive(QueryableByName)]
        struct Last {
            #[diesel(sql_type = SqlUuid)]
            id: Uuid,
        }
        let last: Last = diesel::sql_query(
            "WITH RECURSIVE chain (id, length) AS (SELECT $1::uuid, 0 UNION ALL
                 SELECT s.continued_by, length + 1 FROM chain JOIN turns_sent s ON s.run_id = chain.id
                 WHERE s.continued_by IS NOT NULL)
             SELECT id FROM chain ORDER BY length DESC LIMIT 1",
        )
        .bind::<SqlUuid, _>(run)
        .get_result(&mut *self.connection().await?)
        .await?;
        Ok(last.id)
    }

    /// The run that has continued the turn of this run.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn continued_by(&self, run: Uuid) -> Result<Option<Uuid>, StoreError> {
        let found: Option<Taken> =
            diesel::sql_query("SELECT '' AS sent, continued_by FROM turns_sent WHERE run_id = $1")
                .bind::<SqlUuid, _>(run)
                .get_result(&mut *self.connection().await?)
                .await
                .optional()?;
        Ok(found.and_then(|found| found.continued_by))
    }

    /// What the turn had sent that this run has continued, JSON.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn sent_before(&self, run: Uuid) -> Result<Option<String>, StoreError> {
        let found: Option<Taken> =
            diesel::sql_query("SELECT sent, continued_by FROM turns_sent WHERE continued_by = $1")
                .bind::<SqlUuid, _>(run)
                .get_result(&mut *self.connection().await?)
                .await
                .optional()?;
        Ok(found.map(|found| found.sent))
    }

    /// The stream of the turn that continues with the answer to an item.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn stream_of_answer(&self, item: ItemKey) -> Result<Option<Uuid>, StoreError> {
        #[derive(QueryableByName)]
        struct Stream {
            #[diesel(sql_type = Nullable<SqlUuid>)]
            stream_id: Option<Uuid>,
        }
        let found: Option<Stream> =
            diesel::sql_query("SELECT stream_id FROM question_items WHERE item_id = $1")
                .bind::<Bytea, _>(&item.0[..])
                .get_result(&mut *self.connection().await?)
                .await
                .optional()?;
        Ok(found.and_then(|found| found.stream_id))
    }
}

pub(super) fn key(bytes: Vec<u8>) -> Result<ItemKey, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::Corrupt("the id of an item".to_owned()))?;
    Ok(ItemKey(bytes))
}

/// See [`Store::continue_turn`].
async fn take_over(
    connection: &mut AsyncPgConnection,
    run: Uuid,
    mut turn: Uuid,
) -> Result<Option<ContinuedTurn>, StoreError> {
    let known: Option<Before> = diesel::sql_query(
        "SELECT run_id, sent, continued_by FROM turns_sent WHERE continued_by = $1 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(run)
    .get_result(connection)
    .await
    .optional()?;
    if let Some(Before { run_id, sent, .. }) = known {
        let items = asked_items(connection, run).await?;
        return Ok(Some(ContinuedTurn { run: run_id, sent, items, is_first: false }));
    }
    loop {
        // Before the turn: answers lock in this order.
        diesel::sql_query("SELECT FROM question_items WHERE run_id = $1 ORDER BY item_id FOR UPDATE")
            .bind::<SqlUuid, _>(turn)
            .execute(connection)
            .await?;
        let before: Option<Before> = diesel::sql_query(
            "SELECT run_id, sent, continued_by FROM turns_sent WHERE run_id = $1 FOR UPDATE",
        )
        .bind::<SqlUuid, _>(turn)
        .get_result(connection)
        .await
        .optional()?;
        let Some(Before { sent, continued_by, .. }) = before else { return Ok(None) };
        if let Some(by) = continued_by {
            turn = by;
            continue;
        }
        give(connection, turn, run).await?;
        let items = asked_items(connection, run).await?;
        return Ok(Some(ContinuedTurn { run: turn, sent, items, is_first: true }));
    }
}

/// The items of the questions of a run.
async fn asked_items(connection: &mut AsyncPgConnection, run: Uuid) -> Result<Vec<AskedItem>, StoreError> {
    let asked: Vec<Asked> = diesel::sql_query(
        "SELECT i.item_id, q.answer FROM question_items i JOIN run_questions q USING (run_id, node, visit, attempt)
         WHERE i.run_id = $1 ORDER BY i.item_id",
    )
    .bind::<SqlUuid, _>(run)
    .load(connection)
    .await?;
    asked.into_iter().map(|asked| Ok(AskedItem { id: key(asked.item_id)?, answer: asked.answer })).collect()
}

/// Gives the journal and the questions of a turn to the run that continues it.
async fn give(connection: &mut AsyncPgConnection, turn: Uuid, run: Uuid) -> Result<(), StoreError> {
    for statement in [
        "UPDATE turns_sent SET continued_by = $2, due_at = NULL WHERE run_id = $1",
        "INSERT INTO run_steps (run_id, node, visit, attempt, step, status, input_digest, result, result_blob, error, note,
             started_at, finished_at)
         SELECT $2, node, visit, attempt, step, status, input_digest, result, result_blob, error, note, started_at, finished_at
         FROM run_steps WHERE run_id = $1 ON CONFLICT DO NOTHING",
        "UPDATE question_items SET run_id = $2 WHERE run_id = $1",
        "UPDATE run_questions SET run_id = $2 WHERE run_id = $1",
    ] {
        diesel::sql_query(statement)
            .bind::<SqlUuid, _>(turn)
            .bind::<SqlUuid, _>(run)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// The item of a question, if it has one; locked.
pub(super) async fn lock_item(
    connection: &mut AsyncPgConnection,
    item: ItemKey,
) -> Result<Option<QuestionKey>, StoreError> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        run_id: Uuid,
        #[diesel(sql_type = Text)]
        node: String,
        #[diesel(sql_type = Integer)]
        visit: i32,
        #[diesel(sql_type = Integer)]
        attempt: i32,
    }
    let row: Option<Row> = diesel::sql_query(
        "SELECT run_id, node, visit, attempt FROM question_items WHERE item_id = $1 FOR UPDATE",
    )
    .bind::<Bytea, _>(&item.0[..])
    .get_result(connection)
    .await
    .optional()?;
    Ok(row.map(|row| QuestionKey { run: row.run_id, node: row.node, visit: row.visit, attempt: row.attempt }))
}

/// Whether a turn has ended with a question and no run has continued it.
pub(super) async fn is_open(connection: &mut AsyncPgConnection, turn: Uuid) -> Result<bool, StoreError> {
    let found: Option<Taken> =
        diesel::sql_query("SELECT '' AS sent, continued_by FROM turns_sent WHERE run_id = $1 FOR UPDATE")
            .bind::<SqlUuid, _>(turn)
            .get_result(connection)
            .await
            .optional()?;
    Ok(found.is_some_and(|found| found.continued_by.is_none()))
}

/// Notes which stream continues with the answer to an item.
pub(super) async fn name_stream(
    connection: &mut AsyncPgConnection,
    item: ItemKey,
    stream: Uuid,
) -> Result<(), StoreError> {
    diesel::sql_query("UPDATE question_items SET stream_id = $2 WHERE item_id = $1")
        .bind::<Bytea, _>(&item.0[..])
        .bind::<SqlUuid, _>(stream)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores what an item contains now.
pub(super) async fn change_item(
    connection: &mut AsyncPgConnection,
    thread: ThreadId,
    item: ItemKey,
    content: &str,
) -> Result<(), StoreError> {
    diesel::sql_query("UPDATE thread_items SET content = $3 WHERE thread_id = $1 AND id = $2")
        .bind::<SqlUuid, _>(thread.0)
        .bind::<Bytea, _>(&item.0[..])
        .bind::<Text, _>(content)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the run that continues a turn, and puts it into the queue; like one that was parked there, it executes without readers
/// until it has had one. `false` if the thread is deleted.
pub(super) async fn insert(
    connection: &mut AsyncPgConnection,
    turn: Uuid,
    next: &Continuation,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let Continuation { run, stream, frames, .. } = next;
    // A thread that is deleted meanwhile waits for this, and then has a run to stop.
    let stored = diesel::sql_query(
        "WITH thread AS (SELECT id FROM threads WHERE deleted_at IS NULL
             AND id = (SELECT thread_id FROM runs WHERE id = $1) FOR SHARE),
         put_run AS (INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, thread_id, stream_id,
                 status, inputs, options, created_at, parked)
             SELECT $2, r.workspace_id, r.workflow_id, r.version_id, r.trigger, r.writer_id, r.thread_id, $3, 'queued',
                 r.inputs, json_strip_nulls(json_build_object('continues', $1::text,
                     'session', r.options::json->>'session'))::text, $4, 1
             FROM runs r JOIN thread ON thread.id = r.thread_id WHERE r.id = $1 RETURNING workflow_id, thread_id),
         put_stream AS (INSERT INTO streams (id, day, run_id, workflow_id, thread_id, dialect)
             SELECT $3, $5, $2, workflow_id, thread_id,
                 coalesce($6, (SELECT dialect FROM turns_sent WHERE run_id = $1), $7) FROM put_run)
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
