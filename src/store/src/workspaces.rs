//! Workspaces: who owns what.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::workspaces;
use crate::{Store, StoreError};

/// Slug of the workspace that exists from the first start.
pub const DEFAULT_WORKSPACE: &str = "default";

/// A workspace's row.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = workspaces)]
pub struct StoredWorkspace {
    /// UUIDv7.
    pub id: Uuid,
    /// How a request names it.
    pub slug: String,
    /// Shown to people.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
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

    /// The workspace with this slug.
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

    /// The workspace with this id.
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

    /// The workspace with this slug.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspace_with_slug(&self, slug: &str) -> Result<Option<StoredWorkspace>, StoreError> {
        Ok(self.workspaces_named(&[slug.to_owned()]).await?.into_iter().find(|found| found.slug == slug))
    }

    /// The workspaces with these ids or slugs; a name that nothing has is left out.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspaces_named(&self, names: &[String]) -> Result<Vec<StoredWorkspace>, StoreError> {
        let ids: Vec<Uuid> = names.iter().filter_map(|name| Uuid::parse_str(name).ok()).collect();
        // PostgreSQL refuses the text instead of finding nothing.
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
