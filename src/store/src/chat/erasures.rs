//! Erases the data of visitors: first their content, and, when the UTC day is over, their names in what was used on it.

use chrono::{NaiveDate, NaiveTime};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use super::owner::OwnerKind;
use super::visitors::ChatVisitor;
use crate::system::retention::{RUNS, THREAD_ROWS};
use crate::{Changes, Store, StoreError};

/// Threads of one part: each may have thousands of runs.
const THREADS_PART: i64 = 10;
/// Erasures that are continued in one round.
const ROUND: i64 = 20;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    workflow_id: Uuid,
    #[diesel(sql_type = Text)]
    owner_kind: String,
    #[diesel(sql_type = Text)]
    owner_id: String,
}

impl Row {
    fn read(self) -> Result<ChatVisitor, StoreError> {
        let kind = OwnerKind::read(&self.owner_kind)?;
        Ok(ChatVisitor { workflow: self.workflow_id, kind, id: self.owner_id })
    }
}

#[derive(QueryableByName)]
struct ThreadRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

impl Changes {
    /// Requests that the data of a visitor is erased.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn request_erasure(&mut self, visitor: &ChatVisitor) -> Result<(), StoreError> {
        let now = self.store.now();
        diesel::sql_query(
            "INSERT INTO erasures (workflow_id, owner_kind, owner_id, requested_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workflow_id, owner_kind, owner_id) DO UPDATE SET requested_at = excluded.requested_at, erased_at = NULL",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

impl Store {
    /// Visitors whose data is to be erased.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn open_erasures(&self) -> Result<Vec<ChatVisitor>, StoreError> {
        let rows: Vec<Row> = diesel::sql_query(
            "SELECT workflow_id, owner_kind, owner_id FROM erasures WHERE erased_at IS NULL ORDER BY requested_at LIMIT $1",
        )
        .bind::<BigInt, _>(ROUND)
        .load(&mut *self.connection().await?)
        .await?;
        rows.into_iter().map(Row::read).collect()
    }

    /// Threads of a visitor that are not deleted, or have turns that have not ended.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn unended_threads_of(&self, visitor: &ChatVisitor) -> Result<Vec<ThreadId>, StoreError> {
        let rows: Vec<ThreadRow> = diesel::sql_query(
            "SELECT id FROM threads t WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3
                 AND (deleted_at IS NULL OR EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL))
             ORDER BY id LIMIT 100",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(rows.into_iter().map(|row| ThreadId(row.id)).collect())
    }

    /// Erases some of a visitor's deleted threads whose turns have ended; returns how many. The rows of the threads stay without their
    /// owner, so that what a batch that is sent again brings back is erased a day later.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_threads_of(&self, visitor: &ChatVisitor) -> Result<u64, StoreError> {
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT id FROM threads t WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3
                 AND deleted_at IS NOT NULL
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL)
                 LIMIT $4 FOR UPDATE SKIP LOCKED),
             old AS MATERIALIZED (SELECT r.id, r.stream_id FROM runs r JOIN gone ON r.thread_id = gone.id), {RUNS},
             {THREAD_ROWS}
             UPDATE threads t SET owner_id = NULL, title = NULL, status_reason = NULL, image_domains = NULL
                 FROM gone WHERE t.id = gone.id"
        );
        let erased = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(visitor.workflow)
            .bind::<Text, _>(visitor.kind.as_str())
            .bind::<Text, _>(&visitor.id)
            .bind::<BigInt, _>(THREADS_PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(u64::try_from(erased).unwrap_or_default())
    }

    /// Erases what a visitor has outside of threads and completes the erasure, if no thread is left. Returns whether it is complete.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_erasure(&self, visitor: &ChatVisitor) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let left = diesel::sql_query(
                    "SELECT FROM threads WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3 LIMIT 1",
                )
                .bind::<SqlUuid, _>(visitor.workflow)
                .bind::<Text, _>(visitor.kind.as_str())
                .bind::<Text, _>(&visitor.id)
                .execute(connection)
                .await?;
                if left > 0 {
                    return Ok(false);
                }
                erase_rest(connection, visitor).await?;
                diesel::sql_query(
                    "UPDATE erasures SET erased_at = $4 WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3",
                )
                .bind::<SqlUuid, _>(visitor.workflow)
                .bind::<Text, _>(visitor.kind.as_str())
                .bind::<Text, _>(&visitor.id)
                .bind::<Timestamptz, _>(now)
                .execute(connection)
                .await?;
                Ok(true)
            })
            .await
    }

    /// Takes the names of visitors out of what was used before this UTC day, and forgets their erasures. Until then a limit of the day
    /// still counts for them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_erased_visitors(&self, today: NaiveDate) -> Result<(), StoreError> {
        diesel::sql_query(
            "WITH gone AS (DELETE FROM erasures WHERE erased_at < $1 RETURNING workflow_id, owner_kind || ':' || owner_id AS session),
             used AS (DELETE FROM chat_usage u USING gone WHERE u.workflow_id = gone.workflow_id AND u.session = gone.session
                 AND u.day < $2 RETURNING u.*)
             INSERT INTO chat_usage AS c (day, workflow_id, session, writer_id, turns, calls, input_tokens, output_tokens, usd)
             SELECT day, workflow_id, '', writer_id, sum(turns), sum(calls), sum(input_tokens), sum(output_tokens), sum(usd)
             FROM used GROUP BY day, workflow_id, writer_id
             ON CONFLICT (workflow_id, day, session, writer_id) DO UPDATE SET turns = c.turns + excluded.turns,
                 calls = c.calls + excluded.calls, input_tokens = c.input_tokens + excluded.input_tokens,
                 output_tokens = c.output_tokens + excluded.output_tokens, usd = c.usd + excluded.usd",
        )
        .bind::<Timestamptz, _>(today.and_time(NaiveTime::MIN).and_utc())
        .bind::<Date, _>(today)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}

/// Attachments of no thread, feedback on threads of others, and keys of requests.
async fn erase_rest(connection: &mut AsyncPgConnection, visitor: &ChatVisitor) -> Result<(), StoreError> {
    diesel::sql_query(
        "WITH gone AS MATERIALIZED (SELECT id FROM attachments WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3),
         uses AS (DELETE FROM blob_uses u USING gone WHERE u.owner = gone.id AND u.kind IN ('attachment', 'preview')),
         feedback AS (DELETE FROM item_feedback WHERE workflow_id = $1 AND author_kind = $2 AND author_id = $3),
         keys AS (DELETE FROM idempotency_keys WHERE scope = 'chat|' || $1::text || '|' || $2 || ':' || $3)
         DELETE FROM attachments t USING gone WHERE t.id = gone.id",
    )
    .bind::<SqlUuid, _>(visitor.workflow)
    .bind::<Text, _>(visitor.kind.as_str())
    .bind::<Text, _>(&visitor.id)
    .execute(connection)
    .await?;
    Ok(())
}
