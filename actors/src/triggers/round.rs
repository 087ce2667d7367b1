//! Polls for due cron triggers, starts their runs, and computes their next due times.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use kernel::Clock;
use ring::digest::{SHA256, digest};
use serde_json::json;
use store::{FiredCron, MissedFires, Store, StoreError, StoredCron, StoredWorkflow, WorkflowRef};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::{ErrorCode, TriggerError, TriggerSkip};

use super::Schedule;
use crate::kinds::workflow::{NewRun, RunOptions, Runs};
use crate::lanes::WriteError;
use crate::plans::PlanError;
use crate::run::start::{IdempotencyKey, RunStartError};

/// Duration of a claim on a fire.
const BUSY: TimeDelta = TimeDelta::seconds(30);
/// Delay before a failed fire is retried.
const RETRY_DELAY: TimeDelta = TimeDelta::seconds(2);
/// Delay after which a claimed fire counts as missed.
const MISSED_AFTER: TimeDelta = TimeDelta::seconds(60);
/// Maximum age of a claim; the run's idempotency key is kept a little longer.
const TOLD: TimeDelta = TimeDelta::hours(20);
/// Maximum fires per claim.
const MOST: i64 = 32;

/// Fires due cron triggers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CronRounds {
    pub(crate) store: Store,
    pub(crate) runs: Runs,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) draining: CancellationToken,
}

/// A fire's result and the next due time.
struct Judged {
    fired: FiredCron,
    next: Option<DateTime<Utc>>,
}

impl CronRounds {
    /// Fires all due triggers. Failed fires are retried later.
    pub(crate) async fn fire_due(&self) {
        while !self.draining.is_cancelled() {
            let claimed = match self.store.claim_cron_fires(BUSY, MOST).await {
                Ok(claimed) => claimed,
                Err(error) => return tracing::warn!(%error, "failed to poll for due triggers"),
            };
            if claimed.is_empty() {
                return;
            }
            for fire in claimed {
                if let Err(error) = self.fire(&fire).await {
                    let workflow = fire.workflow_id;
                    tracing::warn!(%workflow, %error, "cron trigger failed; retrying");
                    let _ = self.store.put_cron_fire_off(&fire, self.clock.now() + RETRY_DELAY).await;
                }
            }
        }
    }

    /// Recomputes planned fires after the clock was set back, because they now come earlier.
    pub(crate) async fn plan_again(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        for fire in self.store.cron_fires_after(now).await? {
            let schedule = Schedule::parse(&fire.expression, &fire.timezone);
            let next = schedule.ok().and_then(|schedule| schedule.next_after(now));
            if let Some(next) = next.filter(|next| *next < fire.at) {
                self.store.move_cron_fire(&fire, next).await?;
            }
        }
        Ok(())
    }

    async fn fire(&self, fire: &StoredCron) -> Result<(), RunStartError> {
        let (Some(due), Some(claimed)) = (fire.next_fire_at, fire.claimed_at) else { return Ok(()) };
        // It is unknown whether the run was started back then: the fire counts as missed, not as due again.
        let now = self.clock.now();
        let claimed = if now - claimed > TOLD { now } else { claimed };
        // The schedule was valid when configured; another version may no longer know its zone.
        let judged = match Schedule::parse(&fire.settings.expression, &fire.settings.timezone) {
            Ok(schedule) => self.judge(fire, &schedule, due, claimed).await?,
            Err(_) => {
                let message = "The schedule is not valid in this version of the service; set it again.";
                let fired = failed(due, ErrorCode::InvalidRequest, message);
                Judged { fired, next: None }
            }
        };
        if let FiredCron::Failed(error) = &judged.fired {
            tracing::info!(workflow = %fire.workflow_id, code = error.code, "cron trigger started no run");
        }
        Ok(self.store.settle_cron_fire(fire, &judged.fired, judged.next).await?)
    }

    async fn judge(
        &self,
        fire: &StoredCron,
        schedule: &Schedule,
        due: DateTime<Utc>,
        claimed: DateTime<Utc>,
    ) -> Result<Judged, RunStartError> {
        // Only the last missed time counts; other times fire one by one, however late the round.
        let (scheduled_for, from) = match claimed - due > MISSED_AFTER {
            true => (schedule.last_of(due, claimed), self.clock.now().max(claimed)),
            false => (due, due),
        };
        let next = schedule.next_after(from);
        let key = key(fire.workflow_id, scheduled_for);
        // An earlier claim may have started the run.
        if let Some(begun) = self.runs.started(&key).await? {
            return Ok(Judged { fired: FiredCron::Started(begun.run, scheduled_for), next });
        }
        let workflow = self.store.workflow(&WorkflowRef::Id(fire.workflow_id), Uuid::nil()).await?;
        let Some(workflow) = workflow.filter(|workflow| workflow.archived_at.is_none()) else {
            let code = ErrorCode::WorkflowArchived;
            return Ok(Judged { fired: failed(scheduled_for, code, code.message()), next: None });
        };
        if claimed - scheduled_for > MISSED_AFTER && fire.settings.missed == MissedFires::Skip {
            return Ok(Judged { fired: skipped(scheduled_for, "missed"), next });
        }
        if !fire.settings.overlap && self.is_under_way(fire).await? {
            return Ok(Judged { fired: skipped(scheduled_for, "overlap"), next });
        }
        let fired = self.begin(fire, &workflow, scheduled_for, key).await?;
        Ok(Judged { fired, next })
    }

    async fn is_under_way(&self, fire: &StoredCron) -> Result<bool, StoreError> {
        let Some(last) = fire.last_run_id else { return Ok(false) };
        Ok(self.store.run(last).await?.is_some_and(|run| !run.status.is_terminal()))
    }

    async fn begin(
        &self,
        fire: &StoredCron,
        workflow: &StoredWorkflow,
        scheduled_for: DateTime<Utc>,
        key: IdempotencyKey,
    ) -> Result<FiredCron, RunStartError> {
        let found = self.runs.version(workflow.workspace_id, workflow.id, None).await;
        let version = match found {
            Ok(Some(version)) => version,
            Ok(None) => {
                let code = ErrorCode::WorkflowNoVersion;
                return Ok(failed(scheduled_for, code, code.message()));
            }
            Err(PlanError::Store(error)) => return Err(error.into()),
            // A newer instance may be able to execute it; if none does for a while, none can.
            Err(error @ PlanError::Graph(..))
                if self.runs.ports.others.load(Ordering::Relaxed)
                    && self.clock.now() - scheduled_for <= MISSED_AFTER =>
            {
                return Err(StoreError::Corrupt(error.to_string()).into());
            }
            Err(error) => {
                kernel::warn_once_a_minute!("trigger.not_compiled", workflow = %workflow.id, %error, "stored version does not compile");
                let code = ErrorCode::GraphInvalid;
                return Ok(failed(scheduled_for, code, code.message()));
            }
        };
        let inputs = json!({"scheduled_for": time(scheduled_for), "timezone": fire.settings.timezone});
        if let Some(problem) = version.plan.check_inputs(&inputs).first() {
            let told = format!(
                "{} /inputs{} {}",
                ErrorCode::RunInputsInvalid.message(),
                problem.pointer,
                problem.message
            );
            return Ok(failed(scheduled_for, ErrorCode::RunInputsInvalid, &told));
        }
        let new = NewRun {
            workspace: workflow.workspace_id,
            version,
            inputs,
            options: RunOptions::default(),
            trigger: "cron",
            limited: workflow.max_concurrent_runs.is_some(),
            idempotency: Some(key),
        };
        match self.runs.start(new).await {
            Ok(begun) => Ok(FiredCron::Started(begun.run, scheduled_for)),
            Err(error @ (RunStartError::Write(WriteError::Poisoned(_)) | RunStartError::KeyReused)) => {
                kernel::warn_once_a_minute!("trigger.not_stored", workflow = %workflow.id, %error, "failed to store the run of a cron trigger");
                let code = ErrorCode::Internal;
                Ok(failed(scheduled_for, code, code.message()))
            }
            Err(RunStartError::Full(full)) => {
                Ok(failed(scheduled_for, ErrorCode::WorkspaceFull, &full.to_string()))
            }
            Err(error) => Err(error),
        }
    }
}

/// The key of a fire, the same on all instances.
fn key(workflow: Uuid, scheduled_for: DateTime<Utc>) -> IdempotencyKey {
    let (scope, key) = (format!("trigger:cron:{workflow}"), time(scheduled_for));
    let digest = digest(&SHA256, format!("{scope} {key}").as_bytes()).as_ref().to_vec();
    IdempotencyKey { scope, also: None, key, digest }
}

fn skipped(scheduled_for: DateTime<Utc>, reason: &str) -> FiredCron {
    FiredCron::Skipped(TriggerSkip { scheduled_for: time(scheduled_for), reason: reason.to_owned() })
}

fn failed(scheduled_for: DateTime<Utc>, code: ErrorCode, message: &str) -> FiredCron {
    let (code, message) = (code.as_str().to_owned(), message.to_owned());
    FiredCron::Failed(TriggerError { scheduled_for: time(scheduled_for), code, message })
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
