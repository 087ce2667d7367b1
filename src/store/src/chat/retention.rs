//! Chat retention per workflow.
//!
//! Each call handles a batch that is small enough not to delay other work, and returns whether more is left;
//! several instances may run concurrently.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bytea, Integer, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{ItemKey, first_id_at};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::system::retention::{
    CLEAR_RUN_CONTENT, CONTENT_ROWS, DELETE_RUNS, RUN_ROWS, WAITS_FOR_NOTHING, is_full,
};
use crate::{Store, StoreError};

/// Time after a thread's last turn during which its content may still be in use.
pub const CONTENT_USE: TimeDelta = TimeDelta::hours(1);
/// Maximum threads per batch: each may have thousands of runs.
const THREADS_PART: i64 = 3;
/// Maximum threads per batch that are only marked.
const MARKED_PART: i64 = 500;
/// Maximum runs per batch: each may have thousands of steps.
const RUNS_PART: i64 = 100;

/// A workflow with a chat retention time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct ChatRetention {
    /// The workflow.
    #[diesel(sql_type = SqlUuid)]
    pub workflow: Uuid,
    /// Days after its last item until a thread is deleted; 0: content is not stored.
    #[diesel(sql_type = Integer)]
    pub days: i32,
}

impl Store {
    /// Returns workflows with a chat retention time.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn chat_retentions(&self) -> Result<Vec<ChatRetention>, StoreError> {
        Ok(diesel::sql_query(
            "SELECT id AS workflow, (chat->>'retention_days')::int AS days FROM workflows
             WHERE chat->>'retention_days' IS NOT NULL ORDER BY id",
        )
        .load(&mut *self.connection().await?)
        .await?)
    }

    /// Deletes threads whose last item was added before then, unless a turn executes or is parked there.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_old_threads(
        &self,
        workflow: Uuid,
        before: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let found = diesel::sql_query(
            "UPDATE threads SET deleted_at = $4 WHERE id IN (
                 SELECT id FROM threads t WHERE workflow_id = $1 AND deleted_at IS NULL AND created_at < $2
                     AND NOT EXISTS (SELECT FROM thread_items i WHERE i.thread_id = t.id AND i.id >= $3)
                     AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL)
                 ORDER BY created_at LIMIT $5 FOR UPDATE SKIP LOCKED)",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<Timestamptz, _>(before)
        .bind::<Bytea, _>(&ItemKey::at(first_id_at(before)).0[..])
        .bind::<Timestamptz, _>(self.now())
        .bind::<BigInt, _>(MARKED_PART)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(is_full(found, MARKED_PART))
    }

    /// Deletes runs in a workflow's threads that ended before then, with their journals; turns that wait for an
    /// answer stay.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_turns(&self, workflow: Uuid, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH old AS MATERIALIZED (SELECT id, stream_id FROM runs WHERE workflow_id = $1 AND id < $3 AND finished_at < $2
                     AND thread_id IS NOT NULL AND {WAITS_FOR_NOTHING}
                 ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED), {DELETE_RUNS} SELECT FROM old"
        );
        let found = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(workflow)
            .bind::<Timestamptz, _>(before)
            .bind::<SqlUuid, _>(first_id_at(before))
            .bind::<BigInt, _>(RUNS_PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(found, RUNS_PART))
    }

    /// Erases the content of threads that have been idle since then, including deleted threads. Their runs keep
    /// times, status, version, usage and error code; feedback keeps its kind.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_contents(&self, workflow: Uuid, before: DateTime<Utc>) -> Result<bool, StoreError> {
        // A thread without an owner belonged to an erased visitor: its runs do not stay.
        let idle = "erased_at IS NULL AND created_at < $2 AND (deleted_at IS NULL OR owner_id IS NOT NULL AND deleted_at < $2)";
        self.erase_contents_of(workflow, before, idle).await
    }

    /// Erases content added to threads after their erasure; `since`: erased at this time or later.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_late_contents(
        &self,
        workflow: Uuid,
        since: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let late = "erased_at >= $2 AND (EXISTS (SELECT FROM thread_items i WHERE i.thread_id = t.id)
             OR EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.inputs <> '{}'))";
        self.erase_contents_of(workflow, since, late).await
    }

    async fn erase_contents_of(
        &self,
        workflow: Uuid,
        at: DateTime<Utc>,
        which: &str,
    ) -> Result<bool, StoreError> {
        // Keeps threads with a pending outbox request.
        let idle = format!(
            "workflow_id = $1 AND {which}
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND (r.finished_at IS NULL OR r.finished_at >= $3
                     OR EXISTS (SELECT FROM outbox o WHERE o.run_id = r.id AND o.next_attempt_at IS NOT NULL)))"
        );
        let now = self.now();
        let threads: Vec<Scalar<Uuid>> =
            diesel::sql_query(format!("SELECT id FROM threads t WHERE {idle} ORDER BY created_at LIMIT $4"))
                .bind::<SqlUuid, _>(workflow)
                .bind::<Timestamptz, _>(at)
                .bind::<Timestamptz, _>(now - CONTENT_USE)
                .bind::<BigInt, _>(THREADS_PART)
                .load(&mut *self.connection().await?)
                .await?;
        let threads: Vec<Uuid> = threads.into_iter().map(|thread| thread.0).collect();
        self.keep_usage(&threads).await?;
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT id FROM threads t WHERE id = ANY($5) AND {idle}
                 FOR UPDATE SKIP LOCKED),
             old AS MATERIALIZED (SELECT r.id, r.stream_id FROM runs r JOIN gone ON r.thread_id = gone.id), {RUN_ROWS},
             {CONTENT_ROWS}, {CLEAR_RUN_CONTENT},
             comments AS (UPDATE item_feedback f SET comment = NULL FROM gone WHERE f.thread_id = gone.id)
             UPDATE threads t SET deleted_at = coalesce(t.deleted_at, $4), erased_at = coalesce(t.erased_at, $4), owner_id = NULL,
                 title = NULL, status_reason = NULL, image_domains = NULL FROM gone WHERE t.id = gone.id"
        );
        let erased = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(workflow)
            .bind::<Timestamptz, _>(at)
            .bind::<Timestamptz, _>(now - CONTENT_USE)
            .bind::<Timestamptz, _>(now)
            .bind::<Array<SqlUuid>, _>(&threads)
            .execute(&mut *self.connection().await?)
            .await?;
        // Currently locked threads are erased in the next round.
        Ok(erased > 0 && is_full(threads.len(), THREADS_PART))
    }
}
