//! Starts the evaluations of gates, and judges canaries.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use store::{CanaryEnd, StoreError, StoredRollout, VersionOfCanary};
use training::{CanaryRecord, CanaryVerdict, Share, judge_canary};
use uuid::Uuid;
use wire::{AuditAction, CanaryCounts, CanaryOutcome, VersionCounts};

use super::{Job, JobError};
use crate::kinds::training::Trainings;
use crate::run::SharedPorts;
use crate::runtime::ActorKind;

/// Interval of the polls for evaluations that another process has left.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the checks of all canaries: the process may have died before a check.
const CHECK_ALL_INTERVAL: Duration = Duration::from_secs(30);
/// Counting takes at most this part of the time.
const DUTY: u32 = 20;

/// The rounds over gates and canaries.
pub(crate) struct RolloutRounds {
    trainings: Trainings,
    /// When all canaries were checked last, in monotonic time.
    checked_all: Arc<Mutex<Option<Duration>>>,
    /// Until when a canary is not counted again.
    rests: Arc<Mutex<HashMap<Uuid, Duration>>>,
}

impl RolloutRounds {
    pub(crate) fn new(trainings: Trainings) -> Self {
        Self { trainings, checked_all: Arc::default(), rests: Arc::default() }
    }

    async fn check_canaries(&self, signalled: &[Uuid]) -> Result<(), StoreError> {
        let SharedPorts { store, clock, rollouts, .. } = &*self.trainings.ports;
        let now = clock.monotonic();
        let is_due =
            self.checked_all.lock().is_none_or(|last| now.saturating_sub(last) >= CHECK_ALL_INTERVAL);
        if !is_due && signalled.is_empty() {
            return Ok(());
        }
        let canaries = store.canaries((!is_due).then_some(signalled)).await?;
        for rollout in canaries {
            let workflow = rollout.workflow_id;
            let started = clock.monotonic();
            if self.rests.lock().get(&workflow).is_some_and(|until| started < *until) {
                rollouts.canary(workflow);
                continue;
            }
            if let Err(error) = self.check(&rollout).await {
                tracing::warn!(%workflow, %error, "failed to check a canary");
            }
            let ended = clock.monotonic();
            self.rests.lock().insert(workflow, ended + ended.saturating_sub(started) * DUTY);
        }
        if is_due {
            *self.checked_all.lock() = Some(now);
            self.rests.lock().retain(|_, until| *until > now);
        }
        Ok(())
    }

    async fn check(&self, rollout: &StoredRollout) -> Result<(), StoreError> {
        let SharedPorts { store, plans, .. } = &*self.trainings.ports;
        let workflow = rollout.workflow_id;
        let Some(canary) = rollout.canary else { return Ok(()) };
        let live = store.live_versions(workflow).await?.and_then(|versions| versions.live);
        let Some(live) = live.filter(|live| *live != canary.version) else { return Ok(()) };
        let counts = store.canary_counts(VersionOfCanary { workflow, canary, live }).await?;
        let promote_after = canary.promote_after_turns.filter(|_| canary.version > live);
        let promote_after = promote_after.and_then(|turns| u32::try_from(turns).ok());
        let verdict = judge_canary(record(counts.canary), record(counts.live), promote_after);
        let Some(verdict) = verdict else { return Ok(()) };
        let (action, end) = end(verdict, counts, live);
        let reason = format!("version {}: {}", canary.version, end.reason.clone().unwrap_or_default());
        let is_promoted = end.outcome == CanaryOutcome::Promoted;
        let _changing = plans.changing(workflow);
        let ended = store
            .change(async |changes| {
                if !changes.end_canary(workflow, canary, end).await? {
                    return Ok(false);
                }
                if is_promoted {
                    changes.set_live_version(workflow, canary.version).await?;
                }
                changes.audit_of_service(action, (workflow, rollout.workspace_id), reason).await?;
                Ok(true)
            })
            .await;
        match ended {
            Ok(true) => tracing::info!(%workflow, version = canary.version, is_promoted, "canary ended"),
            // Another instance was faster, or the workflow is archived.
            Ok(false) | Err(StoreError::Archived) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn record(counts: VersionCounts) -> CanaryRecord {
    let VersionCounts { turns, failed_turns, ratings, negative_ratings } = counts;
    CanaryRecord {
        failed: Share { part: failed_turns, of: turns },
        negative: Share { part: negative_ratings, of: ratings },
    }
}

/// What the verdict does, in words.
fn end(verdict: CanaryVerdict, counts: CanaryCounts, live: i32) -> (AuditAction, CanaryEnd) {
    let (canary, of_live) = (record(counts.canary), record(counts.live));
    let worse = |bad: &str, ours: Share, others: Share, p: f64| {
        let (Share { part, of }, Share { part: other_part, of: other_of }) = (ours, others);
        let reason = format!(
            "{part} of {of} {bad}, of the live version {live} {other_part} of {other_of}; p = {p:.4}"
        );
        (AuditAction::WorkflowCanaryRolledBack, CanaryOutcome::RolledBack, reason)
    };
    let (action, outcome, reason) = match verdict {
        CanaryVerdict::NegativeFeedback { p } => {
            worse("ratings are negative", canary.negative, of_live.negative, p)
        }
        CanaryVerdict::FailedTurns { p } => worse("turns failed", canary.failed, of_live.failed, p),
        CanaryVerdict::Promote => {
            let reason = format!("it is live after {} turns instead of version {live}", canary.failed.of);
            (AuditAction::WorkflowCanaryPromoted, CanaryOutcome::Promoted, reason)
        }
    };
    (action, CanaryEnd { outcome, reason: Some(reason), counts: Some(counts) })
}

#[async_trait]
impl Job for RolloutRounds {
    const KIND: ActorKind = ActorKind::Rollouts;
    const PAUSE: Duration = Duration::from_millis(100);

    async fn round(&self) -> Result<(), JobError> {
        let SharedPorts { rollouts, clock, .. } = &*self.trainings.ports;
        if let Err(error) = self.trainings.advance_gates().await {
            tracing::warn!(%error, "failed to advance the gates of versions");
        }
        let signalled = rollouts.wait(&**clock, POLL_INTERVAL).await;
        if let Err(error) = self.check_canaries(&signalled).await {
            tracing::warn!(%error, "failed to check canaries");
            signalled.into_iter().for_each(|workflow| rollouts.canary(workflow));
        }
        Ok(())
    }
}
