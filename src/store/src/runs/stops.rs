//! Runs with a pending stop request.

use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use crate::{Store, StoreError, StoredRun};

/// A run to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRequest {
    /// The run.
    pub run: Uuid,
    /// Its trigger; empty if the run is deleted.
    pub trigger: String,
    /// Its thread, for a turn.
    pub thread: Option<ThreadId>,
    /// Whether it is in the queue, where any instance may claim it.
    pub queued: bool,
    /// Whether it has ended, and the request can be deleted.
    pub over: bool,
}

#[derive(QueryableByName)]
struct StopRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    trigger: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    thread_id: Option<Uuid>,
    #[diesel(sql_type = Bool)]
    queued: bool,
    #[diesel(sql_type = Bool)]
    over: bool,
}

impl Store {
    /// Stores a request to cancel the run; the first request's time stays.
    ///
    /// Returns the run, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn request_cancel(&self, id: Uuid) -> Result<Option<StoredRun>, StoreError> {
        diesel::sql_query(
            "WITH asked AS (UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, $2)
                            WHERE id = $1 AND finished_at IS NULL RETURNING id)
             INSERT INTO run_stops (run_id) SELECT id FROM asked ON CONFLICT DO NOTHING",
        )
        .bind::<SqlUuid, _>(id)
        .bind::<Timestamptz, _>(self.now())
        .execute(&mut *self.connection().await?)
        .await?;
        self.run(id).await
    }

    /// Returns the runs to stop that this writer owns or that are queued, and those that have ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stop_requests(&self, writer: Uuid) -> Result<Vec<StopRequest>, StoreError> {
        let rows: Vec<StopRow> = diesel::sql_query(
            "SELECT s.run_id AS id, coalesce(r.trigger, '') AS trigger, r.thread_id, q.run_id IS NOT NULL AS queued,
                 r.id IS NULL OR r.finished_at IS NOT NULL AS over
             FROM run_stops s LEFT JOIN runs r ON r.id = s.run_id LEFT JOIN run_queue q ON q.run_id = s.run_id
             WHERE r.id IS NULL OR r.finished_at IS NOT NULL OR q.run_id IS NOT NULL OR r.writer_id = $1",
        )
        .bind::<SqlUuid, _>(writer)
        .load(&mut *self.connection().await?)
        .await?;
        let stop = |row: StopRow| {
            let StopRow { id: run, trigger, thread_id, queued, over } = row;
            StopRequest { run, trigger, thread: thread_id.map(ThreadId), queued, over }
        };
        Ok(rows.into_iter().map(stop).collect())
    }

    /// Deletes stop requests for ended runs.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_stops(&self) -> Result<(), StoreError> {
        diesel::sql_query(
            "DELETE FROM run_stops s WHERE NOT EXISTS (SELECT FROM runs r WHERE r.id = s.run_id
                 AND r.finished_at IS NULL)",
        )
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}

/// Stores stop requests for these runs.
pub(crate) async fn ask(connection: &mut AsyncPgConnection, runs: &[Uuid]) -> Result<(), StoreError> {
    if !runs.is_empty() {
        diesel::sql_query("INSERT INTO run_stops (run_id) SELECT unnest($1) ON CONFLICT DO NOTHING")
            .bind::<Array<SqlUuid>, _>(runs)
            .execute(connection)
            .await?;
    }
    Ok(())
}
