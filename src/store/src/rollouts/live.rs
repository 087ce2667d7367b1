//! Which version is live, and what a change of that does.

use chrono::{DateTime, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::{CanaryOutcome, EndedCanary};

use super::canary::{CanaryEnd, ended};
use super::records::StoredCanary;
use crate::schema::{workflow_versions, workflows};
use crate::{Changes, StoreError};

/// Stored as the live version of a workflow whose versions have not passed the gate yet.
const NONE: i32 = 0;

impl Changes {
    /// Locks a workflow; returns its latest and its live version.
    pub(super) async fn lock_live(&mut self, workflow: Uuid) -> Result<(i32, Option<i32>), StoreError> {
        let (latest, live): (Option<i32>, Option<i32>) = workflows::table
            .find(workflow)
            .select((workflows::latest_version, workflows::live_version))
            .for_update()
            .first(&mut *self.connection)
            .await?;
        Ok((latest.unwrap_or(0), live.or(latest).filter(|live| *live > NONE)))
    }

    /// What `workflows.live_version` becomes when a version is saved after `latest`, and what begins with that: a gate, if there is one.
    /// While there is a gate or a canary, the version that is live stays.
    pub(crate) async fn live_after_saving(
        &mut self,
        workflow: Uuid,
        number: i32,
        (latest, live): (Option<i32>, Option<i32>),
    ) -> Result<Option<i32>, StoreError> {
        let stays = Some(live.or(latest).unwrap_or(NONE));
        let Some(rollout) = self.rollout(workflow).await? else { return Ok(None) };
        if let Some(gate) = &rollout.gate {
            self.begin_gate(&rollout, gate, number).await?;
            return Ok(stays);
        }
        let is_first = live.or(latest).is_none_or(|live| live == NONE);
        // What is newer than a version that was set by hand becomes live.
        Ok(stays.filter(|_| rollout.canary.is_some() && !is_first))
    }

    /// Makes a version live that there is. A canary ends that is now live, or that is older than a version that is live instead of an
    /// older one.
    pub(super) async fn move_live(
        &mut self,
        workflow: Uuid,
        number: i32,
        (latest, before): (i32, Option<i32>),
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

    /// Keeps the live version of a workflow as it is until the end of the transaction, but for changes of the transaction itself.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is.
    pub async fn hold_live_version(&mut self, workflow: Uuid) -> Result<(), StoreError> {
        self.lock_live(workflow).await?;
        let archived_at: Option<DateTime<Utc>> = workflows::table
            .find(workflow)
            .select(workflows::archived_at)
            .first(&mut *self.connection)
            .await?;
        if archived_at.is_some() { Err(StoreError::Archived) } else { Ok(()) }
    }

    /// The live version, as this transaction sees it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn live_version(&mut self, workflow: Uuid) -> Result<Option<i32>, StoreError> {
        Ok(self.lock_live(workflow).await?.1)
    }

    /// A canary that ends now without being judged.
    #[must_use]
    pub fn ended_canary(&self, canary: StoredCanary, outcome: CanaryOutcome) -> EndedCanary {
        ended(canary, CanaryEnd { outcome, reason: None, counts: None }, self.store.now())
    }

    /// The time of the transaction's store.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.store.now()
    }

    /// Makes a numbered version live; returns the version that was live before, `Some(None)` if there was none. `None` if the workflow has
    /// no such version.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is.
    pub async fn set_live_version(
        &mut self,
        workflow: Uuid,
        number: i32,
    ) -> Result<Option<Option<i32>>, StoreError> {
        self.hold_live_version(workflow).await?;
        let (latest, before) = self.lock_live(workflow).await?;
        let there = workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.eq(number));
        let there: bool = diesel::select(exists(there)).get_result(&mut *self.connection).await?;
        if !there {
            return Ok(None);
        }
        if before != Some(number) {
            self.move_live(workflow, number, (latest, before)).await?;
        }
        Ok(Some(before))
    }

    /// The highest numbered version under `number` that has not failed its gate.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn version_before(&mut self, workflow: Uuid, number: i32) -> Result<Option<i32>, StoreError> {
        let failed = diesel::dsl::sql::<diesel::sql_types::Bool>(
            "NOT EXISTS (SELECT FROM version_gates g WHERE g.workflow_id = workflow_versions.workflow_id
                 AND g.version = workflow_versions.number AND g.status <> 'passed')",
        );
        Ok(workflow_versions::table
            .filter(workflow_versions::workflow_id.eq(workflow))
            .filter(workflow_versions::number.lt(number))
            .filter(failed)
            .order(workflow_versions::number.desc())
            .select(workflow_versions::number)
            .first::<Option<i32>>(&mut *self.connection)
            .await
            .optional()?
            .flatten())
    }
}
