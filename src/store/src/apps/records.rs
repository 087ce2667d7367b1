//! App rows: created, changed, deleted, found by id or alias.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::retention::ALIAS_HELD;
use crate::schema::apps;
use crate::{Changes, Store, StoreError};

/// An app that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = apps)]
pub struct StoredApp {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// The first label of its host; unique in the installation.
    pub alias: String,
    /// Its display name.
    pub name: String,
    /// `public` or `members`.
    pub access: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// The release that its visitors receive.
    pub active_release: Option<Uuid>,
}

/// An app to create.
#[derive(Debug, Clone, Copy)]
pub struct NewApp<'a> {
    /// Its workspace.
    pub workspace: Uuid,
    /// The first label of its host.
    pub alias: &'a str,
    /// Its display name.
    pub name: &'a str,
    /// `public` or `members`.
    pub access: &'a str,
}

/// Changes to an app; `None` leaves a member unchanged.
#[derive(Debug, Clone, Default, AsChangeset)]
#[diesel(table_name = apps)]
pub struct AppChange {
    /// Its display name.
    pub name: Option<String>,
    /// `public` or `members`.
    pub access: Option<String>,
}

impl Changes {
    /// Creates an app.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if an app has the alias, or a deleted app still holds it.
    pub async fn create_app(&mut self, new: NewApp<'_>) -> Result<StoredApp, StoreError> {
        let now = self.store.now();
        diesel::update(apps::table)
            .filter(apps::alias.eq(new.alias))
            .filter(apps::holds_alias)
            .filter(apps::deleted_at.le(now - ALIAS_HELD))
            .set(apps::holds_alias.eq(false))
            .execute(&mut *self.connection)
            .await?;
        let made = diesel::insert_into(apps::table)
            .values((
                apps::id.eq(self.store.ids().uuid()?),
                apps::workspace_id.eq(new.workspace),
                apps::alias.eq(new.alias),
                apps::holds_alias.eq(true),
                apps::name.eq(new.name),
                apps::access.eq(new.access),
                apps::created_at.eq(now),
                apps::updated_at.eq(now),
            ))
            .returning(StoredApp::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(made)
    }

    /// Locks an app against other changes until the commit. Returns `None` if it is deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn lock_app(&mut self, id: Uuid) -> Result<Option<StoredApp>, StoreError> {
        let found = apps::table
            .find(id)
            .filter(apps::deleted_at.is_null())
            .select(StoredApp::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found)
    }

    /// Changes an app. Returns `None` if it is deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn change_app(&mut self, id: Uuid, change: AppChange) -> Result<Option<StoredApp>, StoreError> {
        let changed = diesel::update(apps::table.find(id))
            .filter(apps::deleted_at.is_null())
            .set((change, apps::updated_at.eq(self.store.now())))
            .returning(StoredApp::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        Ok(changed)
    }

    /// Deletes an app; its alias is held for [`ALIAS_HELD`]. Returns `false` if it is already deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_app(&mut self, id: Uuid) -> Result<bool, StoreError> {
        let deleted = diesel::update(apps::table.find(id))
            .filter(apps::deleted_at.is_null())
            .set(apps::deleted_at.eq(Some(self.store.now())))
            .execute(&mut *self.connection)
            .await?;
        Ok(deleted > 0)
    }

    /// Deletes all apps in a workspace, and returns them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_apps_of(&mut self, workspace: Uuid) -> Result<Vec<StoredApp>, StoreError> {
        let deleted = diesel::update(apps::table)
            .filter(apps::workspace_id.eq(workspace))
            .filter(apps::deleted_at.is_null())
            .set(apps::deleted_at.eq(Some(self.store.now())))
            .returning(StoredApp::as_returning())
            .get_results(&mut *self.connection)
            .await?;
        Ok(deleted)
    }
}

impl Store {
    /// Returns at most `limit` apps in a workspace before this one, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn apps(
        &self,
        workspace: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredApp>, StoreError> {
        let mut rows = apps::table
            .filter(apps::workspace_id.eq(workspace))
            .filter(apps::deleted_at.is_null())
            .into_boxed();
        if let Some(before) = before {
            rows = rows.filter(apps::id.lt(before));
        }
        let rows = rows.order(apps::id.desc()).limit(limit).select(StoredApp::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Returns the app with this id or alias.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn app(&self, name: &str) -> Result<Option<StoredApp>, StoreError> {
        self.named_app(name, false).await
    }

    /// Returns the last deleted app with this id or alias, while its row is kept.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn deleted_app(&self, name: &str) -> Result<Option<StoredApp>, StoreError> {
        self.named_app(name, true).await
    }

    async fn named_app(&self, name: &str, is_deleted: bool) -> Result<Option<StoredApp>, StoreError> {
        // PostgreSQL rejects such a text instead of finding nothing.
        if name.contains('\0') {
            return Ok(None);
        }
        let rows = apps::table.into_boxed();
        let rows = if is_deleted {
            rows.filter(apps::deleted_at.is_not_null())
        } else {
            rows.filter(apps::deleted_at.is_null())
        };
        let rows = match Uuid::parse_str(name) {
            Ok(id) => rows.filter(apps::id.eq(id)),
            Err(_) => rows.filter(apps::alias.eq(name)),
        };
        let rows = rows.order(apps::id.desc()).select(StoredApp::as_select());
        Ok(rows.first(&mut *self.connection().await?).await.optional()?)
    }
}
