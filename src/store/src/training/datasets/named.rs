//! Named datasets: create, add versions and cases, delete, list.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use super::entries::{NewCase, NewVersion, store_appended, store_version};
use crate::database::scalar::Scalar;
use crate::schema::{dataset_entries, datasets, threads};
use crate::{Changes, Store, StoreError};

/// Maximum datasets per workflow.
const MOST_DATASETS: i64 = 1_000;
/// Maximum cases per dataset, and maximum content bytes in total: each use reads all of them.
const MOST_CASES: i32 = 100_000;
const MOST_BYTES: i64 = 64 << 20;

/// A dataset with its latest version.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct StoredDataset {
    /// UUIDv7.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// Its workflow.
    #[diesel(sql_type = SqlUuid)]
    pub workflow_id: Uuid,
    /// The workflow's workspace.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// Its name within the workflow.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// The latest version, from 1.
    #[diesel(sql_type = Integer)]
    pub version: i32,
    /// The number of cases in that version.
    #[diesel(sql_type = Integer)]
    pub n_cases: i32,
    /// SHA-256 of its case digests in order.
    #[diesel(sql_type = Bytea)]
    pub fingerprint: Vec<u8>,
    /// When the dataset was created.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// When that version was created.
    #[diesel(sql_type = Timestamptz)]
    pub updated_at: DateTime<Utc>,
}

/// A dataset to create.
#[derive(Debug, Clone)]
pub struct NewDataset<'a> {
    /// UUIDv7.
    pub id: Uuid,
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// Its name.
    pub name: &'a str,
    /// SHA-256 of its case digests in order.
    pub fingerprint: &'a [u8],
    /// Its cases in order.
    pub cases: &'a [NewCase],
}

/// The result of adding a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedVersion {
    /// The dataset with its latest version.
    pub dataset: StoredDataset,
    /// Whether this call created that version.
    pub is_new: bool,
    /// The number of cases that the previous version has, too.
    pub unchanged: usize,
}

/// The result of creating a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeDataset {
    /// Created.
    Made(StoredDataset),
    /// Another dataset in the workflow has this name.
    NameTaken,
    /// The workflow has reached its maximum number of datasets.
    TooMany,
}

/// The result of adding a case to a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCase {
    /// Added; the number of the new version.
    Added(i32),
    /// This version already has a case from the same run.
    Known(i32),
    /// The dataset has reached its maximum cases or bytes.
    Full,
    /// The run's thread was deleted in the meantime.
    Erased,
    /// The dataset was deleted in the meantime.
    Deleted,
}

/// Selects datasets that are not deleted, with their latest versions; a condition follows.
const SELECT: &str =
    "SELECT d.id, d.workflow_id, d.workspace_id, d.name, v.number AS version, v.n_cases, v.fingerprint,
         d.created_at, v.created_at AS updated_at
     FROM datasets d JOIN LATERAL (SELECT number, n_cases, fingerprint, created_at FROM dataset_versions
         WHERE dataset_id = d.id ORDER BY number DESC LIMIT 1) v ON true
     WHERE d.name IS NOT NULL AND d.deleted_at IS NULL";

impl Store {
    /// Returns at most `limit` datasets of a workflow before this one, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn datasets_of_workflow(
        &self,
        workflow: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredDataset>, StoreError> {
        let sql = format!(
            "{SELECT} AND d.workflow_id = $1 AND ($2 IS NULL OR d.id < $2) ORDER BY d.id DESC LIMIT $3"
        );
        Ok(diesel::sql_query(sql)
            .bind::<SqlUuid, _>(workflow)
            .bind::<Nullable<SqlUuid>, _>(before)
            .bind::<BigInt, _>(limit)
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns a workflow's dataset by id or name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn dataset(&self, workflow: Uuid, named: &str) -> Result<Option<StoredDataset>, StoreError> {
        find_dataset(&mut *self.connection().await?, workflow, named).await
    }
}

/// Returns a workflow's dataset by id or name.
pub(crate) async fn find_dataset(
    connection: &mut AsyncPgConnection,
    workflow: Uuid,
    named: &str,
) -> Result<Option<StoredDataset>, StoreError> {
    // The database cannot store NUL.
    if named.contains('\0') {
        return Ok(None);
    }
    let sql = format!("{SELECT} AND d.workflow_id = $1 AND (d.id = $2 OR d.name = $3)");
    Ok(diesel::sql_query(sql)
        .bind::<SqlUuid, _>(workflow)
        .bind::<Nullable<SqlUuid>, _>(Uuid::parse_str(named).ok())
        .bind::<Text, _>(named)
        .get_result(connection)
        .await
        .optional()?)
}

impl Store {
    /// Whether an id belongs to a named dataset, in any workspace.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_named_dataset(&self, id: Uuid) -> Result<bool, StoreError> {
        let found: Option<Uuid> = datasets::table
            .find(id)
            .filter(datasets::name.is_not_null())
            .select(datasets::id)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.is_some())
    }
}

impl Changes {
    /// Creates a dataset with its first version.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn make_dataset(&mut self, new: &NewDataset<'_>) -> Result<MadeDataset, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let known: i64 = datasets::table
            .filter(datasets::workflow_id.eq(new.workflow))
            .filter(datasets::name.is_not_null())
            .filter(datasets::deleted_at.is_null())
            .count()
            .get_result(connection)
            .await?;
        if known >= MOST_DATASETS {
            return Ok(MadeDataset::TooMany);
        }
        let made = diesel::insert_into(datasets::table)
            .values((
                datasets::id.eq(new.id),
                datasets::workspace_id.eq(new.workspace),
                datasets::workflow_id.eq(new.workflow),
                datasets::name.eq(new.name),
                datasets::created_at.eq(now),
            ))
            .on_conflict_do_nothing()
            .execute(connection)
            .await?;
        if made == 0 {
            return Ok(MadeDataset::NameTaken);
        }
        let version = NewVersion {
            workspace: new.workspace,
            dataset: new.id,
            number: 1,
            fingerprint: new.fingerprint,
            n_cases: new.cases.len(),
        };
        store_version(connection, &version, new.cases, now).await?;
        let made = latest(connection, new.id).await?;
        made.map(MadeDataset::Made).ok_or_else(|| StoreError::Corrupt("a dataset has no version".to_owned()))
    }

    /// Adds a version with these cases to a dataset; if they equal the latest version's cases, returns that
    /// version. `None`: the dataset was deleted in the meantime.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn add_dataset_version(
        &mut self,
        dataset: Uuid,
        fingerprint: &[u8],
        cases: &[NewCase],
    ) -> Result<Option<AddedVersion>, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let Some(before) = locked(connection, dataset).await? else { return Ok(None) };
        if before.fingerprint == fingerprint {
            return Ok(Some(AddedVersion { dataset: before, is_new: false, unchanged: cases.len() }));
        }
        let known: HashSet<Vec<u8>> = digests(connection, dataset).await?.into_iter().collect();
        let unchanged = cases.iter().filter(|case| known.contains(&case.digest[..])).count();
        let version = NewVersion {
            workspace: before.workspace_id,
            dataset,
            number: before.version + 1,
            fingerprint,
            n_cases: cases.len(),
        };
        store_version(connection, &version, cases, now).await?;
        let latest = latest(connection, dataset).await?;
        Ok(latest.map(|dataset| AddedVersion { dataset, is_new: true, unchanged }))
    }

    /// Appends a case to a dataset, as a new version. If the latest version has a case from the same run,
    /// nothing changes, unless this one `corrects` it: then it replaces that case. `fingerprint` computes the
    /// version's fingerprint from its case digests in order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn keep_case(
        &mut self,
        dataset: Uuid,
        case: NewCase,
        corrects: bool,
        fingerprint: impl FnOnce(&[Vec<u8>]) -> Vec<u8>,
    ) -> Result<KeptCase, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let Some(before) = locked(connection, dataset).await? else { return Ok(KeptCase::Deleted) };
        let known = entry_from_run(connection, &before, case.run).await?;
        if known.as_ref().is_some_and(|known| !corrects || known.digest == case.digest) {
            return Ok(KeptCase::Known(before.version));
        }
        if let Some(thread) = case.thread
            && self.living_threads(&[thread]).await?.is_empty()
        {
            return Ok(KeptCase::Erased);
        }
        let connection = &mut *self.connection;
        let size = content_bytes(connection, &before).await?;
        let bytes = size.saturating_add(i64::try_from(case.content.len()).unwrap_or(i64::MAX));
        if before.n_cases >= MOST_CASES || bytes > MOST_BYTES {
            return Ok(KeptCase::Full);
        }
        let mut digests = digests(connection, dataset).await?;
        let number = before.version + 1;
        let at = known.and_then(|known| usize::try_from(known.place).ok()).filter(|at| *at < digests.len());
        let place = at.unwrap_or(digests.len());
        if at.is_some() {
            remove_entry(connection, dataset, number, place).await?;
        }
        match digests.get_mut(place) {
            Some(digest) => *digest = case.digest.to_vec(),
            None => digests.push(case.digest.to_vec()),
        }
        let version = NewVersion {
            workspace: before.workspace_id,
            dataset,
            number,
            fingerprint: &fingerprint(&digests),
            n_cases: digests.len(),
        };
        store_appended(connection, &version, &[case], place, now).await?;
        Ok(KeptCase::Added(version.number))
    }

    /// Returns the threads that are not deleted, and locks them against erasure until this transaction ends: a
    /// copy of their turns is stored before the erasure, which empties it, or not at all.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn living_threads(&mut self, threads: &[ThreadId]) -> Result<BTreeSet<ThreadId>, StoreError> {
        let ids: Vec<Uuid> = threads.iter().map(|thread| thread.0).collect();
        let living: Vec<Uuid> = threads::table
            .filter(threads::id.eq_any(ids))
            .filter(threads::deleted_at.is_null())
            .filter(threads::erased_at.is_null())
            .order(threads::id)
            .select(threads::id)
            .for_share()
            .load(&mut *self.connection)
            .await?;
        Ok(living.into_iter().map(ThreadId).collect())
    }

    /// Deletes a dataset: it can no longer be found, but runs that use it keep its cases. `false` if it is
    /// already deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_dataset(&mut self, dataset: Uuid) -> Result<bool, StoreError> {
        let now = self.store.now();
        let deleted = diesel::update(datasets::table.find(dataset))
            .filter(datasets::deleted_at.is_null())
            .set(datasets::deleted_at.eq(now))
            .execute(&mut self.connection)
            .await?;
        Ok(deleted > 0)
    }
}

#[derive(QueryableByName)]
struct EntryRow {
    #[diesel(sql_type = Integer)]
    place: i32,
    #[diesel(sql_type = Bytea)]
    digest: Vec<u8>,
}

/// Locks a dataset against new versions from other transactions.
async fn locked(
    connection: &mut AsyncPgConnection,
    dataset: Uuid,
) -> Result<Option<StoredDataset>, StoreError> {
    let found: Option<Uuid> = datasets::table
        .find(dataset)
        .filter(datasets::deleted_at.is_null())
        .select(datasets::id)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    match found {
        Some(_) => latest(connection, dataset).await,
        None => Ok(None),
    }
}

/// The latest version's case digests in order.
async fn digests(connection: &mut AsyncPgConnection, dataset: Uuid) -> Result<Vec<Vec<u8>>, StoreError> {
    Ok(dataset_entries::table
        .filter(dataset_entries::dataset_id.eq(dataset))
        .filter(dataset_entries::until.is_null())
        .order(dataset_entries::place)
        .select(dataset_entries::digest)
        .load(connection)
        .await?)
}

/// The entry in the latest version whose case was copied from this run.
async fn entry_from_run(
    connection: &mut AsyncPgConnection,
    dataset: &StoredDataset,
    run: Option<Uuid>,
) -> Result<Option<EntryRow>, StoreError> {
    Ok(diesel::sql_query(
        "SELECT e.place, e.digest FROM dataset_entries e JOIN dataset_cases c ON c.digest = e.digest AND c.workspace_id = $2
         WHERE e.dataset_id = $1 AND e.until IS NULL AND c.run_id = $3 LIMIT 1",
    )
    .bind::<SqlUuid, _>(dataset.id)
    .bind::<SqlUuid, _>(dataset.workspace_id)
    .bind::<Nullable<SqlUuid>, _>(run)
    .get_result(connection)
    .await
    .optional()?)
}

/// The content bytes of all cases in the latest version.
async fn content_bytes(
    connection: &mut AsyncPgConnection,
    dataset: &StoredDataset,
) -> Result<i64, StoreError> {
    let size: Scalar<i64> = diesel::sql_query(
        "SELECT coalesce(sum(octet_length(c.content)), 0)::bigint AS bytes
         FROM dataset_entries e JOIN dataset_cases c ON c.digest = e.digest AND c.workspace_id = $2
         WHERE e.dataset_id = $1 AND e.until IS NULL",
    )
    .bind::<SqlUuid, _>(dataset.id)
    .bind::<SqlUuid, _>(dataset.workspace_id)
    .get_result(connection)
    .await?;
    Ok(size.0)
}

/// Removes the entry at `place` from version `number` on.
async fn remove_entry(
    connection: &mut AsyncPgConnection,
    dataset: Uuid,
    number: i32,
    place: usize,
) -> Result<(), StoreError> {
    diesel::update(dataset_entries::table)
        .filter(dataset_entries::dataset_id.eq(dataset))
        .filter(dataset_entries::until.is_null())
        .filter(dataset_entries::place.eq(i32::try_from(place).unwrap_or(i32::MAX)))
        .set(dataset_entries::until.eq(number))
        .execute(connection)
        .await?;
    Ok(())
}

async fn latest(
    connection: &mut AsyncPgConnection,
    dataset: Uuid,
) -> Result<Option<StoredDataset>, StoreError> {
    let sql = format!("{SELECT} AND d.id = $1");
    Ok(diesel::sql_query(sql).bind::<SqlUuid, _>(dataset).get_result(connection).await.optional()?)
}
