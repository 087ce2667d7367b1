//! Datasets: versions of lists of cases, each case by its content.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bytea, Integer, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::schema::{dataset_cases, dataset_entries, dataset_versions, datasets, runs};
use crate::system::is_full;
use crate::{Store, StoreError};

/// Cases that one statement stores or reads.
const PART: usize = 2_000;
/// Cases that one statement deletes.
const DELETED: i64 = 5_000;
/// Datasets that one statement deletes: each may have many cases.
const DATASETS: i64 = 10;

/// A case to store.
#[derive(Debug, Clone)]
pub struct NewCase {
    /// SHA-256 of its canonical JSON.
    pub digest: [u8; 32],
    /// JSON.
    pub content: String,
}

/// The cases that a request has brought.
#[derive(Debug, Clone)]
pub struct DatasetOfRun<'a> {
    /// The run, which the dataset belongs to.
    pub run: Uuid,
    /// The workspace of the workflow.
    pub workspace: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// SHA-256 of the digests of the cases in their order.
    pub fingerprint: &'a [u8],
    /// In their order.
    pub cases: &'a [NewCase],
}

impl Store {
    /// Stores the cases of a run, once, before the run itself.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn store_cases_of_run(&self, new: &DatasetOfRun<'_>) -> Result<(), StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
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
                if made > 0 {
                    return store_version(connection, new, 1, now).await;
                }
                let stored: Option<Vec<u8>> = dataset_versions::table
                    .find((new.run, 1))
                    .select(dataset_versions::fingerprint)
                    .first(connection)
                    .await
                    .optional()?;
                if stored.as_deref() == Some(new.fingerprint) {
                    return Ok(());
                }
                let run: Option<Uuid> =
                    runs::table.find(new.run).select(runs::id).first(connection).await.optional()?;
                if run.is_some() {
                    return Err(StoreError::Corrupt(format!(
                        "the dataset of run {} has other cases",
                        new.run
                    )));
                }
                // Those of a start that was never stored.
                let entries = dataset_entries::table.filter(dataset_entries::dataset_id.eq(new.run));
                diesel::delete(entries).execute(connection).await?;
                diesel::delete(dataset_versions::table.find((new.run, 1))).execute(connection).await?;
                store_version(connection, new, 1, now).await
            })
            .await
    }

    /// The contents of the first `limit` cases of a version of a dataset, JSON, in their order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn cases_of_version(
        &self,
        dataset: Uuid,
        number: i32,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let mut connection = self.connection().await?;
        Ok(dataset_entries::table
            .inner_join(datasets::table.on(datasets::id.eq(dataset_entries::dataset_id)))
            .inner_join(
                dataset_cases::table.on(dataset_cases::digest
                    .eq(dataset_entries::digest)
                    .and(dataset_cases::workspace_id.eq(datasets::workspace_id))),
            )
            .filter(dataset_entries::dataset_id.eq(dataset))
            .filter(dataset_entries::number.eq(number))
            .order(dataset_entries::place)
            .limit(limit)
            .select(dataset_cases::content)
            .load(&mut *connection)
            .await?)
    }

    /// The content of one case of a version of a dataset, JSON.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn case_of_version(
        &self,
        (dataset, number): (Uuid, i32),
        place: i32,
    ) -> Result<Option<String>, StoreError> {
        Ok(dataset_entries::table
            .inner_join(datasets::table.on(datasets::id.eq(dataset_entries::dataset_id)))
            .inner_join(
                dataset_cases::table.on(dataset_cases::digest
                    .eq(dataset_entries::digest)
                    .and(dataset_cases::workspace_id.eq(datasets::workspace_id))),
            )
            .filter(dataset_entries::dataset_id.eq(dataset))
            .filter(dataset_entries::number.eq(number))
            .filter(dataset_entries::place.eq(place))
            .select(dataset_cases::content)
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Deletes datasets without a name that were stored before then and whose run was never stored, and cases of no dataset;
    /// `true` if there may be more.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_cases(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        let datasets = diesel::sql_query(
            "WITH old AS MATERIALIZED (SELECT id FROM datasets d WHERE name IS NULL AND created_at < $1
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.id = d.id) LIMIT $2 FOR UPDATE SKIP LOCKED),
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

async fn store_version(
    connection: &mut AsyncPgConnection,
    new: &DatasetOfRun<'_>,
    number: i32,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    diesel::insert_into(dataset_versions::table)
        .values((
            dataset_versions::dataset_id.eq(new.run),
            dataset_versions::number.eq(number),
            dataset_versions::n_cases.eq(i32::try_from(new.cases.len()).unwrap_or(i32::MAX)),
            dataset_versions::fingerprint.eq(new.fingerprint),
            dataset_versions::created_at.eq(now),
        ))
        .execute(connection)
        .await?;
    // By digest: two writers of the same cases lock them in one order.
    let mut sorted: Vec<&NewCase> = new.cases.iter().collect();
    sorted.sort_by_key(|case| case.digest);
    sorted.dedup_by_key(|case| case.digest);
    for cases in sorted.chunks(PART) {
        let digests: Vec<&[u8]> = cases.iter().map(|case| &case.digest[..]).collect();
        let contents: Vec<&str> = cases.iter().map(|case| case.content.as_str()).collect();
        // A case that is there already is made young again, or it could be deleted meanwhile.
        diesel::sql_query(
            "INSERT INTO dataset_cases (workspace_id, digest, content, created_at)
             SELECT $1, t.digest, t.content, $2 FROM unnest($3, $4) AS t (digest, content)
             ON CONFLICT (workspace_id, digest) DO UPDATE SET created_at = excluded.created_at
                 WHERE dataset_cases.created_at < excluded.created_at - interval '1 hour'",
        )
        .bind::<SqlUuid, _>(new.workspace)
        .bind::<Timestamptz, _>(now)
        .bind::<Array<Bytea>, _>(&digests)
        .bind::<Array<Text>, _>(&contents)
        .execute(connection)
        .await?;
    }
    for (part, cases) in new.cases.chunks(PART).enumerate() {
        let digests: Vec<&[u8]> = cases.iter().map(|case| &case.digest[..]).collect();
        diesel::sql_query(
            "INSERT INTO dataset_entries (dataset_id, number, place, digest)
             SELECT $1, $2, $3 + t.place::int - 1, t.digest FROM unnest($4) WITH ORDINALITY AS t (digest, place)",
        )
        .bind::<SqlUuid, _>(new.run)
        .bind::<Integer, _>(number)
        .bind::<Integer, _>(i32::try_from(part * PART).unwrap_or(i32::MAX))
        .bind::<Array<Bytea>, _>(&digests)
        .execute(connection)
        .await?;
    }
    Ok(())
}
