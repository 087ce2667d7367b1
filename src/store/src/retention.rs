//! What is not kept for ever: runs that ended long ago, what was in deleted threads, values that are nobody's any more.
//!
//! Each call does a part that is small enough to disturb nobody and says whether there is more; several instances may
//! do it at once.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::{Builder, Uuid};

use crate::{Store, StoreError};

/// Rows of one part.
const PART: i64 = 500;

/// Deletes the runs in `old`, with everything that is only theirs.
const RUNS: &str = "
    steps AS (DELETE FROM run_steps t USING old WHERE t.run_id = old.id),
    questions AS (DELETE FROM run_questions t USING old WHERE t.run_id = old.id),
    streams_of AS (DELETE FROM streams t USING old WHERE t.id = old.stream_id),
    runs_of AS (DELETE FROM runs t USING old WHERE t.id = old.id)";

impl Store {
    /// Deletes runs that ended before then, with their journals; `true` when there may be more.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_runs(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        // Whatever ended before then was made before then.
        let sql = format!(
            "WITH old AS MATERIALIZED (SELECT id, stream_id FROM runs WHERE id < $1 AND finished_at < $2
                 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED), {RUNS} SELECT FROM old"
        );
        let found = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(first_made_at(before))
            .bind::<Timestamptz, _>(before)
            .bind::<BigInt, _>(PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(found))
    }

    /// Erases what was in threads that were deleted before then; `true` when there may be more. A thread whose turns
    /// have not all ended waits.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn erase_deleted_threads(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT id FROM threads t WHERE deleted_at < $1 AND erased_at IS NULL
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL)
                 LIMIT $3 FOR UPDATE SKIP LOCKED),
             old AS MATERIALIZED (SELECT r.id, r.stream_id FROM runs r JOIN gone ON r.thread_id = gone.id), {RUNS},
             items AS (DELETE FROM thread_items t USING gone WHERE t.thread_id = gone.id),
             cuts AS (DELETE FROM thread_cuts t USING gone WHERE t.thread_id = gone.id),
             feedback AS (DELETE FROM item_feedback t USING gone WHERE t.thread_id = gone.id)
             UPDATE threads t SET erased_at = $2, title = NULL FROM gone WHERE t.id = gone.id"
        );
        let found = diesel::sql_query(sql)
            .bind::<Timestamptz, _>(before)
            .bind::<Timestamptz, _>(self.now())
            .bind::<BigInt, _>(PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(found))
    }

    /// Deletes values that were stored before then and that no step has any more; `true` when there may be more.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_blobs(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        // Whoever stores the same value again makes its row younger, and so waits for this, or this for them.
        let found = diesel::sql_query(
            "DELETE FROM blobs WHERE created_at < $1 AND digest IN
                 (SELECT digest FROM blobs b WHERE created_at < $1
                      AND NOT EXISTS (SELECT FROM run_steps s WHERE s.result_blob = b.digest) LIMIT $2)",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(PART)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(is_full(found))
    }
}

fn is_full(found: usize) -> bool {
    i64::try_from(found).is_ok_and(|found| found >= PART)
}

/// The first id that can be made at this time.
pub(crate) fn first_made_at(at: DateTime<Utc>) -> Uuid {
    let millis = u64::try_from(at.timestamp_millis()).unwrap_or_default();
    let mut first = *Builder::from_unix_timestamp_millis(millis, &[0; 10]).as_uuid().as_bytes();
    // Also before those of other variants and versions.
    first.iter_mut().skip(6).for_each(|byte| *byte = 0);
    Uuid::from_bytes(first)
}
