//! Changing what a workflow says of itself.

use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::schema::workflows;
use crate::workflows::Row;
use crate::{Store, StoreError, StoredWorkflow};

/// What to change about a workflow; what is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct WorkflowChange {
    /// Shown to people.
    pub name: Option<String>,
    /// Unique within the workspace.
    pub handle: Option<String>,
    /// What it does; `Some(None)` takes it away.
    pub description: Option<Option<String>>,
    /// For finding it.
    pub tags: Option<Vec<String>>,
    /// Prompts that its chat begins with.
    pub start_prompts: Option<Vec<Value>>,
    /// Models that its chat offers.
    pub models: Option<Vec<Value>>,
}

impl WorkflowChange {
    /// The workflow as it will be.
    fn applied_to(self, mut workflow: StoredWorkflow) -> StoredWorkflow {
        set(&mut workflow.name, self.name);
        set(&mut workflow.handle, self.handle);
        set(&mut workflow.description, self.description);
        set(&mut workflow.tags, self.tags);
        set(&mut workflow.chat.start_prompts, self.start_prompts);
        set(&mut workflow.chat.models, self.models);
        workflow
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Store {
    /// Changes a workflow. What changes nothing leaves it as it is, the time of its last change included.
    ///
    /// # Errors
    /// [`StoreError::Archived`] for an archived one; [`StoreError::Taken`] when the workspace has another one with the
    /// handle.
    pub async fn change_workflow(
        &self,
        id: Uuid,
        change: WorkflowChange,
    ) -> Result<StoredWorkflow, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let row: Row =
                    workflows::table.find(id).select(Row::as_select()).for_update().first(connection).await?;
                let old = StoredWorkflow::try_from(row)?;
                if old.archived_at.is_some() {
                    return Err(StoreError::Archived);
                }
                let new = change.applied_to(old.clone());
                if new == old {
                    return Ok(old);
                }
                let row: Row = diesel::update(workflows::table.find(id))
                    .set((
                        workflows::name.eq(&new.name),
                        workflows::handle.eq(&new.handle),
                        workflows::description.eq(&new.description),
                        workflows::tags.eq(json!(new.tags)),
                        workflows::chat.eq(json!(new.chat)),
                        workflows::updated_at.eq(now),
                    ))
                    .returning(Row::as_returning())
                    .get_result(connection)
                    .await?;
                row.try_into()
            })
            .await
    }
}
