//! Evaluates canaries.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use store::{CanaryEnd, StoreError, StoredRollout, VersionOfCanary};
use training::{CanaryRecord, CanaryVerdict, Share, judge_canary};
use uuid::Uuid;
use wire::{CanaryCounts, CanaryOutcome, VersionCounts};

use super::{Job, JobError};
use crate::run::{RunPorts, SharedPorts};
use crate::runtime::ActorKind;

/// Interval of the checks of all canaries, because a process may have died before a check.
const CHECK_ALL_INTERVAL: Duration = Duration::from_secs(30);
/// Pauses last this many times the counting time for all canaries, at most [`CHECK_ALL_INTERVAL`].
const DUTY: u32 = 20;

/// The canary rounds.
pub(crate) struct CanaryRounds {
    ports: RunPorts,
    /// When all canaries were last checked, in monotonic time.
    checked_all: Arc<Mutex<Option<Duration>>>,
}

impl CanaryRounds {
    pub(crate) fn new(ports: RunPorts) -> Self {
        Self { ports, checked_all: Arc::default() }
    }

    async fn check_all(&self, signalled: &[Uuid]) -> Result<(), StoreError> {
        let SharedPorts { store, clock, .. } = &*self.ports;
        let now = clock.monotonic();
        let is_due =
            self.checked_all.lock().is_none_or(|last| now.saturating_sub(last) >= CHECK_ALL_INTERVAL);
        if !is_due && signalled.is_empty() {
            return Ok(());
        }
        for rollout in store.canaries((!is_due).then_some(signalled)).await? {
            if let Err(error) = self.check(&rollout).await {
                tracing::warn!(workflow = %rollout.workflow_id, %error, "failed to check a canary");
            }
        }
        if is_due {
            *self.checked_all.lock() = Some(now);
        }
        Ok(())
    }

    async fn check(&self, rollout: &StoredRollout) -> Result<(), StoreError> {
        let SharedPorts { store, plans, .. } = &*self.ports;
        let workflow = rollout.workflow_id;
        let Some(canary) = rollout.canary else { return Ok(()) };
        let live = store.live_versions(workflow).await?.and_then(|versions| versions.live);
        let Some(live) = live.filter(|live| *live != canary.version) else { return Ok(()) };
        let counts = store.canary_counts(VersionOfCanary { workflow, canary, live }).await?;
        let promote_after = canary.promote_after_turns.filter(|_| canary.version > live);
        let promote_after = promote_after.and_then(|turns| u32::try_from(turns).ok());
        let verdict = judge_canary(record(counts.canary), record(counts.live), promote_after);
        let Some(verdict) = verdict else { return Ok(()) };
        let end = end(verdict, counts, live);
        let _changing = plans.changing(workflow);
        let ended =
            store.change(async |changes| changes.end_canary(workflow, canary, end.clone()).await).await;
        match ended {
            Ok(Some(outcome)) => {
                tracing::info!(%workflow, version = canary.version, ?outcome, "canary ended");
            }
            // Another instance was faster, or the workflow is archived.
            Ok(None) | Err(StoreError::Archived) => {}
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

/// Describes the verdict in words.
fn end(verdict: CanaryVerdict, counts: CanaryCounts, live: i32) -> CanaryEnd {
    let (canary, of_live) = (record(counts.canary), record(counts.live));
    let worse = |bad: &str, ours: Share, others: Share, p: f64| {
        let (Share { part, of }, Share { part: other_part, of: other_of }) = (ours, others);
        let reason =
            format!("{part} of {of} {bad}; live version {live}: {other_part} of {other_of}; p = {p:.4}");
        (CanaryOutcome::RolledBack, reason)
    };
    let (outcome, reason) = match verdict {
        CanaryVerdict::NegativeFeedback { p } => {
            worse("ratings are negative", canary.negative, of_live.negative, p)
        }
        CanaryVerdict::FailedTurns { p } => worse("turns failed", canary.failed, of_live.failed, p),
        CanaryVerdict::Promote => {
            let reason = format!("live after {} turns instead of version {live}", canary.failed.of);
            (CanaryOutcome::Promoted, reason)
        }
    };
    CanaryEnd { outcome, reason: Some(reason), counts: Some(counts) }
}

#[async_trait]
impl Job for CanaryRounds {
    const KIND: ActorKind = ActorKind::Canaries;
    const PAUSE: Duration = Duration::from_millis(100);

    async fn round(&self) -> Result<(), JobError> {
        let SharedPorts { rollouts, clock, .. } = &*self.ports;
        let last = *self.checked_all.lock();
        let since = last.map(|last| clock.monotonic().saturating_sub(last));
        let limit = since.map_or(Duration::ZERO, |since| CHECK_ALL_INTERVAL.saturating_sub(since));
        let signalled = rollouts.wait_canaries(&**clock, limit).await;
        let started = clock.monotonic();
        if let Err(error) = self.check_all(&signalled).await {
            tracing::warn!(%error, "failed to check canaries; retrying");
            signalled.into_iter().for_each(|workflow| rollouts.canary(workflow));
        }
        // New signals wait meanwhile.
        let pause = clock.monotonic().saturating_sub(started) * DUTY;
        clock.sleep(pause.min(CHECK_ALL_INTERVAL)).await;
        Ok(())
    }
}
