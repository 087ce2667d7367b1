//! Workflow rows.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::ChatSettings;

use crate::error::corrupt;
use crate::schema::{workflows, workspaces};
use crate::{Store, StoreError};

/// A workflow reference in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowRef {
    /// An id.
    Id(Uuid),
    /// A handle.
    Handle(String),
}

impl WorkflowRef {
    /// Parses a path segment: a valid UUID is an id, anything else a handle.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Uuid::parse_str(text).map_or_else(|_| Self::Handle(text.to_owned()), Self::Id)
    }
}

/// A workflow's row.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWorkflow {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Unique within the workspace.
    pub handle: String,
    /// Its display name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Search tags.
    pub tags: Vec<String>,
    /// Whether it is published.
    pub is_public: bool,
    /// Whether its chat requires a login.
    pub require_login: bool,
    /// When it was published.
    pub published_at: Option<DateTime<Utc>>,
    /// The caller who published it.
    pub published_by: Option<String>,
    /// Its chat settings.
    pub chat: ChatSettings,
    /// The latest version number.
    pub latest_version: Option<i32>,
    /// The version that requests without a version run; `None` also if no version has passed the gate.
    pub live_version: Option<i32>,
    /// When it was archived.
    pub archived_at: Option<DateTime<Utc>>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// Maximum concurrent runs; `None`: no limit.
    pub max_concurrent_runs: Option<i32>,
}

/// A workflow to create.
#[derive(Debug, Clone)]
pub struct NewWorkflow {
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Unique within the workspace.
    pub handle: String,
    /// Its display name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Search tags.
    pub tags: Vec<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = workflows)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct WorkflowRow {
    id: Uuid,
    workspace_id: Uuid,
    handle: String,
    name: String,
    description: Option<String>,
    tags: serde_json::Value,
    is_public: bool,
    require_login: bool,
    published_at: Option<DateTime<Utc>>,
    published_by: Option<String>,
    chat: serde_json::Value,
    latest_version: Option<i32>,
    live_version: Option<i32>,
    archived_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    max_concurrent_runs: Option<i32>,
}

impl TryFrom<WorkflowRow> for StoredWorkflow {
    type Error = StoreError;

    fn try_from(row: WorkflowRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            workspace_id: row.workspace_id,
            handle: row.handle,
            name: row.name,
            description: row.description,
            tags: serde_json::from_value(row.tags).map_err(|e| corrupt("tags", e))?,
            is_public: row.is_public,
            require_login: row.require_login,
            published_at: row.published_at,
            published_by: row.published_by,
            chat: serde_json::from_value(row.chat).map_err(|e| corrupt("chat settings", e))?,
            latest_version: row.latest_version,
            // 0: none of its versions has passed the gate.
            live_version: row.live_version.or(row.latest_version).filter(|live| *live > 0),
            archived_at: row.archived_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
            max_concurrent_runs: row.max_concurrent_runs,
        })
    }
}

impl Store {
    /// Returns a workflow by id or handle. A handle refers to `workspace`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workflow(
        &self,
        name: &WorkflowRef,
        workspace: Uuid,
    ) -> Result<Option<StoredWorkflow>, StoreError> {
        let query = workflows::table.select(WorkflowRow::as_select()).into_boxed();
        let query = match name {
            WorkflowRef::Id(id) => query.filter(workflows::id.eq(*id)),
            // PostgreSQL rejects such a text instead of finding nothing.
            WorkflowRef::Handle(handle) if handle.contains('\0') => return Ok(None),
            WorkflowRef::Handle(handle) => query
                .filter(workflows::workspace_id.eq(workspace))
                .filter(workflows::handle.eq(handle.clone())),
        };
        let row: Option<WorkflowRow> = query.first(&mut *self.connection().await?).await.optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Returns the workflows with a handle in all workspaces that are not deleted.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workflows_with_handle(&self, handle: &str) -> Result<Vec<StoredWorkflow>, StoreError> {
        // PostgreSQL rejects such a text instead of finding nothing.
        if handle.contains('\0') {
            return Ok(Vec::new());
        }
        let there = workspaces::table.filter(workspaces::deleted_at.is_null()).select(workspaces::id);
        let rows: Vec<WorkflowRow> = workflows::table
            .filter(workflows::handle.eq(handle))
            .filter(workflows::workspace_id.eq_any(there))
            .order(workflows::workspace_id)
            .select(WorkflowRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// Returns at most `limit` workflows in a workspace, newest first, created before `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workflows(
        &self,
        workspace: Uuid,
        with_archived: bool,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredWorkflow>, StoreError> {
        let mut query = workflows::table
            .filter(workflows::workspace_id.eq(workspace))
            .order(workflows::id.desc())
            .limit(limit)
            .select(WorkflowRow::as_select())
            .into_boxed();
        if !with_archived {
            query = query.filter(workflows::archived_at.is_null());
        }
        if let Some(before) = before {
            query = query.filter(workflows::id.lt(before));
        }
        let rows: Vec<WorkflowRow> = query.load(&mut *self.connection().await?).await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }
}
