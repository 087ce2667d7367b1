//! Unnamed datasets: cases that came with requests.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use super::entries::{NewCase, NewVersion, store_version};
use crate::schema::{dataset_entries, dataset_versions, datasets, runs};
use crate::system::is_full;
use crate::{Store, StoreError};

/// Maximum cases deleted per statement.
const DELETED: i64 = 5_000;
/// Maximum datasets deleted per statement: each may have many cases.
const DATASETS: i64 = 10;

/// The cases that came with a request.
#[derive(Debug, Clone)]
pub struct DatasetOfRun<'a> {
    /// The run that the dataset belongs to.
    pub run: Uuid,
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// SHA-256 of the case digests in order.
    pub fingerprint: &'a [u8],
    /// The cases in order.
    pub cases: &'a [NewCase],
}

impl Store {
    /// Stores a run's cases once, before the run itself. `false`: the id belongs to another dataset.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn store_cases_of_run(&self, new: &DatasetOfRun<'_>) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| store_cases(connection, new, now).await).await
    }

    /// Deletes unnamed datasets that were stored before then and whose run was never stored, deleted datasets
    /// that no run uses, and cases without a dataset; `true` if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_cases(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        let datasets = diesel::sql_query(
            "WITH old AS MATERIALIZED (SELECT id FROM datasets d
                 WHERE (name IS NULL AND created_at < $1 OR deleted_at < $1)
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.id = d.id)
                 AND NOT EXISTS (SELECT FROM training_runs t WHERE t.dataset_id = d.id) LIMIT $2 FOR UPDATE SKIP LOCKED),
             versions AS (DELETE FROM dataset_versions t USING old WHERE t.dataset_id = old.id),
             entries AS (DELETE FROM dataset_entries t USING old WHERE t.dataset_id = old.id)
             DELETE FROM datasets t USING old WHERE t.id = old.id",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(DATASETS)
        .execute(&mut *connection)
        .await?;
        let deleted = diesel::sql_query(
            "WITH gone AS MATERIALIZED (SELECT workspace_id, digest FROM dataset_cases c WHERE created_at < $1
                 AND NOT EXISTS (SELECT FROM dataset_entries e WHERE e.digest = c.digest)
                 LIMIT $2 FOR UPDATE SKIP LOCKED)
             DELETE FROM dataset_cases c USING gone
             WHERE (c.workspace_id, c.digest) = (gone.workspace_id, gone.digest) AND c.created_at < $1",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(DELETED)
        .execute(&mut *connection)
        .await?;
        Ok(is_full(datasets, DATASETS) || is_full(deleted, DELETED))
    }
}

/// The transaction in [`Store::store_cases_of_run`].
async fn store_cases(
    connection: &mut AsyncPgConnection,
    new: &DatasetOfRun<'_>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let made = diesel::insert_into(datasets::table)
        .values((
            datasets::id.eq(new.run),
            datasets::workspace_id.eq(new.workspace),
            datasets::workflow_id.eq(new.workflow),
            datasets::created_at.eq(now),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if made == 0 {
        let owner: (Option<String>, Uuid, Uuid) = datasets::table
            .find(new.run)
            .select((datasets::name, datasets::workspace_id, datasets::workflow_id))
            .for_update()
            .first(connection)
            .await?;
        if owner != (None, new.workspace, new.workflow) {
            return Ok(false);
        }
        if !clear_other_cases(connection, new).await? {
            return Ok(true);
        }
    }
    let version = NewVersion {
        workspace: new.workspace,
        dataset: new.run,
        number: 1,
        fingerprint: new.fingerprint,
        n_cases: new.cases.len(),
    };
    store_version(connection, &version, new.cases, now).await?;
    Ok(true)
}

/// Deletes other cases, which belong to a start that was never stored. `false` if these cases are stored.
async fn clear_other_cases(
    connection: &mut AsyncPgConnection,
    new: &DatasetOfRun<'_>,
) -> Result<bool, StoreError> {
    let stored: Option<Vec<u8>> = dataset_versions::table
        .find((new.run, 1))
        .select(dataset_versions::fingerprint)
        .first(connection)
        .await
        .optional()?;
    if stored.as_deref() == Some(new.fingerprint) {
        return Ok(false);
    }
    let run: Option<Uuid> = runs::table.find(new.run).select(runs::id).first(connection).await.optional()?;
    if run.is_some() {
        return Err(StoreError::Corrupt(format!("the dataset of run {} has other cases", new.run)));
    }
    let entries = dataset_entries::table.filter(dataset_entries::dataset_id.eq(new.run));
    diesel::delete(entries).execute(connection).await?;
    diesel::delete(dataset_versions::table.find((new.run, 1))).execute(connection).await?;
    Ok(true)
}
