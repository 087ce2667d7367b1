//! Erases visitor data: first the content, and, after the UTC day has ended, the visitor names in usage
//! records.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use super::owner::OwnerKind;
use super::visitors::ChatVisitor;
use crate::database::scalar::Scalar;
use crate::schema::threads;
use crate::system::retention::{CLEAR_RUN_CONTENT, EMPTY_COPIES, RUN_ROWS, THREAD_AND_FEEDBACK_ROWS};
use crate::{Changes, Store, StoreError};

/// Maximum threads per batch: each may have thousands of runs.
const THREADS_PART: i64 = 3;
/// Maximum erasures per round.
const ERASURES_PART: i64 = 20;
/// Period after an erasure in which late data is still erased.
const RECHECKED: TimeDelta = TimeDelta::hours(1);

/// A request to erase a visitor's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The visitor.
    pub visitor: ChatVisitor,
    /// When it was requested; later data is kept.
    pub requested_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct ErasureRow {
    #[diesel(sql_type = SqlUuid)]
    workflow_id: Uuid,
    #[diesel(sql_type = Text)]
    owner_kind: String,
    #[diesel(sql_type = Text)]
    owner_id: String,
    #[diesel(sql_type = Timestamptz)]
    requested_at: DateTime<Utc>,
}

impl ErasureRow {
    fn read(self) -> Result<Erasure, StoreError> {
        let kind = OwnerKind::read(&self.owner_kind)?;
        let visitor = ChatVisitor { workflow: self.workflow_id, kind, id: self.owner_id };
        Ok(Erasure { visitor, requested_at: self.requested_at })
    }
}

impl Changes {
    /// Stores a request to erase a visitor's data. Returns the request and the visitor's number of threads.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn request_erasure(&mut self, visitor: &ChatVisitor) -> Result<(Erasure, u64), StoreError> {
        let requested_at = self.store.now();
        let connection = &mut *self.connection;
        diesel::sql_query(
            "INSERT INTO erasures (workflow_id, owner_kind, owner_id, requested_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workflow_id, owner_kind, owner_id) DO UPDATE SET requested_at = excluded.requested_at, erased_at = NULL",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .bind::<Timestamptz, _>(requested_at)
        .execute(connection)
        .await?;
        let threads: i64 = threads::table
            .filter(threads::workflow_id.eq(visitor.workflow))
            .filter(threads::owner_kind.eq(visitor.kind.as_str()))
            .filter(threads::owner_id.eq(&visitor.id))
            .filter(threads::deleted_at.is_null())
            .count()
            .get_result(connection)
            .await?;
        let erasure = Erasure { visitor: visitor.clone(), requested_at };
        Ok((erasure, u64::try_from(threads).unwrap_or_default()))
    }
}

impl Store {
    /// Returns incomplete erasures, and those after which late data has arrived.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn open_erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        // Random order, so that an erasure that never completes does not block others.
        let rows: Vec<ErasureRow> = diesel::sql_query(
            "SELECT workflow_id, owner_kind, owner_id, requested_at FROM erasures e
             WHERE erased_at IS NULL OR EXISTS (SELECT FROM threads t WHERE t.workflow_id = e.workflow_id
                 AND t.owner_kind = e.owner_kind AND t.owner_id = e.owner_id AND t.created_at <= e.requested_at)
             ORDER BY random() LIMIT $1",
        )
        .bind::<BigInt, _>(ERASURES_PART)
        .load(&mut *self.connection().await?)
        .await?;
        rows.into_iter().map(ErasureRow::read).collect()
    }

    /// Whether an erasure for the visitor was requested at this time or later.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_erased_since(
        &self,
        visitor: &ChatVisitor,
        time: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let found = diesel::sql_query(
            "SELECT FROM erasures WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3 AND requested_at >= $4",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .bind::<Timestamptz, _>(time)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(found > 0)
    }

    /// Returns a visitor's threads that are not deleted, then the deleted ones with unfinished turns.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn unended_threads_of(&self, erasure: &Erasure) -> Result<Vec<ThreadId>, StoreError> {
        let Erasure { visitor, requested_at } = erasure;
        let rows: Vec<Scalar<Uuid>> = diesel::sql_query(
            "SELECT id FROM threads t WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3 AND created_at <= $4
                 AND (deleted_at IS NULL OR EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL))
             ORDER BY deleted_at NULLS FIRST, id LIMIT 100",
        )
        .bind::<SqlUuid, _>(visitor.workflow)
        .bind::<Text, _>(visitor.kind.as_str())
        .bind::<Text, _>(&visitor.id)
        .bind::<Timestamptz, _>(*requested_at)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(rows.into_iter().map(|row| ThreadId(row.0)).collect())
    }

    /// Erases some of a visitor's deleted threads whose turns have ended; returns their number. The rows of the
    /// threads and of their runs stay for a day without content, so that data restored by a resent batch is
    /// erased with them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_threads_of(&self, erasure: &Erasure) -> Result<u64, StoreError> {
        let Erasure { visitor, requested_at } = erasure;
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT id FROM threads t WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3
                 AND created_at <= $5 AND deleted_at IS NOT NULL
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL)
                 LIMIT $4 FOR UPDATE SKIP LOCKED),
             old AS MATERIALIZED (SELECT r.id, r.stream_id FROM runs r JOIN gone ON r.thread_id = gone.id), {RUN_ROWS},
             {CLEAR_RUN_CONTENT}, {THREAD_AND_FEEDBACK_ROWS}, {EMPTY_COPIES},
             keys AS (DELETE FROM idempotency_keys k USING gone
                 WHERE k.scope LIKE 'chat|%|address:%' AND k.outcome->>'thread' = gone.id::text)
             UPDATE threads t SET owner_id = NULL, title = NULL, status_reason = NULL, image_domains = NULL
                 FROM gone WHERE t.id = gone.id"
        );
        let erased = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(visitor.workflow)
            .bind::<Text, _>(visitor.kind.as_str())
            .bind::<Text, _>(&visitor.id)
            .bind::<BigInt, _>(THREADS_PART)
            .bind::<Timestamptz, _>(*requested_at)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(u64::try_from(erased).unwrap_or_default())
    }

    /// Erases a visitor's data outside threads and completes the erasure, if no thread is left. Returns whether
    /// it is complete.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_erasure(&self, erasure: &Erasure) -> Result<bool, StoreError> {
        let Erasure { visitor, requested_at } = erasure;
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let left = diesel::sql_query(
                    "SELECT FROM threads WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3 AND created_at <= $4 LIMIT 1",
                )
                .bind::<SqlUuid, _>(visitor.workflow)
                .bind::<Text, _>(visitor.kind.as_str())
                .bind::<Text, _>(&visitor.id)
                .bind::<Timestamptz, _>(*requested_at)
                .execute(connection)
                .await?;
                if left > 0 {
                    return Ok(false);
                }
                erase_rest(connection, erasure).await?;
                diesel::sql_query(
                    "UPDATE erasures SET erased_at = coalesce(erased_at, $4)
                     WHERE workflow_id = $1 AND owner_kind = $2 AND owner_id = $3 AND requested_at = $5",
                )
                .bind::<SqlUuid, _>(visitor.workflow)
                .bind::<Text, _>(visitor.kind.as_str())
                .bind::<Text, _>(&visitor.id)
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(*requested_at)
                .execute(connection)
                .await?;
                Ok(true)
            })
            .await
    }

    /// Removes visitor names from usage records before the UTC day, and deletes the erasures. Until then a
    /// daily limit still counts for these visitors.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_erased_visitors(&self) -> Result<(), StoreError> {
        let now = self.now();
        let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc();
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
        .bind::<Timestamptz, _>(midnight.min(now - RECHECKED))
        .bind::<Date, _>(now.date_naive())
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}

/// Erases attachments outside threads, feedback on other visitors' threads, and idempotency keys.
async fn erase_rest(connection: &mut AsyncPgConnection, erasure: &Erasure) -> Result<(), StoreError> {
    let Erasure { visitor, requested_at } = erasure;
    diesel::sql_query(
        "WITH gone AS MATERIALIZED (SELECT id FROM attachments WHERE owner_kind = $2 AND owner_id = $3
             AND workflow_id = $1 AND created_at <= $4),
         uses AS (DELETE FROM blob_uses u USING gone WHERE u.owner = gone.id),
         feedback AS (DELETE FROM item_feedback WHERE workflow_id = $1 AND author_kind = $2 AND author_id = $3
             AND created_at <= $4),
         keys AS (DELETE FROM idempotency_keys WHERE scope = 'chat|' || $1::text || '|' || $2 || ':' || $3)
         DELETE FROM attachments t USING gone WHERE t.id = gone.id",
    )
    .bind::<SqlUuid, _>(visitor.workflow)
    .bind::<Text, _>(visitor.kind.as_str())
    .bind::<Text, _>(&visitor.id)
    .bind::<Timestamptz, _>(*requested_at)
    .execute(connection)
    .await?;
    Ok(())
}
