//! Requeues runs that this build cannot execute.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{Store, StoreError};

impl Store {
    /// Requeues a run of this writer that this build cannot execute; another instance may claim it at `due`.
    /// Releases its workflow slot.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn put_back(&self, writer: Uuid, run: Uuid, due: DateTime<Utc>) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        diesel::sql_query(
            "WITH queued AS (
                 INSERT INTO run_queue (run_id, workflow_id, turn, due_at)
                 SELECT id, workflow_id, false, $3 FROM runs
                 WHERE id = $1 AND writer_id = $2 AND finished_at IS NULL FOR NO KEY UPDATE ON CONFLICT DO NOTHING
                 RETURNING run_id)
             DELETE FROM run_places p USING queued q WHERE p.run_id = q.run_id",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<SqlUuid, _>(writer)
        .bind::<Timestamptz, _>(due)
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}
