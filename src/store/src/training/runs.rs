//! Training-specific and evaluation-specific data for runs, in addition to their rows in `runs`.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::schema::training_runs;
use crate::{Store, StoreError};

/// A training or an evaluation.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = training_runs)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredTraining {
    /// The run.
    pub run_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The dataset with its cases.
    pub dataset_id: Uuid,
    /// The dataset's version, from 1.
    pub dataset_version: i32,
    /// SHA-256 of the case digests in order.
    pub fingerprint: Vec<u8>,
    /// SHA-256 of the evaluators.
    pub judges: Vec<u8>,
    /// The number of cases.
    pub n_cases: i32,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
    /// JSON: the object `training` or `evaluation`, without cases.
    pub request: String,
    /// JSON: decisions made before the first call.
    pub start: String,
    /// The run whose results it evaluates again.
    pub origin_run_id: Option<Uuid>,
    /// When a client requested a pause, if one is requested.
    pub pause_requested_at: Option<DateTime<Utc>>,
    /// JSON: its progress.
    pub state: Option<String>,
}

impl Store {
    /// Returns a training or an evaluation, without its row in `runs`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn training(&self, run: Uuid) -> Result<Option<StoredTraining>, StoreError> {
        Ok(training_runs::table
            .find(run)
            .select(StoredTraining::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// The same for several runs.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn trainings(&self, runs: &[Uuid]) -> Result<Vec<StoredTraining>, StoreError> {
        Ok(training_runs::table
            .filter(training_runs::run_id.eq_any(runs))
            .select(StoredTraining::as_select())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Stores a pause request, unless the run has ended; the first request's time stays.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn request_pause(&self, run: Uuid) -> Result<(), StoreError> {
        diesel::sql_query(
            "UPDATE training_runs t SET pause_requested_at = coalesce(t.pause_requested_at, $2) FROM runs r
             WHERE t.run_id = $1 AND r.id = t.run_id AND r.finished_at IS NULL",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<Timestamptz, _>(self.now())
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Cancels a pause: a parked run becomes due now, even if it was due later.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn request_resume(&self, run: Uuid) -> Result<(), StoreError> {
        let now = self.now();
        // One statement: a run that is being parked concurrently sees that the pause is gone, or the next call
        // finds it in the queue.
        diesel::sql_query(
            "WITH resumed AS (UPDATE training_runs SET pause_requested_at = NULL
                 WHERE run_id = $1 AND pause_requested_at IS NOT NULL)
             UPDATE run_queue SET due_at = $2 WHERE run_id = $1 AND NOT turn AND (due_at IS NULL OR due_at > $2)",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Makes a parked run due if no pause is requested any more.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn wake_unless_paused(&self, run: Uuid) -> Result<bool, StoreError> {
        let woken = diesel::sql_query(
            "UPDATE run_queue q SET due_at = $2 FROM training_runs t
             WHERE q.run_id = $1 AND t.run_id = $1 AND q.due_at IS NULL AND NOT q.turn AND t.pause_requested_at IS NULL",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<Timestamptz, _>(self.now())
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(woken > 0)
    }

    /// Makes parked runs due whose pause was cancelled while they were being parked.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn wake_resumed_trainings(&self) -> Result<usize, StoreError> {
        Ok(diesel::sql_query(
            "UPDATE run_queue q SET due_at = $1 FROM training_runs t
             WHERE t.run_id = q.run_id AND q.due_at IS NULL AND NOT q.turn AND t.pause_requested_at IS NULL",
        )
        .bind::<Timestamptz, _>(self.now())
        .execute(&mut *self.connection().await?)
        .await?)
    }

    /// Whether a run is parked: no instance executes it or holds it until a slot is free.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_parked(&self, run: Uuid) -> Result<bool, StoreError> {
        let query = diesel::sql_query("SELECT run_id AS id FROM run_queue WHERE run_id = $1");
        let found: Vec<Scalar<Uuid>> =
            query.bind::<SqlUuid, _>(run).load(&mut *self.connection().await?).await?;
        Ok(!found.is_empty())
    }

    /// Whether a client has requested a pause.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn pause_requested(&self, run: Uuid) -> Result<bool, StoreError> {
        let found: Option<bool> = training_runs::table
            .find(run)
            .select(training_runs::pause_requested_at.is_not_null())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.unwrap_or_default())
    }

    /// Returns this writer's runs with a pause request.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn pauses_of_writer(&self, writer: Uuid) -> Result<Vec<Uuid>, StoreError> {
        let found: Vec<Scalar<Uuid>> = diesel::sql_query(
            "SELECT t.run_id AS id FROM training_runs t JOIN runs r ON r.id = t.run_id
             WHERE t.pause_requested_at IS NOT NULL AND r.finished_at IS NULL AND r.writer_id = $1
                 AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = t.run_id)",
        )
        .bind::<SqlUuid, _>(writer)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(found.into_iter().map(|found| found.0).collect())
    }
}
