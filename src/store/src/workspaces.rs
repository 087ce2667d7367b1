//! Workspaces: who owns what.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::workspaces;
use crate::{Store, StoreError};

/// Slug of the workspace that exists from the first start.
pub const DEFAULT_WORKSPACE: &str = "default";

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
}
