//! Workspaces.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{credentials, workflows, workspace_members, workspaces};
use crate::{Changes, Store, StoreError};

/// The slug of the workspace that exists from the first start.
pub const DEFAULT_WORKSPACE: &str = "default";

/// A workspace's row.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = workspaces)]
pub struct StoredWorkspace {
    /// UUIDv7.
    pub id: Uuid,
    /// Its name in requests.
    pub slug: String,
    /// Its display name.
    pub name: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Retention of model replies after a training ends: `keep` or `drop`.
    pub training_calls: String,
}

/// Changes to a workspace; `None` leaves a member unchanged.
#[derive(Debug, Clone, Default, AsChangeset)]
#[diesel(table_name = workspaces)]
pub struct WorkspaceChange {
    /// Its display name.
    pub name: Option<String>,
    /// `keep` or `drop`.
    pub training_calls: Option<String>,
}

/// A workspace to create.
#[derive(Debug, Clone, Copy)]
pub struct NewWorkspace<'a> {
    /// Its permanent name in requests: a deleted workspace keeps its slug.
    pub slug: &'a str,
    /// Its display name.
    pub name: &'a str,
    /// The owner, if a user creates it.
    pub owner: Option<Uuid>,
}

impl Changes {
    /// Creates a workspace.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when a workspace, possibly a deleted one, has this slug.
    pub async fn create_workspace(&mut self, new: NewWorkspace<'_>) -> Result<StoredWorkspace, StoreError> {
        let now = self.store.now();
        let made: StoredWorkspace = diesel::insert_into(workspaces::table)
            .values((
                workspaces::id.eq(self.store.ids().uuid()?),
                workspaces::slug.eq(new.slug),
                workspaces::name.eq(new.name),
                workspaces::created_at.eq(now),
            ))
            .returning(StoredWorkspace::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        if let Some(owner) = new.owner {
            diesel::insert_into(workspace_members::table)
                .values((
                    workspace_members::workspace_id.eq(made.id),
                    workspace_members::user_id.eq(owner),
                    workspace_members::role.eq("owner"),
                    workspace_members::created_at.eq(now),
                ))
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(made)
    }

    /// Changes a workspace; `None` if it is not found. The change must not be empty.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn update_workspace(
        &mut self,
        id: Uuid,
        change: WorkspaceChange,
    ) -> Result<Option<StoredWorkspace>, StoreError> {
        let changed = diesel::update(workspaces::table.find(id))
            .filter(workspaces::deleted_at.is_null())
            .set(change)
            .returning(StoredWorkspace::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        Ok(changed)
    }

    /// Locks a workspace against deletion until the commit; `false`: it is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn hold_workspace(&mut self, id: Uuid) -> Result<bool, StoreError> {
        let found: Option<Uuid> = workspaces::table
            .find(id)
            .filter(workspaces::deleted_at.is_null())
            .select(workspaces::id)
            .for_share()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found.is_some())
    }

    /// Deletes a workspace, archives its workflows and deletes its credentials; the row stays, so that its slug
    /// is never reused. Returns the archived workflows; `None` if the workspace is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn delete_workspace(&mut self, id: Uuid) -> Result<Option<Vec<Uuid>>, StoreError> {
        let deleted = diesel::update(workspaces::table.find(id))
            .filter(workspaces::deleted_at.is_null())
            .set(workspaces::deleted_at.eq(Some(self.store.now())))
            .execute(&mut *self.connection)
            .await?;
        if deleted == 0 {
            return Ok(None);
        }
        let open: Vec<Uuid> = workflows::table
            .filter(workflows::workspace_id.eq(id))
            .filter(workflows::archived_at.is_null())
            .select(workflows::id)
            .load(&mut *self.connection)
            .await?;
        for workflow in &open {
            self.archive_workflow(*workflow).await?;
        }
        diesel::delete(credentials::table.filter(credentials::workspace_id.eq(id)))
            .execute(&mut *self.connection)
            .await?;
        Ok(Some(open))
    }
}

impl Store {
    pub(crate) async fn ensure_default_workspace(&self) -> Result<(), StoreError> {
        diesel::insert_into(workspaces::table)
            .values((
                workspaces::id.eq(self.ids().uuid()?),
                workspaces::slug.eq(DEFAULT_WORKSPACE),
                workspaces::name.eq("Default"),
                workspaces::created_at.eq(self.now()),
            ))
            .on_conflict_do_nothing()
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Returns the id of the workspace with this slug.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspace_id(&self, slug: &str) -> Result<Option<Uuid>, StoreError> {
        let found = workspaces::table
            .filter(workspaces::slug.eq(slug))
            .filter(workspaces::deleted_at.is_null())
            .select(workspaces::id)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Returns a workspace.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspace(&self, id: Uuid) -> Result<Option<StoredWorkspace>, StoreError> {
        let found = workspaces::table
            .find(id)
            .filter(workspaces::deleted_at.is_null())
            .select(StoredWorkspace::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Returns workspaces, newest first; with `only`, those with these ids.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspaces(
        &self,
        only: Option<Vec<Uuid>>,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredWorkspace>, StoreError> {
        let mut rows = workspaces::table.filter(workspaces::deleted_at.is_null()).into_boxed();
        if let Some(only) = only {
            rows = rows.filter(workspaces::id.eq_any(only));
        }
        if let Some(before) = before {
            rows = rows.filter(workspaces::id.lt(before));
        }
        let rows = rows.order(workspaces::id.desc()).limit(limit).select(StoredWorkspace::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Returns the workspace with this slug.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspace_with_slug(&self, slug: &str) -> Result<Option<StoredWorkspace>, StoreError> {
        Ok(self.workspaces_named(&[slug.to_owned()]).await?.into_iter().find(|found| found.slug == slug))
    }

    /// Returns the workspaces with these ids or slugs; omits unknown names.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspaces_named(&self, names: &[String]) -> Result<Vec<StoredWorkspace>, StoreError> {
        let ids: Vec<Uuid> = names.iter().filter_map(|name| Uuid::parse_str(name).ok()).collect();
        // PostgreSQL rejects such a text instead of finding nothing.
        let slugs: Vec<&String> = names.iter().filter(|name| !name.contains('\0')).collect();
        let found = workspaces::table
            .filter(workspaces::deleted_at.is_null())
            .filter(workspaces::id.eq_any(ids).or(workspaces::slug.eq_any(slugs)))
            .order(workspaces::id)
            .select(StoredWorkspace::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }
}
