//! Datasets with a name: made, given versions and cases, deleted, listed.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bytea, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use super::entries::{NewCase, NewVersion, store_appended, store_version};
use crate::schema::datasets;
use crate::{Changes, Store, StoreError};

/// Datasets that a workflow may have.
const MOST_DATASETS: i64 = 1_000;
/// Cases that a dataset may have, and bytes of all their contents: each use reads them all.
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
    /// The workspace of the workflow.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// Its name within the workflow.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// The latest version, from 1.
    #[diesel(sql_type = Integer)]
    pub version: i32,
    /// How many cases that version has.
    #[diesel(sql_type = Integer)]
    pub n_cases: i32,
    /// SHA-256 of the digests of its cases in their order.
    #[diesel(sql_type = Bytea)]
    pub fingerprint: Vec<u8>,
    /// When the dataset was made.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// When the version was made.
    #[diesel(sql_type = Timestamptz)]
    pub updated_at: DateTime<Utc>,
}

/// A dataset to make.
#[derive(Debug, Clone)]
pub struct NewDataset<'a> {
    /// UUIDv7.
    pub id: Uuid,
    /// The workspace of the workflow.
    pub workspace: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// Its name.
    pub name: &'a str,
    /// SHA-256 of the digests of its cases in their order.
    pub fingerprint: &'a [u8],
    /// In their order.
    pub cases: &'a [NewCase],
}

/// What became of the cases that were given for a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedVersion {
    /// The dataset with its latest version.
    pub dataset: StoredDataset,
    /// Whether that version was made now.
    pub is_new: bool,
    /// How many of the cases the version before has, too.
    pub unchanged: usize,
}

/// What became of a dataset that was to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeDataset {
    /// It is stored.
    Made(StoredDataset),
    /// Another dataset of the workflow has the name.
    NameTaken,
    /// The workflow has as many as it may.
    TooMany,
}

/// What became of a case that was to be added to a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCase {
    /// It is in this version, which is new.
    Added(i32),
    /// This version has a case of the same run already.
    Known(i32),
    /// The dataset has as many cases as it may, or as many bytes.
    Full,
    /// The thread of the run was deleted meanwhile.
    Erased,
    /// The dataset was deleted meanwhile.
    Deleted,
}

/// Datasets that are not deleted, with their latest versions; a condition follows.
const SELECT: &str =
    "SELECT d.id, d.workflow_id, d.workspace_id, d.name, v.number AS version, v.n_cases, v.fingerprint,
         d.created_at, v.created_at AS updated_at
     FROM datasets d JOIN LATERAL (SELECT number, n_cases, fingerprint, created_at FROM dataset_versions
         WHERE dataset_id = d.id ORDER BY number DESC LIMIT 1) v ON true
     WHERE d.name IS NOT NULL AND d.deleted_at IS NULL";

impl Store {
    /// The datasets of a workflow before this one, newest first, at most `limit`.
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

    /// A dataset of a workflow by its id or its name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn dataset(&self, workflow: Uuid, named: &str) -> Result<Option<StoredDataset>, StoreError> {
        find_dataset(&mut *self.connection().await?, workflow, named).await
    }
}

/// A dataset of a workflow by its id or its name.
pub(crate) async fn find_dataset(
    connection: &mut AsyncPgConnection,
    workflow: Uuid,
    named: &str,
) -> Result<Option<StoredDataset>, StoreError> {
    // The database takes no NUL.
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
    /// Whether an id is that of a dataset with a name, of any workspace.
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
    /// Makes a dataset with its first version.
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

    /// Gives a dataset a version with these cases; the cases of the latest version again are that version. `None`: it was deleted meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn add_dataset_version(
        &mut self,
        dataset: Uuid,
        (fingerprint, cases): (&[u8], &[NewCase]),
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

    /// Adds a case to the end of a dataset, as a version of its own. If the latest version has a case of the same run, nothing changes, unless
    /// this one `corrects` it: then it takes its place. `fingerprint` makes that of the version from the digests of its cases in their order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn keep_case(
        &mut self,
        dataset: Uuid,
        (case, corrects): (NewCase, bool),
        fingerprint: impl FnOnce(&[Vec<u8>]) -> Vec<u8>,
    ) -> Result<KeptCase, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let Some(before) = locked(connection, dataset).await? else { return Ok(KeptCase::Deleted) };
        let known: Option<Known> = diesel::sql_query(
            "SELECT e.place, e.digest FROM dataset_entries e JOIN dataset_cases c ON c.digest = e.digest AND c.workspace_id = $2
             WHERE e.dataset_id = $1 AND e.until IS NULL AND c.run_id = $3 LIMIT 1",
        )
        .bind::<SqlUuid, _>(dataset)
        .bind::<SqlUuid, _>(before.workspace_id)
        .bind::<Nullable<SqlUuid>, _>(case.run)
        .get_result(connection)
        .await
        .optional()?;
        if known.as_ref().is_some_and(|known| !corrects || known.digest == case.digest) {
            return Ok(KeptCase::Known(before.version));
        }
        if let Some(thread) = case.thread
            && self.living_threads(&[thread]).await?.is_empty()
        {
            return Ok(KeptCase::Erased);
        }
        let connection = &mut *self.connection;
        let size: Size = diesel::sql_query(
            "SELECT coalesce(sum(octet_length(c.content)), 0)::bigint AS bytes
             FROM dataset_entries e JOIN dataset_cases c ON c.digest = e.digest AND c.workspace_id = $2
             WHERE e.dataset_id = $1 AND e.until IS NULL",
        )
        .bind::<SqlUuid, _>(dataset)
        .bind::<SqlUuid, _>(before.workspace_id)
        .get_result(connection)
        .await?;
        let bytes = size.bytes.saturating_add(i64::try_from(case.content.len()).unwrap_or(i64::MAX));
        if before.n_cases >= MOST_CASES || bytes > MOST_BYTES {
            return Ok(KeptCase::Full);
        }
        let mut digests = digests(connection, dataset).await?;
        let number = before.version + 1;
        let at = known.and_then(|known| usize::try_from(known.place).ok()).filter(|at| *at < digests.len());
        let place = at.unwrap_or(digests.len());
        if at.is_some() {
            diesel::sql_query(
                "UPDATE dataset_entries SET until = $2 WHERE dataset_id = $1 AND until IS NULL AND place = $3",
            )
            .bind::<SqlUuid, _>(dataset)
            .bind::<Integer, _>(number)
            .bind::<Integer, _>(i32::try_from(place).unwrap_or(i32::MAX))
            .execute(connection)
            .await?;
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
        store_appended(connection, &version, (&[case], place), now).await?;
        Ok(KeptCase::Added(version.number))
    }

    /// Those of these threads that are not deleted. They cannot be erased before this transaction ends, so that a copy of their turns is
    /// stored before the erasure, which empties it, or not at all.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn living_threads(&mut self, threads: &[ThreadId]) -> Result<BTreeSet<ThreadId>, StoreError> {
        let ids: Vec<Uuid> = threads.iter().map(|thread| thread.0).collect();
        let living: Vec<Living> = diesel::sql_query(
            "SELECT id FROM threads WHERE id = ANY($1) AND deleted_at IS NULL AND erased_at IS NULL ORDER BY id FOR SHARE",
        )
        .bind::<Array<SqlUuid>, _>(&ids)
        .load(&mut *self.connection)
        .await?;
        Ok(living.into_iter().map(|row| ThreadId(row.id)).collect())
    }

    /// Deletes a dataset: it is not found any more, and runs that use it keep its cases. `false` if it was deleted before.
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
struct Known {
    #[diesel(sql_type = Integer)]
    place: i32,
    #[diesel(sql_type = Bytea)]
    digest: Vec<u8>,
}

#[derive(QueryableByName)]
struct Size {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

#[derive(QueryableByName)]
struct Living {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

#[derive(QueryableByName)]
struct Digest {
    #[diesel(sql_type = Bytea)]
    digest: Vec<u8>,
}

/// A dataset that no other transaction gives a version meanwhile.
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

/// The digests of the cases of the latest version, in their order.
async fn digests(connection: &mut AsyncPgConnection, dataset: Uuid) -> Result<Vec<Vec<u8>>, StoreError> {
    let digests: Vec<Digest> = diesel::sql_query(
        "SELECT digest FROM dataset_entries WHERE dataset_id = $1 AND until IS NULL ORDER BY place",
    )
    .bind::<SqlUuid, _>(dataset)
    .load(connection)
    .await?;
    Ok(digests.into_iter().map(|row| row.digest).collect())
}

async fn latest(
    connection: &mut AsyncPgConnection,
    dataset: Uuid,
) -> Result<Option<StoredDataset>, StoreError> {
    let sql = format!("{SELECT} AND d.id = $1");
    Ok(diesel::sql_query(sql).bind::<SqlUuid, _>(dataset).get_result(connection).await.optional()?)
}
