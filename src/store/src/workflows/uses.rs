//! Uses of a workflow by apps and by other workflows.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Json, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use serde_json::Value;

use super::StoredWorkflow;
use crate::{Store, StoreError};

/// Maximum rows per query.
const MOST: i64 = 1_000;

/// An app binding that runs a workflow.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct BindingUse {
    /// The app's alias.
    #[diesel(sql_type = Text)]
    pub alias: String,
    /// The name of the binding.
    #[diesel(sql_type = Text)]
    pub binding: String,
}

/// A workflow's live version.
#[derive(Debug, QueryableByName)]
pub struct LiveGraph {
    /// The workflow's handle.
    #[diesel(sql_type = Text)]
    pub handle: String,
    /// The graph.
    #[diesel(sql_type = Json)]
    pub graph: Value,
}

impl Store {
    /// Returns the bindings of active releases and of apps without a manifest that run a workflow, directly or
    /// through another one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn bindings_to(&self, workflow: &StoredWorkflow) -> Result<Vec<BindingUse>, StoreError> {
        const SQL: &str = "SELECT a.alias, b.key AS binding
             FROM apps a JOIN app_releases r ON r.id = a.active_release, json_each(r.bindings::json) b
             WHERE a.workspace_id = $1 AND a.deleted_at IS NULL AND position($2 IN b.value::text) > 0
             UNION
             SELECT a.alias, b.name FROM apps a JOIN app_bindings b ON b.app_id = a.id
             WHERE a.workspace_id = $1 AND a.deleted_at IS NULL AND b.binding::json ->> 'workflow' IN ($2, $3)
             ORDER BY 1, 2 LIMIT $4";
        Ok(diesel::sql_query(SQL)
            .bind::<SqlUuid, _>(workflow.workspace_id)
            .bind::<Text, _>(workflow.id.to_string())
            .bind::<Text, _>(&workflow.handle)
            .bind::<BigInt, _>(MOST)
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns the live graphs of other workflows in the workspace that contain a workflow's handle or id.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn graphs_naming(&self, workflow: &StoredWorkflow) -> Result<Vec<LiveGraph>, StoreError> {
        const SQL: &str = "SELECT w.handle, v.graph FROM workflows w
             JOIN workflow_versions v ON v.workflow_id = w.id AND v.number = coalesce(w.live_version, w.latest_version)
             WHERE w.workspace_id = $1 AND w.id <> $4 AND w.archived_at IS NULL
               AND (position($2 IN v.graph::text) > 0 OR position($3 IN v.graph::text) > 0)
             ORDER BY w.handle LIMIT $5";
        Ok(diesel::sql_query(SQL)
            .bind::<SqlUuid, _>(workflow.workspace_id)
            .bind::<Text, _>(workflow.id.to_string())
            .bind::<Text, _>(&workflow.handle)
            .bind::<SqlUuid, _>(workflow.id)
            .bind::<BigInt, _>(MOST)
            .load(&mut *self.connection().await?)
            .await?)
    }
}
