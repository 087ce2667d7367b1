//! Rollout configurations and live versions.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;
use wire::{EndedCanary, RolloutGate};

use crate::error::corrupt;
use crate::{Changes, Store, StoreError};

/// The rollout of a workflow's versions.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRollout {
    /// The workflow.
    pub workflow_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// The evaluation that a new version must pass.
    pub gate: Option<RolloutGate>,
    /// JSON: the gate's object `evaluation`, with fixed versions; `None` without a gate, or if an earlier
    /// release has set it.
    pub gate_evaluation: Option<String>,
    /// The canary.
    pub canary: Option<StoredCanary>,
    /// The end of the last canary.
    pub last_canary: Option<EndedCanary>,
}

/// A canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredCanary {
    /// Its version number.
    pub version: i32,
    /// The percentage of new threads.
    pub percent: i32,
    /// The number of turns after which it becomes live.
    pub promote_after_turns: Option<i32>,
    /// When it was set.
    pub since: DateTime<Utc>,
}

/// The versions that a workflow's chats use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct LiveVersions {
    /// The live version.
    #[diesel(sql_type = Nullable<Integer>)]
    pub live: Option<i32>,
    /// The canary version.
    #[diesel(sql_type = Nullable<Integer>)]
    pub canary: Option<i32>,
    /// The percentage of new threads that use the canary.
    #[diesel(sql_type = Nullable<Integer>)]
    pub percent: Option<i32>,
}

#[derive(QueryableByName)]
pub(super) struct RolloutRow {
    #[diesel(sql_type = SqlUuid)]
    workflow_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    workspace_id: Uuid,
    #[diesel(sql_type = Nullable<Text>)]
    gate: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    gate_evaluation: Option<String>,
    #[diesel(sql_type = Nullable<Integer>)]
    canary_version: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    canary_percent: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    promote_after_turns: Option<i32>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    canary_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    last_canary: Option<String>,
}

impl TryFrom<RolloutRow> for StoredRollout {
    type Error = StoreError;

    fn try_from(row: RolloutRow) -> Result<Self, StoreError> {
        let gate = row.gate.as_deref().map(serde_json::from_str).transpose();
        let last_canary = row.last_canary.as_deref().map(serde_json::from_str).transpose();
        let canary = row.canary_version.zip(row.canary_percent).zip(row.canary_since);
        let canary = canary.map(|((version, percent), since)| {
            let promote_after_turns = row.promote_after_turns;
            StoredCanary { version, percent, promote_after_turns, since }
        });
        Ok(Self {
            workflow_id: row.workflow_id,
            workspace_id: row.workspace_id,
            gate: gate.map_err(|error| corrupt("gate", error))?,
            gate_evaluation: row.gate_evaluation,
            canary,
            last_canary: last_canary.map_err(|error| corrupt("last canary", error))?,
        })
    }
}

const SELECT: &str =
    "SELECT workflow_id, workspace_id, gate, gate_evaluation, canary_version, canary_percent, promote_after_turns, canary_since, last_canary
     FROM rollouts";

/// Reads a workflow's rollout.
pub(super) async fn of_workflow(
    connection: &mut AsyncPgConnection,
    workflow: Uuid,
) -> Result<Option<StoredRollout>, StoreError> {
    let row: Option<RolloutRow> = diesel::sql_query(format!("{SELECT} WHERE workflow_id = $1"))
        .bind::<SqlUuid, _>(workflow)
        .get_result(connection)
        .await
        .optional()?;
    row.map(TryInto::try_into).transpose()
}

impl Store {
    /// Returns a workflow's rollout; `None`: each version becomes live when it is saved.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn rollout(&self, workflow: Uuid) -> Result<Option<StoredRollout>, StoreError> {
        of_workflow(&mut *self.connection().await?, workflow).await
    }

    /// Returns the workflows with a canary, or those in `among` that have one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn canaries(&self, among: Option<&[Uuid]>) -> Result<Vec<StoredRollout>, StoreError> {
        let sql = format!("{SELECT} WHERE canary_version IS NOT NULL AND ($1 OR workflow_id = ANY($2))");
        let rows: Vec<RolloutRow> = diesel::sql_query(sql)
            .bind::<Bool, _>(among.is_none())
            .bind::<diesel::sql_types::Array<SqlUuid>, _>(among.unwrap_or_default())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// Returns the versions that a workflow's chats currently use; `None` if the workflow is not found.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn live_versions(&self, workflow: Uuid) -> Result<Option<LiveVersions>, StoreError> {
        Ok(diesel::sql_query(
            "SELECT nullif(coalesce(w.live_version, w.latest_version), 0) AS live, r.canary_version AS canary,
                 r.canary_percent AS percent
             FROM workflows w LEFT JOIN rollouts r ON r.workflow_id = w.id WHERE w.id = $1",
        )
        .bind::<SqlUuid, _>(workflow)
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?)
    }
}

impl Changes {
    /// Returns a workflow's rollout in this transaction.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn rollout(&mut self, workflow: Uuid) -> Result<Option<StoredRollout>, StoreError> {
        of_workflow(&mut self.connection, workflow).await
    }

    /// Stores a workflow's rollout.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn put_rollout(&mut self, rollout: &StoredRollout) -> Result<(), StoreError> {
        let gate = rollout.gate.as_ref().map(serde_json::to_string).transpose();
        let last = rollout.last_canary.as_ref().map(serde_json::to_string).transpose();
        let canary = rollout.canary;
        let now = self.store.now();
        diesel::sql_query(
            "INSERT INTO rollouts (workflow_id, workspace_id, gate, canary_version, canary_percent, promote_after_turns,
                 canary_since, last_canary, updated_at, gate_evaluation) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (workflow_id) DO UPDATE SET gate = excluded.gate, gate_evaluation = excluded.gate_evaluation,
                 canary_version = excluded.canary_version,
                 canary_percent = excluded.canary_percent, promote_after_turns = excluded.promote_after_turns,
                 canary_since = excluded.canary_since, last_canary = excluded.last_canary, updated_at = excluded.updated_at",
        )
        .bind::<SqlUuid, _>(rollout.workflow_id)
        .bind::<SqlUuid, _>(rollout.workspace_id)
        .bind::<Nullable<Text>, _>(gate.map_err(|error| corrupt("gate", error))?)
        .bind::<Nullable<Integer>, _>(canary.map(|canary| canary.version))
        .bind::<Nullable<Integer>, _>(canary.map(|canary| canary.percent))
        .bind::<Nullable<Integer>, _>(canary.and_then(|canary| canary.promote_after_turns))
        .bind::<Nullable<Timestamptz>, _>(canary.map(|canary| canary.since))
        .bind::<Nullable<Text>, _>(last.map_err(|error| corrupt("last canary", error))?)
        .bind::<Timestamptz, _>(now)
        .bind::<Nullable<Text>, _>(rollout.gate_evaluation.as_deref())
        .execute(&mut *self.connection)
        .await?;
        self.touch(rollout.workflow_id);
        Ok(())
    }
}
