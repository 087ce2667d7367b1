//! Releases: immutable deployments with their bindings and collections; an app's visitors receive its active
//! release.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::schema::{app_acknowledgements, app_releases, apps};
use crate::{Changes, Store, StoreError};

/// A release. It is immutable.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_releases)]
pub struct StoredRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// The app's workspace.
    pub workspace_id: Uuid,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: Uuid,
    /// The release that a rollback repeats.
    pub source_release_id: Option<Uuid>,
    /// The digest of its permissions.
    pub permission_revision: String,
    /// Its permissions, JSON.
    pub permissions: String,
    /// JSON: the frozen bindings by name.
    pub bindings: String,
    /// JSON: the frozen collections by name.
    pub collections: String,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// JSON: the origins that may embed the app in a frame.
    pub frame_ancestors: String,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// The caller who published it.
    pub created_by: Option<String>,
    /// When it was published.
    pub created_at: DateTime<Utc>,
}

impl StoredRelease {
    /// Returns its data in lists.
    #[must_use]
    pub fn listed(&self) -> ListedRelease {
        ListedRelease {
            id: self.id,
            app_id: self.app_id,
            number: self.number,
            deployment_id: self.deployment_id,
            source_release_id: self.source_release_id,
            permission_revision: self.permission_revision.clone(),
            spa: self.spa,
            frame_ancestors: self.frame_ancestors.clone(),
            wasm: self.wasm,
            created_by: self.created_by.clone(),
            created_at: self.created_at,
        }
    }
}

/// A release in a list.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = app_releases)]
pub struct ListedRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: Uuid,
    /// The release that a rollback repeats.
    pub source_release_id: Option<Uuid>,
    /// The digest of its permissions.
    pub permission_revision: String,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// JSON: the origins that may embed the app in a frame.
    pub frame_ancestors: String,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// The caller who published it.
    pub created_by: Option<String>,
    /// When it was published.
    pub created_at: DateTime<Utc>,
}

/// A permission acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_acknowledgements)]
pub struct Acknowledgement {
    /// The app.
    pub app_id: Uuid,
    /// The acknowledged revision.
    pub permission_revision: String,
    /// The app's workspace.
    pub workspace_id: Uuid,
    /// The caller who acknowledged it.
    pub acknowledged_by: Option<String>,
    /// When it was acknowledged.
    pub acknowledged_at: DateTime<Utc>,
}

impl Changes {
    /// Stores a release in a locked app, under the next number, and makes it active. Ignores the number and the
    /// time in `new`. Creation times never decrease within an app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn create_release(&mut self, new: StoredRelease) -> Result<StoredRelease, StoreError> {
        let last: Option<(i32, DateTime<Utc>)> = app_releases::table
            .filter(app_releases::app_id.eq(new.app_id))
            .order(app_releases::number.desc())
            .select((app_releases::number, app_releases::created_at))
            .first(&mut *self.connection)
            .await
            .optional()?;
        let now = self.store.now();
        let new = match last {
            Some((number, at)) => {
                StoredRelease { number: number.saturating_add(1), created_at: now.max(at), ..new }
            }
            None => StoredRelease { number: 1, created_at: now, ..new },
        };
        let made: StoredRelease = diesel::insert_into(app_releases::table)
            .values(new)
            .returning(StoredRelease::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        diesel::update(apps::table.find(made.app_id))
            .set(apps::active_release.eq(Some(made.id)))
            .execute(&mut *self.connection)
            .await?;
        Ok(made)
    }

    /// Returns an app's release.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn release(&mut self, app: Uuid, id: Uuid) -> Result<Option<StoredRelease>, StoreError> {
        one(&mut self.connection, app, id).await
    }

    /// Stores a permission acknowledgement; only the first one for a revision counts.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn acknowledge(&mut self, new: Acknowledgement) -> Result<Acknowledgement, StoreError> {
        let (app, revision) = (new.app_id, new.permission_revision.clone());
        diesel::insert_into(app_acknowledgements::table)
            .values(new)
            .on_conflict_do_nothing()
            .execute(&mut *self.connection)
            .await?;
        let stored = app_acknowledgements::table
            .find((app, revision))
            .select(Acknowledgement::as_select())
            .first(&mut *self.connection)
            .await?;
        Ok(stored)
    }

    /// Whether an app's permissions are acknowledged.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_acknowledged(&mut self, app: Uuid, revision: &str) -> Result<bool, StoreError> {
        let row = app_acknowledgements::table.find((app, revision));
        Ok(diesel::select(diesel::dsl::exists(row)).get_result(&mut *self.connection).await?)
    }
}

impl Store {
    /// Returns at most `limit` releases of an app with lower numbers, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn releases(
        &self,
        app: Uuid,
        before: Option<i32>,
        limit: i64,
    ) -> Result<Vec<ListedRelease>, StoreError> {
        let mut rows = app_releases::table.filter(app_releases::app_id.eq(app)).into_boxed();
        if let Some(before) = before {
            rows = rows.filter(app_releases::number.lt(before));
        }
        let rows = rows.order(app_releases::number.desc()).limit(limit).select(ListedRelease::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Returns an app's release.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn release(&self, app: Uuid, id: Uuid) -> Result<Option<StoredRelease>, StoreError> {
        one(&mut *self.connection().await?, app, id).await
    }

    /// Returns these releases, from any app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn releases_of(&self, ids: &[Uuid]) -> Result<Vec<ListedRelease>, StoreError> {
        let rows =
            app_releases::table.filter(app_releases::id.eq_any(ids)).select(ListedRelease::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Whether an app's permissions are acknowledged.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_acknowledged(&self, app: Uuid, revision: &str) -> Result<bool, StoreError> {
        let row = app_acknowledgements::table.find((app, revision));
        Ok(diesel::select(diesel::dsl::exists(row)).get_result(&mut *self.connection().await?).await?)
    }
}

async fn one(
    connection: &mut AsyncPgConnection,
    app: Uuid,
    id: Uuid,
) -> Result<Option<StoredRelease>, StoreError> {
    let found = app_releases::table
        .find(id)
        .filter(app_releases::app_id.eq(app))
        .select(StoredRelease::as_select())
        .first(connection)
        .await
        .optional()?;
    Ok(found)
}
