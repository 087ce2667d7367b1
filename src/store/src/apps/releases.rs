//! Releases: deployments with everything that they run and store, frozen; which one visitors of an app receive.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::schema::{app_acknowledgements, app_releases, apps};
use crate::{Changes, Store, StoreError};

/// A release. It does not change.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_releases)]
pub struct StoredRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// The workspace of the app.
    pub workspace_id: Uuid,
    /// Within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: Uuid,
    /// The release that a rollback repeats.
    pub source_release_id: Option<Uuid>,
    /// What it may do, as a digest.
    pub permission_revision: String,
    /// JSON: what it may do.
    pub permissions: String,
    /// JSON: the frozen bindings by name.
    pub bindings: String,
    /// JSON: the frozen collections by name.
    pub collections: String,
    /// Whether unknown paths of pages show the index.
    pub spa: bool,
    /// JSON: the origins that can show the app in a frame.
    pub frame_ancestors: String,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// The caller who published it.
    pub created_by: Option<String>,
    /// When it was published.
    pub created_at: DateTime<Utc>,
}

impl StoredRelease {
    /// What a list shows of it.
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

/// What a list shows of a release.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = app_releases)]
pub struct ListedRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// Within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: Uuid,
    /// The release that a rollback repeats.
    pub source_release_id: Option<Uuid>,
    /// What it may do, as a digest.
    pub permission_revision: String,
    /// Whether unknown paths of pages show the index.
    pub spa: bool,
    /// JSON: the origins that can show the app in a frame.
    pub frame_ancestors: String,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// The caller who published it.
    pub created_by: Option<String>,
    /// When it was published.
    pub created_at: DateTime<Utc>,
}

/// An acknowledgement of permissions.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_acknowledgements)]
pub struct Acknowledgement {
    /// The app.
    pub app_id: Uuid,
    /// What was acknowledged.
    pub permission_revision: String,
    /// The workspace of the app.
    pub workspace_id: Uuid,
    /// By which caller.
    pub acknowledged_by: Option<String>,
    /// When.
    pub acknowledged_at: DateTime<Utc>,
}

impl Changes {
    /// Stores a release of an app that is locked, under the next number, and makes it the active one. The number and the time of `new` are
    /// not read. No release of an app is older than the one before it.
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

    /// A release of an app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn release(&mut self, app: Uuid, id: Uuid) -> Result<Option<StoredRelease>, StoreError> {
        one(&mut self.connection, app, id).await
    }

    /// Stores that permissions were acknowledged; the first acknowledgement of a revision counts.
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

    /// Whether permissions of an app are acknowledged.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_acknowledged(&mut self, app: Uuid, revision: &str) -> Result<bool, StoreError> {
        let row = app_acknowledgements::table.find((app, revision));
        Ok(diesel::select(diesel::dsl::exists(row)).get_result(&mut *self.connection).await?)
    }
}

impl Store {
    /// The releases of an app with lower numbers, newest first, at most `limit`.
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

    /// A release of an app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn release(&self, app: Uuid, id: Uuid) -> Result<Option<StoredRelease>, StoreError> {
        one(&mut *self.connection().await?, app, id).await
    }

    /// These releases, of any apps.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn releases_of(&self, ids: &[Uuid]) -> Result<Vec<ListedRelease>, StoreError> {
        let rows =
            app_releases::table.filter(app_releases::id.eq_any(ids)).select(ListedRelease::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Whether permissions of an app are acknowledged.
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
