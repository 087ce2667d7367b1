//! Training checkpoints: append-only.

use chrono::{DateTime, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::runs::records::holds_run;
use crate::schema::training_checkpoints;
use crate::{Store, StoreError};

/// Stored scores are truncated to this precision: float sums differ by less.
const PRECISION: f64 = 1e9;

/// A checkpoint.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = training_checkpoints)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredCheckpoint {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The run that wrote it.
    pub run_id: Uuid,
    /// The candidate whose prompts it contains.
    pub candidate: i32,
    /// The epoch that wrote it.
    pub epoch: i32,
    /// Its number within the workflow, from 1.
    pub config_version: i64,
    /// The config, JSON.
    pub runnable_config: String,
    /// JSON `{evaluator: mean}`.
    pub metrics: String,
    /// JSON.
    pub metadata: String,
    /// Its prompts' score.
    pub score: f64,
    /// Whether it was the best one for these cases and evaluators when it was written.
    pub is_best: bool,
    /// When it was written.
    pub created_at: DateTime<Utc>,
}

/// A checkpoint to write.
#[derive(Debug, Clone)]
pub struct NewCheckpoint {
    /// UUIDv7.
    pub id: Uuid,
    /// The workflow's workspace.
    pub workspace_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The run that writes it.
    pub run_id: Uuid,
    /// The candidate whose prompts it contains.
    pub candidate: i32,
    /// The epoch.
    pub epoch: i32,
    /// The config, JSON.
    pub runnable_config: String,
    /// JSON `{evaluator: mean}`.
    pub metrics: String,
    /// JSON.
    pub metadata: String,
    /// Its prompts' score.
    pub score: f64,
    /// SHA-256 of the case digests in order.
    pub fingerprint: Vec<u8>,
    /// SHA-256 of the evaluators.
    pub judges: Vec<u8>,
}

impl Store {
    /// Writes a checkpoint, unless the run has already written one for these prompts in this epoch: then
    /// returns that one. `None` if `writer` no longer owns the run.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn write_checkpoint(
        &self,
        writer: Uuid,
        new: &NewCheckpoint,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| write(connection, writer, new, now).await).await
    }

    /// Returns at most `limit` checkpoints of a workflow, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn checkpoints(
        &self,
        workflow: Uuid,
        only_best: bool,
        limit: i64,
    ) -> Result<Vec<StoredCheckpoint>, StoreError> {
        let mut query = training_checkpoints::table
            .filter(training_checkpoints::workflow_id.eq(workflow))
            .order(training_checkpoints::config_version.desc())
            .limit(limit)
            .select(StoredCheckpoint::as_select())
            .into_boxed();
        if only_best {
            query = query.filter(diesel::dsl::sql::<diesel::sql_types::Bool>(
                "NOT EXISTS (SELECT FROM training_checkpoints b WHERE b.workflow_id = training_checkpoints.workflow_id
                     AND b.fingerprint = training_checkpoints.fingerprint AND b.judges = training_checkpoints.judges
                     AND (b.score > training_checkpoints.score OR b.score = training_checkpoints.score
                         AND b.config_version < training_checkpoints.config_version))",
            ));
        }
        Ok(query.load(&mut *self.connection().await?).await?)
    }

    /// Returns a checkpoint by id.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn checkpoint(&self, id: Uuid) -> Result<Option<StoredCheckpoint>, StoreError> {
        Ok(training_checkpoints::table
            .find(id)
            .select(StoredCheckpoint::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Returns a workflow's checkpoint by number.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn checkpoint_numbered(
        &self,
        workflow: Uuid,
        config_version: i64,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        Ok(training_checkpoints::table
            .filter(training_checkpoints::workflow_id.eq(workflow))
            .filter(training_checkpoints::config_version.eq(config_version))
            .select(StoredCheckpoint::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Returns a run's checkpoints in number order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn checkpoints_of_run(&self, run: Uuid) -> Result<Vec<StoredCheckpoint>, StoreError> {
        Ok(training_checkpoints::table
            .filter(training_checkpoints::run_id.eq(run))
            .order(training_checkpoints::config_version)
            .select(StoredCheckpoint::as_select())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns a workflow's best checkpoint for these cases and evaluators; the first of equal ones.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn best_checkpoint(
        &self,
        workflow: Uuid,
        fingerprint: &[u8],
        judges: &[u8],
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let mut connection = self.connection().await?;
        let best: Option<StoredCheckpoint> = training_checkpoints::table
            .filter(training_checkpoints::workflow_id.eq(workflow))
            .filter(training_checkpoints::fingerprint.eq(fingerprint))
            .filter(training_checkpoints::judges.eq(judges))
            .order((training_checkpoints::score.desc(), training_checkpoints::config_version))
            .select(StoredCheckpoint::as_select())
            .first(&mut *connection)
            .await
            .optional()?;
        Ok(best)
    }
}

async fn write(
    connection: &mut AsyncPgConnection,
    writer: Uuid,
    new: &NewCheckpoint,
    now: DateTime<Utc>,
) -> Result<Option<StoredCheckpoint>, StoreError> {
    if !holds_run(connection, writer, new.run_id).await? {
        return Ok(None);
    }
    lock_counter(connection, new.workflow_id).await?;
    let known: Option<StoredCheckpoint> = training_checkpoints::table
        .filter(training_checkpoints::run_id.eq(new.run_id))
        .filter(training_checkpoints::candidate.eq(new.candidate))
        .filter(training_checkpoints::epoch.eq(new.epoch))
        .select(StoredCheckpoint::as_select())
        .first(connection)
        .await
        .optional()?;
    if known.is_some() {
        return Ok(known);
    }
    let config_version = next_number(connection, new.workflow_id).await?;
    let score = (new.score * PRECISION).round() / PRECISION;
    let is_best = is_best(connection, new, score).await?;
    let row = (
        training_checkpoints::id.eq(new.id),
        training_checkpoints::workspace_id.eq(new.workspace_id),
        training_checkpoints::workflow_id.eq(new.workflow_id),
        training_checkpoints::run_id.eq(new.run_id),
        training_checkpoints::candidate.eq(new.candidate),
        training_checkpoints::epoch.eq(new.epoch),
        training_checkpoints::config_version.eq(config_version),
        training_checkpoints::runnable_config.eq(&new.runnable_config),
        training_checkpoints::metrics.eq(&new.metrics),
        training_checkpoints::metadata.eq(&new.metadata),
        training_checkpoints::score.eq(score),
        training_checkpoints::fingerprint.eq(&new.fingerprint),
        training_checkpoints::judges.eq(&new.judges),
        training_checkpoints::is_best.eq(is_best),
        training_checkpoints::created_at.eq(now),
    );
    let insert = diesel::insert_into(training_checkpoints::table).values(row);
    Ok(Some(insert.returning(StoredCheckpoint::as_returning()).get_result(connection).await?))
}

/// Locks a workflow's checkpoint counter, which serializes concurrent writers, so that numbers have no gaps.
async fn lock_counter(connection: &mut AsyncPgConnection, workflow: Uuid) -> Result<(), StoreError> {
    diesel::sql_query(
        "INSERT INTO training_counters (workflow_id, config_version) VALUES ($1, 0) ON CONFLICT DO NOTHING",
    )
    .bind::<SqlUuid, _>(workflow)
    .execute(connection)
    .await?;
    diesel::sql_query("SELECT FROM training_counters WHERE workflow_id = $1 FOR UPDATE")
        .bind::<SqlUuid, _>(workflow)
        .execute(connection)
        .await?;
    Ok(())
}

/// Increases a workflow's checkpoint counter and returns it.
async fn next_number(connection: &mut AsyncPgConnection, workflow: Uuid) -> Result<i64, StoreError> {
    let number: Scalar<i64> = diesel::sql_query(
        "UPDATE training_counters SET config_version = config_version + 1 WHERE workflow_id = $1
         RETURNING config_version",
    )
    .bind::<SqlUuid, _>(workflow)
    .get_result(connection)
    .await?;
    Ok(number.0)
}

/// Whether the checkpoint has evaluators, and no earlier one with the same cases and evaluators has at least this score.
async fn is_best(
    connection: &mut AsyncPgConnection,
    new: &NewCheckpoint,
    score: f64,
) -> Result<bool, StoreError> {
    let better = training_checkpoints::table
        .filter(training_checkpoints::workflow_id.eq(new.workflow_id))
        .filter(training_checkpoints::fingerprint.eq(&new.fingerprint))
        .filter(training_checkpoints::judges.eq(&new.judges))
        .filter(training_checkpoints::score.ge(score));
    let is_beaten: bool = diesel::select(exists(better)).get_result(connection).await?;
    Ok(!is_beaten && !new.judges.is_empty())
}
