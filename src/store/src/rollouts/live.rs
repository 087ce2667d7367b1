//! Live versions, and the effects of changing them.

use chrono::{DateTime, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::{CanaryOutcome, EndedCanary};

use super::canary::{CanaryEnd, ended};
use super::records::StoredCanary;
use crate::schema::{workflow_versions, workflows};
use crate::{AuditEntry, Changes, StoreError};

/// Stored as the live version while none of a workflow's versions has passed the gate.
const NONE: i32 = 0;

/// A workflow locked by this transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedWorkflow {
    pub(super) id: Uuid,
    pub(super) workspace: Uuid,
    pub(super) latest: i32,
    pub(super) live: Option<i32>,
    pub(super) is_archived: bool,
}

impl Changes {
    /// Locks a workflow.
    pub(super) async fn lock_live(&mut self, workflow: Uuid) -> Result<LockedWorkflow, StoreError> {
        let (workspace, latest, live, archived_at): (Uuid, Option<i32>, Option<i32>, Option<DateTime<Utc>>) =
            workflows::table
                .find(workflow)
                .select((
                    workflows::workspace_id,
                    workflows::latest_version,
                    workflows::live_version,
                    workflows::archived_at,
                ))
                .for_update()
                .first(&mut *self.connection)
                .await?;
        Ok(LockedWorkflow {
            id: workflow,
            workspace,
            latest: latest.unwrap_or(0),
            live: live.or(latest).filter(|live| *live > NONE),
            is_archived: archived_at.is_some(),
        })
    }

    /// Returns the value for `workflows.live_version` when a version is saved after `latest`, and starts the
    /// gate, if there is one. With a gate or a canary, the live version stays.
    pub(crate) async fn live_after_saving(
        &mut self,
        workflow: Uuid,
        number: i32,
        latest: Option<i32>,
        live: Option<i32>,
    ) -> Result<Option<i32>, StoreError> {
        let stays = Some(live.or(latest).unwrap_or(NONE));
        let Some(rollout) = self.rollout(workflow).await? else { return Ok(None) };
        if let Some(gate) = &rollout.gate {
            self.start_gate(&rollout, gate, number).await?;
            return Ok(stays);
        }
        let is_first = live.or(latest).is_none_or(|live| live == NONE);
        // A version that is newer than a manually set one becomes live.
        Ok(stays.filter(|_| rollout.canary.is_some() && !is_first))
    }

    /// Makes an existing version live. Ends the canary if it is now live, or if the live version has passed it
    /// by. Adds `entry` to the audit trail, with both versions appended to its reason.
    pub(super) async fn move_live(
        &mut self,
        LockedWorkflow { id: workflow, latest, live: before, .. }: LockedWorkflow,
        number: i32,
        entry: AuditEntry,
    ) -> Result<(), StoreError> {
        let now = self.store.now();
        diesel::update(workflows::table.find(workflow))
            .set((
                workflows::live_version.eq(Some(number).filter(|number| *number != latest)),
                workflows::updated_at.eq(now),
            ))
            .execute(&mut *self.connection)
            .await?;
        self.touch(workflow);
        let was = before.map_or_else(|| "none".to_owned(), |before| before.to_string());
        let note = entry.reason.map(|reason| format!("{reason}: ")).unwrap_or_default();
        let reason = Some(format!("{note}from version {was} to {number}"));
        self.audit(&AuditEntry { reason, ..entry }).await?;
        let Some(mut rollout) = self.rollout(workflow).await? else { return Ok(()) };
        let Some(canary) = rollout.canary else { return Ok(()) };
        let is_passed = before.is_none_or(|before| before < canary.version) && number > canary.version;
        let outcome = match number == canary.version {
            true => CanaryOutcome::Promoted,
            false if is_passed => CanaryOutcome::Superseded,
            false => return Ok(()),
        };
        let end = CanaryEnd { outcome, reason: Some(format!("version {number} is live")), counts: None };
        rollout.canary = None;
        rollout.last_canary = Some(ended(canary, end, now));
        self.put_rollout(&rollout).await
    }

    /// Locks a workflow's live version until the end of the transaction; the transaction itself may change it.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is archived.
    pub async fn hold_live_version(&mut self, workflow: Uuid) -> Result<(), StoreError> {
        if self.lock_live(workflow).await?.is_archived { Err(StoreError::Archived) } else { Ok(()) }
    }

    /// Returns the live version in this transaction.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn live_version(&mut self, workflow: Uuid) -> Result<Option<i32>, StoreError> {
        Ok(self.lock_live(workflow).await?.live)
    }

    /// A canary that ends now without an evaluation.
    #[must_use]
    pub fn ended_canary(&self, canary: StoredCanary, outcome: CanaryOutcome) -> EndedCanary {
        ended(canary, CanaryEnd { outcome, reason: None, counts: None }, self.store.now())
    }

    /// The current time from the transaction's store.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.store.now()
    }

    /// Makes a numbered version live; returns the previous live version, `Some(None)` if there was none. `None`
    /// if the version does not exist. `entry`: the audit row; both versions are appended to its reason.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is archived.
    pub async fn set_live_version(
        &mut self,
        workflow: Uuid,
        number: i32,
        entry: AuditEntry,
    ) -> Result<Option<Option<i32>>, StoreError> {
        let locked = self.lock_live(workflow).await?;
        if locked.is_archived {
            return Err(StoreError::Archived);
        }
        let found = workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.eq(number));
        let is_found: bool = diesel::select(exists(found)).get_result(&mut *self.connection).await?;
        if !is_found {
            return Ok(None);
        }
        if locked.live != Some(number) {
            self.move_live(locked, number, entry).await?;
        }
        Ok(Some(locked.live))
    }

    /// Returns the highest version number below `number` that has no gate or has passed it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn version_before(&mut self, workflow: Uuid, number: i32) -> Result<Option<i32>, StoreError> {
        let may_be_live = diesel::dsl::sql::<diesel::sql_types::Bool>(
            "NOT EXISTS (SELECT FROM version_gates g WHERE g.workflow_id = workflow_versions.workflow_id
                 AND g.version = workflow_versions.number AND g.status <> 'passed')",
        );
        Ok(workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.lt(number))
            .filter(may_be_live)
            .order(workflow_versions::number.desc())
            .select(workflow_versions::number)
            .first::<Option<i32>>(&mut *self.connection)
            .await
            .optional()?
            .flatten())
    }
}
