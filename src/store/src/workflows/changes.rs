//! Creates, changes, publishes and archives workflows.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Timestamptz};
use diesel_async::RunQueryDsl;
use serde_json::json;
use uuid::Uuid;
use wire::{ChatSettings, UpdateChatSettings};

use crate::error::HANDLE_KEY;
use crate::schema::workflows;
use crate::workflows::records::WorkflowRow;
use crate::{Changes, NewWorkflow, StoreError, StoredWorkflow};

/// Changes to a workflow; `None` leaves a member unchanged.
#[derive(Debug, Clone, Default)]
pub struct WorkflowChange {
    /// Its display name.
    pub name: Option<String>,
    /// Unique within the workspace.
    pub handle: Option<String>,
    /// Its description; `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// Search tags.
    pub tags: Option<Vec<String>>,
    /// Chat settings.
    pub chat: UpdateChatSettings,
    /// Maximum concurrent runs; `Some(None)` removes the limit.
    pub max_concurrent_runs: Option<Option<i32>>,
}

impl WorkflowChange {
    /// Applies the changes to a workflow.
    fn applied_to(self, mut workflow: StoredWorkflow) -> StoredWorkflow {
        set(&mut workflow.name, self.name);
        set(&mut workflow.handle, self.handle);
        set(&mut workflow.description, self.description);
        set(&mut workflow.tags, self.tags);
        let UpdateChatSettings {
            start_prompts,
            models,
            busy,
            uploads,
            transcription,
            title,
            limits,
            retention_days,
        } = self.chat;
        set(&mut workflow.chat.start_prompts, start_prompts);
        set(&mut workflow.chat.models, models);
        set(&mut workflow.chat.busy, busy);
        set(&mut workflow.chat.uploads, uploads);
        set(&mut workflow.chat.transcription, transcription);
        set(&mut workflow.chat.title, title);
        set(&mut workflow.chat.limits, limits);
        set(&mut workflow.chat.retention_days, retention_days);
        set(&mut workflow.max_concurrent_runs, self.max_concurrent_runs);
        workflow
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// The effect of publishing a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publication {
    /// It was private before.
    New,
    /// Its login requirement has changed.
    Changed,
    /// Nothing has changed.
    Same,
}

impl Changes {
    /// Creates a workflow.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when the workspace has a workflow with this handle; the transaction stays usable.
    pub async fn create_workflow(&mut self, new: NewWorkflow) -> Result<StoredWorkflow, StoreError> {
        let now = self.store.now();
        let row: Option<WorkflowRow> = diesel::insert_into(workflows::table)
            .values((
                workflows::id.eq(self.store.ids().uuid()?),
                workflows::workspace_id.eq(new.workspace_id),
                workflows::handle.eq(new.handle),
                workflows::name.eq(new.name),
                workflows::description.eq(new.description),
                workflows::tags.eq(json!(new.tags)),
                workflows::chat.eq(json!(ChatSettings::default())),
                workflows::created_at.eq(now),
                workflows::updated_at.eq(now),
            ))
            // A failed statement would abort the whole transaction.
            .on_conflict((workflows::workspace_id, workflows::handle))
            .do_nothing()
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        row.ok_or_else(|| StoreError::Taken(HANDLE_KEY.to_owned()))?.try_into()
    }

    /// Changes a workflow. If nothing changes, the row stays as it is, including the time of its last change.
    ///
    /// # Errors
    /// [`StoreError::Archived`] for an archived one; [`StoreError::Taken`] when another workflow in the
    /// workspace has the handle.
    pub async fn change_workflow(
        &mut self,
        id: Uuid,
        change: WorkflowChange,
    ) -> Result<StoredWorkflow, StoreError> {
        let row: WorkflowRow = workflows::table
            .find(id)
            .select(WorkflowRow::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await?;
        let old = StoredWorkflow::try_from(row)?;
        if old.archived_at.is_some() {
            return Err(StoreError::Archived);
        }
        let new = change.applied_to(old.clone());
        if new == old {
            return Ok(old);
        }
        self.touch(id);
        let row: WorkflowRow = diesel::update(workflows::table.find(id))
            .set((
                workflows::name.eq(&new.name),
                workflows::handle.eq(&new.handle),
                workflows::description.eq(&new.description),
                workflows::tags.eq(json!(new.tags)),
                workflows::chat.eq(json!(new.chat)),
                workflows::max_concurrent_runs.eq(new.max_concurrent_runs),
                workflows::updated_at.eq(self.store.now()),
            ))
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        row.try_into()
    }

    /// Publishes a workflow, or changes its chat's login requirement; `None` leaves the requirement unchanged.
    ///
    /// # Errors
    /// [`StoreError::Archived`] for an archived one.
    pub async fn publish_workflow(
        &mut self,
        id: Uuid,
        require_login: Option<bool>,
        by: Option<&str>,
    ) -> Result<(StoredWorkflow, Publication), StoreError> {
        let now = self.store.now();
        let was: Option<WorkflowRow> = workflows::table
            .find(id)
            .filter(workflows::archived_at.is_null())
            .select(WorkflowRow::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        let was = StoredWorkflow::try_from(was.ok_or(StoreError::Archived)?)?;
        let publication = match (was.is_public, require_login) {
            (false, _) => Publication::New,
            (true, Some(asked)) if asked != was.require_login => Publication::Changed,
            (true, _) => return Ok((was, Publication::Same)),
        };
        // The first publication's time and author stay while it is published.
        let row: WorkflowRow = diesel::update(workflows::table.find(id))
            .set((
                workflows::published_at.eq(diesel::dsl::case_when(
                    workflows::is_public,
                    workflows::published_at,
                )
                .otherwise(Some(now).into_sql::<Nullable<Timestamptz>>())),
                workflows::is_public.eq(true),
                // A private workflow requires no login: unpublishing resets the flag.
                require_login.map(|asked| workflows::require_login.eq(asked)),
                workflows::published_by.eq(diesel::dsl::case_when(
                    workflows::is_public,
                    workflows::published_by,
                )
                .otherwise(by.into_sql::<Nullable<Text>>())),
                workflows::updated_at.eq(now),
            ))
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        self.touch(id);
        Ok((row.try_into()?, publication))
    }

    /// Unpublishes a workflow; a private one stays unchanged. The flag says whether it was public until now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn unpublish_workflow(&mut self, id: Uuid) -> Result<(StoredWorkflow, bool), StoreError> {
        let changed = diesel::update(workflows::table.find(id))
            .filter(workflows::is_public)
            .set((
                workflows::is_public.eq(false),
                workflows::require_login.eq(false),
                workflows::published_at.eq(None::<DateTime<Utc>>),
                workflows::published_by.eq(None::<String>),
                workflows::updated_at.eq(self.store.now()),
            ))
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        self.changed_or_as_it_is(id, changed).await
    }

    /// Whether a workflow is public; locks it until the commit, so that this does not change.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn is_public(&mut self, id: Uuid) -> Result<bool, StoreError> {
        let found = workflows::table
            .find(id)
            .select(workflows::is_public)
            .for_update()
            .first(&mut *self.connection)
            .await?;
        Ok(found)
    }

    /// Archives and unpublishes a workflow; an archived one stays unchanged. Its handle stays taken. The flag
    /// says whether it was active until now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn archive_workflow(&mut self, id: Uuid) -> Result<(StoredWorkflow, bool), StoreError> {
        let now = self.store.now();
        let changed = diesel::update(workflows::table.find(id))
            .filter(workflows::archived_at.is_null())
            .set((
                workflows::archived_at.eq(Some(now)),
                workflows::is_public.eq(false),
                workflows::require_login.eq(false),
                workflows::published_at.eq(None::<DateTime<Utc>>),
                workflows::published_by.eq(None::<String>),
                workflows::updated_at.eq(now),
            ))
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        self.changed_or_as_it_is(id, changed).await
    }

    /// Restores an archived workflow; any other one stays unchanged. The flag says whether it was archived until now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn restore_workflow(&mut self, id: Uuid) -> Result<(StoredWorkflow, bool), StoreError> {
        let changed = diesel::update(workflows::table.find(id))
            .filter(workflows::archived_at.is_not_null())
            .set((
                workflows::archived_at.eq(None::<DateTime<Utc>>),
                workflows::updated_at.eq(self.store.now()),
            ))
            .returning(WorkflowRow::as_returning())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        self.changed_or_as_it_is(id, changed).await
    }

    async fn changed_or_as_it_is(
        &mut self,
        id: Uuid,
        changed: Option<WorkflowRow>,
    ) -> Result<(StoredWorkflow, bool), StoreError> {
        let was_changed = changed.is_some();
        self.touch(id);
        let row = match changed {
            Some(row) => row,
            None => {
                workflows::table
                    .find(id)
                    .select(WorkflowRow::as_select())
                    .first(&mut *self.connection)
                    .await?
            }
        };
        Ok((row.try_into()?, was_changed))
    }
}
