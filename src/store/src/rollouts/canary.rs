//! Evaluates canaries and ends them.

use auth::principal::Actor;
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::first_id_at;
use uuid::Uuid;
use wire::{AuditAction, CanaryCounts, CanaryOutcome, EndedCanary, GateStatus, VersionCounts};

use super::records::{StoredCanary, StoredRollout};
use crate::{AuditEntry, AuditOutcome, AuditTarget, Changes, Store, StoreError};

/// A workflow's canary and live version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionOfCanary {
    /// The workflow.
    pub workflow: Uuid,
    /// The canary.
    pub canary: StoredCanary,
    /// The live version.
    pub live: i32,
}

/// The end of a canary.
#[derive(Debug, Clone, PartialEq)]
pub struct CanaryEnd {
    /// The outcome.
    pub outcome: CanaryOutcome,
    /// The reason.
    pub reason: Option<String>,
    /// The counts that led to the decision.
    pub counts: Option<CanaryCounts>,
}

#[derive(QueryableByName)]
struct CanaryCountRow {
    #[diesel(sql_type = Integer)]
    version: i32,
    #[diesel(sql_type = BigInt)]
    n: i64,
    #[diesel(sql_type = BigInt)]
    part: i64,
}

/// Turns that have ended since the canary started, by version. A turn that waits for an answer counts when it
/// has ended.
const TURNS: &str =
    "SELECT v.number AS version, count(*) AS n, count(*) FILTER (WHERE r.status = 'failed') AS part
     FROM runs r JOIN workflow_versions v ON v.id = r.version_id AND v.number IN ($3, $4)
     WHERE r.workflow_id = $1 AND r.id >= $2 AND r.trigger = 'chat' AND r.status IN ('succeeded', 'failed')
         AND r.created_at >= $5
     GROUP BY 1";

/// Feedback since the canary started, by version: one per turn and author, negative if any of it is.
const RATINGS: &str = "SELECT version, count(*) AS n, count(*) FILTER (WHERE negative) AS part FROM (
         SELECT v.number AS version, bool_or(f.kind = 'negative') AS negative
         FROM item_feedback f JOIN runs r ON r.id = f.run_id JOIN workflow_versions v ON v.id = r.version_id
             AND v.number IN ($3, $4)
         WHERE f.workflow_id = $1 AND f.id >= $2 AND r.workflow_id = $1 AND r.created_at >= $5
         GROUP BY v.number, f.run_id, f.author_kind, f.author_id) rated
     GROUP BY 1";

impl Store {
    /// Returns the counts for a canary and the live version: turns since the canary started, and feedback on
    /// them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn canary_counts(&self, of: VersionOfCanary) -> Result<CanaryCounts, StoreError> {
        let mut connection = self.connection().await?;
        let mut counts = CanaryCounts::default();
        for (sql, is_turns) in [(TURNS, true), (RATINGS, false)] {
            let rows: Vec<CanaryCountRow> = diesel::sql_query(sql)
                .bind::<SqlUuid, _>(of.workflow)
                .bind::<SqlUuid, _>(first_id_at(of.canary.since))
                .bind::<Integer, _>(of.canary.version)
                .bind::<Integer, _>(of.live)
                .bind::<Timestamptz, _>(of.canary.since)
                .load(&mut *connection)
                .await?;
            for row in rows {
                let is_canary = row.version == of.canary.version;
                let counted = if is_canary { &mut counts.canary } else { &mut counts.live };
                let whole = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
                *counted = if is_turns {
                    VersionCounts { turns: whole(row.n), failed_turns: whole(row.part), ..*counted }
                } else {
                    VersionCounts { ratings: whole(row.n), negative_ratings: whole(row.part), ..*counted }
                };
            }
        }
        Ok(counts)
    }
}

impl Changes {
    /// Ends a canary unless it has already ended; returns its outcome. A canary to promote becomes live if it
    /// has passed its gate, and is rolled back if it has failed it. After a rollback its threads use the live
    /// version.
    ///
    /// # Errors
    /// [`StoreError::Archived`] for a canary to promote when the workflow is archived.
    pub async fn end_canary(
        &mut self,
        workflow: Uuid,
        canary: StoredCanary,
        end: CanaryEnd,
    ) -> Result<Option<CanaryOutcome>, StoreError> {
        // All transactions lock these rows in this order.
        let locked = self.lock_live(workflow).await?;
        let Some(rollout) = self.rollout(workflow).await? else { return Ok(None) };
        if rollout.canary.is_none_or(|known| (known.version, known.since) != (canary.version, canary.since)) {
            return Ok(None);
        }
        if end.outcome == CanaryOutcome::Promoted && locked.is_archived {
            return Err(StoreError::Archived);
        }
        let gate = match end.outcome {
            CanaryOutcome::Promoted => self.version_gate(workflow, canary.version).await?,
            _ => None,
        };
        let end = match gate {
            Some(gate) if gate.status == GateStatus::Failed => {
                CanaryEnd { counts: end.counts, ..failed_gate(gate.error.as_deref()) }
            }
            // The other version stays live until the gate has passed.
            Some(gate) if gate.status == GateStatus::Running => return Ok(None),
            _ => end,
        };
        let outcome = end.outcome;
        self.store_end(rollout, canary, end).await?;
        if outcome == CanaryOutcome::Promoted {
            let entry = entry_of_service(
                AuditAction::WorkflowLiveVersionSet,
                workflow,
                locked.workspace,
                "the canary was promoted",
            );
            self.move_live(locked, canary.version, entry).await?;
        }
        Ok(Some(outcome))
    }

    /// Rolls back the canary of a version that has failed its gate.
    pub(super) async fn end_failed_canary(
        &mut self,
        workflow: Uuid,
        version: i32,
        error: Option<&str>,
    ) -> Result<(), StoreError> {
        let Some(rollout) = self.rollout(workflow).await? else { return Ok(()) };
        let Some(canary) = rollout.canary.filter(|canary| canary.version == version) else { return Ok(()) };
        self.store_end(rollout, canary, failed_gate(error)).await
    }

    /// Stores the end of a canary, and adds it to the audit trail.
    async fn store_end(
        &mut self,
        rollout: StoredRollout,
        canary: StoredCanary,
        end: CanaryEnd,
    ) -> Result<(), StoreError> {
        let action = match end.outcome {
            CanaryOutcome::Promoted => AuditAction::WorkflowCanaryPromoted,
            _ => AuditAction::WorkflowCanaryRolledBack,
        };
        let reason = format!("version {}: {}", canary.version, end.reason.as_deref().unwrap_or_default());
        let entry = entry_of_service(action, rollout.workflow_id, rollout.workspace_id, &reason);
        let last_canary = Some(ended(canary, end, self.store.now()));
        self.put_rollout(&StoredRollout { canary: None, last_canary, ..rollout }).await?;
        self.audit(&entry).await
    }
}

/// The end of a canary whose version has failed its gate.
fn failed_gate(error: Option<&str>) -> CanaryEnd {
    let reason = Some(format!("it failed its gate: {}", error.unwrap_or("without a reason")));
    CanaryEnd { outcome: CanaryOutcome::RolledBack, reason, counts: None }
}

/// An audit row for an action by the service itself.
pub(super) fn entry_of_service(
    action: AuditAction,
    workflow: Uuid,
    workspace: Uuid,
    reason: &str,
) -> AuditEntry {
    AuditEntry {
        actor: Actor { kind: "system", id: None },
        action,
        target: Some(AuditTarget { kind: "workflow", id: workflow.to_string() }),
        workspace: Some(workspace),
        outcome: AuditOutcome::Success,
        reason: Some(reason.to_owned()),
        address: None,
        request_id: None,
    }
}

/// An ended canary, as shown later.
pub(super) fn ended(canary: StoredCanary, end: CanaryEnd, now: DateTime<Utc>) -> EndedCanary {
    EndedCanary {
        version: canary.version,
        percent: canary.percent,
        outcome: end.outcome,
        reason: end.reason,
        started_at: kernel::timestamp(canary.since),
        ended_at: kernel::timestamp(now),
        counts: end.counts,
    }
}
