//! Frozen workflow versions.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::dsl::not;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};
use diesel_async::RunQueryDsl;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::database::connect::SessionKind;
use crate::error::corrupt;
use crate::schema::{workflow_versions, workflows};
use crate::{Changes, Store, StoreError};

/// Retention of a draft that no run needs.
const DRAFTS_KEPT: TimeDelta = TimeDelta::hours(24);
/// Margin before its expiry in which a draft is not reused.
const DRAFT_MARGIN: TimeDelta = TimeDelta::hours(1);
/// Maximum drafts deleted per batch.
const DRAFTS_AT_ONCE: i64 = 200;

/// A version's row.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// Its number within the workflow, from 1; `None` for a draft.
    pub number: Option<i32>,
    /// SHA-256 of graph and runnable config; in rows from older builds, only of the graph.
    pub digest: Vec<u8>,
    /// The graph.
    pub graph: Value,
    /// A run's prompts and settings.
    pub runnable_config: Option<Map<String, Value>>,
    /// Free-form data from the caller.
    pub metadata: Map<String, Value>,
    /// Release notes.
    pub notes: Option<String>,
    /// The caller who saved it.
    pub created_by: Option<String>,
    /// When it was saved.
    pub created_at: DateTime<Utc>,
}

/// A version's row without the large columns.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = workflow_versions)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct ListedVersion {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// Its number within the workflow, from 1; `None` for a draft.
    pub number: Option<i32>,
    /// SHA-256 of graph and runnable config; in rows from older builds, only of the graph.
    pub digest: Vec<u8>,
    /// Release notes.
    pub notes: Option<String>,
    /// The caller who saved it.
    pub created_by: Option<String>,
    /// When it was saved.
    pub created_at: DateTime<Utc>,
}

/// A version to save.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// Its workflow.
    pub workflow_id: Uuid,
    /// SHA-256 of graph and runnable config.
    pub digest: Vec<u8>,
    /// The graph.
    pub graph: Value,
    /// A run's prompts and settings.
    pub runnable_config: Option<Map<String, Value>>,
    /// Free-form data from the caller.
    pub metadata: Map<String, Value>,
    /// Release notes.
    pub notes: Option<String>,
    /// The caller who saves it.
    pub created_by: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = workflow_versions)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct VersionRow {
    id: Uuid,
    workflow_id: Uuid,
    number: Option<i32>,
    digest: Vec<u8>,
    graph: Value,
    runnable_config: Option<Value>,
    metadata: Value,
    notes: Option<String>,
    created_by: Option<String>,
    created_at: DateTime<Utc>,
}

impl TryFrom<VersionRow> for StoredVersion {
    type Error = StoreError;

    fn try_from(row: VersionRow) -> Result<Self, StoreError> {
        let object = |value| serde_json::from_value(value).map_err(|e| corrupt("version", e));
        Ok(Self {
            id: row.id,
            workflow_id: row.workflow_id,
            number: row.number,
            digest: row.digest,
            graph: row.graph,
            runnable_config: row.runnable_config.map(object).transpose()?,
            metadata: object(row.metadata)?,
            notes: row.notes,
            created_by: row.created_by,
            created_at: row.created_at,
        })
    }
}

/// A workflow's versions, locked by this transaction.
struct LockedVersions {
    latest: Option<i32>,
    live: Option<i32>,
    /// The latest version, and the SHA-256 of its graph and runnable config.
    newest: Option<(StoredVersion, Vec<u8>)>,
}

impl Changes {
    /// Returns the latest version. Locks the workflow until the end of the transaction, so a save in it has the
    /// next number.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is archived.
    pub async fn newest_version(&mut self, workflow: Uuid) -> Result<Option<StoredVersion>, StoreError> {
        Ok(self.lock_newest(workflow).await?.newest.map(|(version, _)| version))
    }

    /// Saves a version; if the content equals the latest version's, returns that version and `false`.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when its workflow is archived.
    pub async fn save_version(&mut self, new: NewVersion) -> Result<(StoredVersion, bool), StoreError> {
        let now = self.store.now();
        let LockedVersions { latest, live, newest } = self.lock_newest(new.workflow_id).await?;
        if let Some((newest, identity)) = newest
            && identity == new.digest
        {
            return Ok((newest, false));
        }
        let number = latest.unwrap_or(0) + 1;
        let workflow = new.workflow_id;
        self.touch(workflow);
        let version = self.insert_version(new, Some(number), now).await?;
        let live = self.live_after_saving(workflow, number, latest, live).await?;
        diesel::update(workflows::table.find(workflow))
            .set((
                workflows::latest_version.eq(number),
                workflows::live_version.eq(live),
                workflows::updated_at.eq(now),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok((version, true))
    }

    /// Locks a workflow: concurrent saves are serialized, so numbers have no gaps.
    async fn lock_newest(&mut self, workflow: Uuid) -> Result<LockedVersions, StoreError> {
        let connection = &mut *self.connection;
        let (latest, live, archived_at): (Option<i32>, Option<i32>, Option<DateTime<Utc>>) = workflows::table
            .find(workflow)
            .select((workflows::latest_version, workflows::live_version, workflows::archived_at))
            .for_update()
            .first(connection)
            .await?;
        if archived_at.is_some() {
            return Err(StoreError::Archived);
        }
        let newest: Option<(VersionRow, Vec<u8>)> = workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.eq(latest))
            .select((VersionRow::as_select(), workflow_versions::identity))
            .first(connection)
            .await
            .optional()?;
        let newest = newest.map(|(row, identity)| Ok::<_, StoreError>((row.try_into()?, identity)));
        Ok(LockedVersions { latest, live, newest: newest.transpose()? })
    }

    /// Inserts a version. `number`: `None` for a draft.
    async fn insert_version(
        &mut self,
        new: NewVersion,
        number: Option<i32>,
        now: DateTime<Utc>,
    ) -> Result<StoredVersion, StoreError> {
        let row: VersionRow = diesel::insert_into(workflow_versions::table)
            .values((
                workflow_versions::id.eq(self.store.ids().uuid()?),
                workflow_versions::workflow_id.eq(new.workflow_id),
                workflow_versions::number.eq(number),
                workflow_versions::draft.eq(number.is_none()),
                workflow_versions::digest.eq(&new.digest),
                workflow_versions::identity.eq(&new.digest),
                workflow_versions::graph.eq(&new.graph),
                workflow_versions::runnable_config.eq(new.runnable_config.map(Value::Object)),
                workflow_versions::metadata.eq(Value::Object(new.metadata)),
                workflow_versions::notes.eq(&new.notes),
                workflow_versions::created_by.eq(&new.created_by),
                workflow_versions::created_at.eq(now),
            ))
            .returning(VersionRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        row.try_into()
    }

    /// Stores a request's graph as a draft. If a numbered version or a draft has the same content, returns that
    /// one; among numbered versions prefers the live one, then the newest.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when its workflow is archived.
    pub async fn save_draft(&mut self, new: NewVersion) -> Result<StoredVersion, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let (live, archived_at): (Option<i32>, Option<DateTime<Utc>>) = workflows::table
            .find(new.workflow_id)
            .select((workflows::live_version, workflows::archived_at))
            .for_share()
            .first(connection)
            .await?;
        if archived_at.is_some() {
            return Err(StoreError::Archived);
        }
        // An older draft may be deleted before the run that needs it is stored.
        let lasts = workflow_versions::created_at.gt(now - DRAFTS_KEPT + DRAFT_MARGIN);
        let same: Option<VersionRow> = workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(new.workflow_id))
            .filter(workflow_versions::identity.eq(&new.digest))
            .filter(not(workflow_versions::draft).or(lasts))
            .order((
                workflow_versions::draft,
                workflow_versions::number.is_distinct_from(live),
                workflow_versions::id.desc(),
            ))
            .select(VersionRow::as_select())
            .first(connection)
            .await
            .optional()?;
        if let Some(same) = same {
            return same.try_into();
        }
        self.insert_version(new, None, now).await
    }
}

impl Store {
    /// Returns at most `limit` versions and drafts of a workflow, newest first, created before `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn versions_and_drafts(
        &self,
        workflow: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<ListedVersion>, StoreError> {
        Ok(workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::id.lt(before.unwrap_or(Uuid::max())))
            .order(workflow_versions::id.desc())
            .limit(limit)
            .select(ListedVersion::as_select())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Deletes drafts that are a day old and that no run needs; returns whether more may be left.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_drafts(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        // The service's role has no right to delete versions.
        let mut connection = self.connector().open(SessionKind::Owner).await?;
        let deleted = diesel::sql_query(
            "DELETE FROM workflow_versions WHERE id IN (
                 SELECT v.id FROM workflow_versions v
                 WHERE v.draft AND v.created_at < $1
                   AND NOT EXISTS (SELECT FROM runs r WHERE r.workflow_id = v.workflow_id AND r.version_id = v.id)
                 LIMIT $2)",
        )
        .bind::<Timestamptz, _>(now - DRAFTS_KEPT)
        .bind::<BigInt, _>(DRAFTS_AT_ONCE)
        .execute(&mut connection)
        .await?;
        Ok(i64::try_from(deleted).is_ok_and(|deleted| deleted == DRAFTS_AT_ONCE))
    }

    /// Returns at most `limit` versions of a workflow, newest first, with a number below `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn versions(
        &self,
        workflow: Uuid,
        before: Option<i32>,
        limit: i64,
    ) -> Result<Vec<ListedVersion>, StoreError> {
        let before = before.unwrap_or(i32::MAX);
        Ok(workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.lt(before))
            .order(workflow_versions::number.desc())
            .limit(limit)
            .select(ListedVersion::as_select())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns a version by number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn version(&self, workflow: Uuid, number: i32) -> Result<Option<StoredVersion>, StoreError> {
        let row: Option<VersionRow> = workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.eq(number))
            .select(VersionRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Returns a version by id.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, StoreError> {
        let row: Option<VersionRow> = workflow_versions::table
            .find(id)
            .select(VersionRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }
}
