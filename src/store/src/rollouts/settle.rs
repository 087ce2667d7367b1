//! Stores gate evaluation results, and decides about the live version in the same transaction.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Bytea, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::{AuditAction, GateStatus};

use super::canary::entry_of_service;
use super::gates::NewEvaluation;
use super::live::LockedWorkflow;
use crate::database::scalar::Scalar;
use crate::runs::records::holds_run;
use crate::{Changes, Store, StoreError};

/// Float sums differ by less.
const PRECISION: f64 = 1e-9;

/// A gate evaluation result.
#[derive(Debug, Clone, PartialEq)]
pub struct GateResult {
    /// The score, or the reason for its absence.
    pub score: Result<f64, String>,
    /// SHA-256 of the case digests in order.
    pub fingerprint: Vec<u8>,
}

#[derive(QueryableByName)]
struct RunningGate {
    #[diesel(sql_type = Integer)]
    version: i32,
    #[diesel(sql_type = SqlUuid)]
    workspace_id: Uuid,
    #[diesel(sql_type = Double)]
    threshold: f64,
    #[diesel(sql_type = Double)]
    max_drop: f64,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Bytea)]
    key: Vec<u8>,
    #[diesel(sql_type = Text)]
    request: String,
    #[diesel(sql_type = Nullable<Bytea>)]
    fingerprint: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Double>)]
    score: Option<f64>,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
    #[diesel(sql_type = Bool)]
    is_finished: bool,
}

#[derive(QueryableByName)]
struct EarlierEvaluation {
    #[diesel(sql_type = Nullable<Double>)]
    score: Option<f64>,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
    #[diesel(sql_type = Nullable<Bytea>)]
    fingerprint: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    finished_at: Option<DateTime<Utc>>,
}

/// The live version's score, as far as known.
enum LiveScore {
    Known(f64),
    /// Its evaluation has not ended.
    Pending,
    Failed(String),
    /// It was not evaluated on these cases.
    Unknown,
}

/// A gate decision.
struct Decided {
    status: GateStatus,
    live: Option<i32>,
    live_score: Option<f64>,
    error: Option<String>,
}

impl Store {
    /// Stores a gate evaluation result unless it already has one, and decides the gates of its workflow: a
    /// version that passes becomes live. Returns the workflow; `None` if `writer` is given and no longer owns
    /// the run.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn settle_gate_evaluation(
        &self,
        writer: Option<Uuid>,
        run: Uuid,
        result: &GateResult,
    ) -> Result<Option<Uuid>, StoreError> {
        self.change(async |changes| changes.settle(writer, run, result).await).await
    }
}

impl Changes {
    async fn settle(
        &mut self,
        writer: Option<Uuid>,
        run: Uuid,
        result: &GateResult,
    ) -> Result<Option<Uuid>, StoreError> {
        if let Some(writer) = writer
            && !holds_run(&mut self.connection, writer, run).await?
        {
            return Ok(None);
        }
        let of: Option<Scalar<Uuid>> =
            diesel::sql_query("SELECT workflow_id FROM gate_evaluations WHERE run_id = $1")
                .bind::<SqlUuid, _>(run)
                .get_result(&mut *self.connection)
                .await
                .optional()?;
        let Some(Scalar(workflow)) = of else { return Ok(None) };
        let locked = self.lock_live(workflow).await?;
        let now = self.store.now();
        diesel::sql_query(
            "UPDATE gate_evaluations SET score = $2, error = $3, fingerprint = $4, finished_at = $5
             WHERE run_id = $1 AND finished_at IS NULL",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<Nullable<Double>, _>(result.score.as_ref().ok())
        .bind::<Nullable<Text>, _>(result.score.as_ref().err().map(|error| error.replace('\0', "")))
        .bind::<Bytea, _>(&result.fingerprint)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection)
        .await?;
        self.decide_gates(locked).await?;
        Ok(Some(workflow))
    }

    /// Decides all gates that can be decided, lower versions first. Adds missing evaluations of the live
    /// version.
    async fn decide_gates(&mut self, mut locked: LockedWorkflow) -> Result<(), StoreError> {
        let workflow = locked.id;
        let running: Vec<RunningGate> = diesel::sql_query(
            "SELECT g.version, g.workspace_id, g.threshold, g.max_drop, g.created_at, e.key, e.request, e.fingerprint, e.score,
                 e.error, e.finished_at IS NOT NULL AS is_finished
             FROM version_gates g JOIN gate_evaluations e ON e.run_id = g.run_id
             WHERE g.workflow_id = $1 AND g.status = 'running' ORDER BY g.version FOR UPDATE OF g",
        )
        .bind::<SqlUuid, _>(workflow)
        .load(&mut *self.connection)
        .await?;
        for gate in running.into_iter().filter(|gate| gate.is_finished) {
            let Some(decided) = self.decide(workflow, &gate, locked.live).await? else { continue };
            diesel::sql_query(
                "UPDATE version_gates SET status = $3, score = $4, live_version = $5, live_score = $6, error = $7,
                     finished_at = $8 WHERE workflow_id = $1 AND version = $2",
            )
            .bind::<SqlUuid, _>(workflow)
            .bind::<Integer, _>(gate.version)
            .bind::<Text, _>(decided.status.as_str())
            .bind::<Nullable<Double>, _>(gate.score)
            .bind::<Nullable<Integer>, _>(decided.live)
            .bind::<Nullable<Double>, _>(decided.live_score)
            .bind::<Nullable<Text>, _>(&decided.error)
            .bind::<Timestamptz, _>(self.store.now())
            .execute(&mut *self.connection)
            .await?;
            if decided.status == GateStatus::Failed {
                self.end_failed_canary(workflow, gate.version, decided.error.as_deref()).await?;
            }
            // Only upwards: a publisher may have set a higher version in the meantime.
            if decided.status == GateStatus::Passed && locked.live.is_none_or(|live| gate.version > live) {
                let entry = entry_of_service(
                    AuditAction::WorkflowLiveVersionSet,
                    workflow,
                    gate.workspace_id,
                    "the gate passed",
                );
                self.move_live(locked, gate.version, entry).await?;
                locked.live = Some(gate.version);
            }
        }
        Ok(())
    }

    /// Decides about one version; `None`: the live version's score is not known yet.
    async fn decide(
        &mut self,
        workflow: Uuid,
        gate: &RunningGate,
        live: Option<i32>,
    ) -> Result<Option<Decided>, StoreError> {
        let failed = |error: String, live_score: Option<f64>| Decided {
            status: GateStatus::Failed,
            live,
            live_score,
            error: Some(error),
        };
        let Some(score) = gate.score else {
            let error = gate.error.clone().unwrap_or_else(|| "the evaluation has no score".to_owned());
            return Ok(Some(failed(error, None)));
        };
        let other = live.filter(|live| *live != gate.version);
        let known = match other {
            Some(other) => self.live_score(workflow, other, gate).await?,
            None => LiveScore::Unknown,
        };
        let known_score = match known {
            LiveScore::Known(score) => Some(score),
            _ => None,
        };
        if score + PRECISION < gate.threshold {
            let error = format!("the score {score:.4} is below the threshold {}", gate.threshold);
            return Ok(Some(failed(error, known_score)));
        }
        let passed = |live_score| Decided { status: GateStatus::Passed, live, live_score, error: None };
        Ok(match (other, known) {
            (None, _) => Some(passed(live.map(|_| score))),
            (Some(_), LiveScore::Known(of_live)) if score + PRECISION >= of_live - gate.max_drop => {
                Some(passed(Some(of_live)))
            }
            (Some(other), LiveScore::Known(of_live)) => {
                let error = format!(
                    "the score {score:.4} is lower than the {of_live:.4} of the live version {other} by more than {}",
                    gate.max_drop
                );
                Some(failed(error, Some(of_live)))
            }
            (Some(other), LiveScore::Failed(error)) => {
                Some(failed(format!("the live version {other} could not be evaluated: {error}"), None))
            }
            (Some(_), LiveScore::Pending) => None,
            (Some(other), LiveScore::Unknown) => {
                self.evaluate_live(workflow, other, gate).await?;
                None
            }
        })
    }

    /// Adds an evaluation of the live version on the gate's cases.
    async fn evaluate_live(
        &mut self,
        workflow: Uuid,
        version: i32,
        gate: &RunningGate,
    ) -> Result<(), StoreError> {
        let new = NewEvaluation {
            run_id: self.store.ids().uuid()?,
            workflow_id: workflow,
            workspace_id: gate.workspace_id,
            version,
            key: &gate.key,
            request: &gate.request,
        };
        new.insert(&mut self.connection, self.store.now()).await
    }

    /// Returns the live version's newest result on the same cases.
    async fn live_score(
        &mut self,
        workflow: Uuid,
        version: i32,
        gate: &RunningGate,
    ) -> Result<LiveScore, StoreError> {
        let known: Vec<EarlierEvaluation> = diesel::sql_query(
            "SELECT score, error, fingerprint, finished_at FROM gate_evaluations
             WHERE workflow_id = $1 AND version = $2 AND key = $3 ORDER BY run_id DESC",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<Integer, _>(version)
        .bind::<Bytea, _>(&gate.key)
        .load(&mut *self.connection)
        .await?;
        let with_score =
            known.iter().find_map(|one| one.score.filter(|_| one.fingerprint == gate.fingerprint));
        if let Some(score) = with_score {
            return Ok(LiveScore::Known(score));
        }
        if known.iter().any(|one| one.finished_at.is_none()) {
            return Ok(LiveScore::Pending);
        }
        // An older failure may no longer apply.
        let failed = known.into_iter().find(|one| one.finished_at.is_some_and(|at| at >= gate.created_at));
        Ok(match failed {
            Some(EarlierEvaluation { error: Some(error), .. }) => LiveScore::Failed(error),
            Some(_) => LiveScore::Failed("cases were erased meanwhile".to_owned()),
            None => LiveScore::Unknown,
        })
    }
}
