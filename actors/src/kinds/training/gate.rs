//! Gate evaluations: started for saved versions, and settled with their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use store::{GateEvaluation, GateResult, StoreError, WorkflowRef};
use training::Evaluated;
use training::evaluators::{named_workflows, with_versions};
use training::optimize::StopReason;
use training::request::read_evaluation;
use uuid::Uuid;
use wire::{FieldError, RolloutGate, TrainingKind};

use super::prepare::{Prepared, Refused, Wanted};
use super::session::TrainingSession;
use super::{TrainingKey, Trainings};
use crate::kinds::workflow::RunStartError;
use crate::plans::{LoadedVersion, PlanError};
use crate::text::stored_json;

/// A gate with pinned versions.
pub struct FixedGate {
    /// The gate as shown to its author.
    pub gate: RolloutGate,
    /// JSON: the object `evaluation`, with ids in place of names.
    pub evaluation: String,
}

/// The trigger of evaluations that a gate starts.
pub(super) const GATE: &str = "gate";

/// Maximum problems named in a gate's error.
const NAMED_PROBLEMS: usize = 3;

impl Trainings {
    /// Starts pending gate evaluations, and settles those whose runs have ended without a result. Other instances may
    /// do the same concurrently.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub(crate) async fn advance_gates(&self) -> Result<(), StoreError> {
        for evaluation in self.ports.store.unfinished_gate_evaluations().await? {
            if let Err(error) = self.advance_gate(&evaluation).await {
                let (run, workflow) = (evaluation.run_id, evaluation.workflow_id);
                tracing::warn!(%run, %workflow, %error, "failed to advance the gate of a version; retrying");
            }
        }
        Ok(())
    }

    async fn advance_gate(&self, evaluation: &GateEvaluation) -> Result<(), StoreError> {
        let failure = match evaluation.ended_at {
            Some(_) => Some(why_ended(evaluation.run_error.as_deref())),
            None => match self.start_evaluation(evaluation).await {
                // The version fails the gate.
                Err(error @ StoreError::Corrupt(_)) => {
                    kernel::warn_once_a_minute!("gate.not_started", run = %evaluation.run_id, %error, "failed to start the evaluation of a gate");
                    Some(format!("the version cannot be evaluated: {error}"))
                }
                started => started?,
            },
        };
        let Some(error) = failure else { return Ok(()) };
        let result = GateResult { score: Err(error), fingerprint: Vec::new() };
        let _changing = self.ports.plans.changing(evaluation.workflow_id);
        self.ports.store.settle_gate_evaluation(None, evaluation.run_id, &result).await?;
        Ok(())
    }

    /// Starts an evaluation; returns the reason if that is impossible. Temporary failures are retried in the next
    /// round.
    async fn start_evaluation(&self, evaluation: &GateEvaluation) -> Result<Option<String>, StoreError> {
        let digest = digest(&SHA256, evaluation.request.as_bytes()).as_ref().to_vec();
        let key = TrainingKey { key: None, run: Some(evaluation.run_id), digest };
        let prepared = match self.prepare_evaluation(evaluation).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(impossible)) => return Ok(Some(impossible)),
            Err(Refused::Invalid(problems)) => {
                let named = problems.iter().take(NAMED_PROBLEMS);
                let texts = named.map(|problem| format!("{}: {}", problem.pointer, problem.message));
                let texts = texts.collect::<Vec<_>>().join("; ");
                return Ok(Some(format!("the version cannot be evaluated: {texts}")));
            }
            Err(Refused::Store(error)) => return Err(error),
            Err(Refused::Code(error)) => {
                tracing::warn!(run = %evaluation.run_id, ?error, "failed to check the code of a gate; retrying");
                return Ok(None);
            }
        };
        match self.start(prepared, key).await {
            Ok(_) => Ok(None),
            Err(RunStartError::KeyReused) => Ok(Some("the id of the evaluation is in use".to_owned())),
            // A retry would read all cases each time.
            Err(RunStartError::Full(full)) => Ok(Some(format!("the evaluation cannot be stored: {full}"))),
            Err(RunStartError::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(run = %evaluation.run_id, %error, "failed to start the evaluation of a gate; retrying");
                Ok(None)
            }
        }
    }

    /// Prepares the evaluation; returns a text if the version cannot be evaluated at all.
    async fn prepare_evaluation(
        &self,
        evaluation: &GateEvaluation,
    ) -> Result<Result<Prepared, String>, Refused> {
        let (store, plans) = (&self.ports.store, &self.ports.plans);
        let Some(stored) = store.version(evaluation.workflow_id, evaluation.version).await? else {
            return Ok(Err("the version is not found".to_owned()));
        };
        let version = match plans.version(stored.id).await {
            Ok(version) => version,
            Err(PlanError::Store(error)) => return Err(error.into()),
            Err(error @ (PlanError::Graph(..) | PlanError::Missing(_))) => return Ok(Err(error.to_string())),
        };
        let wanted = Wanted {
            workspace: evaluation.workspace_id,
            version,
            has_graph: false,
            kind: TrainingKind::Evaluation,
            request: stored_json(&evaluation.request).unwrap_or_default(),
            inputs: Map::new(),
            config: Map::new(),
        };
        let mut prepared = self.prepare(wanted).await?;
        prepared.decided.is_gate = true;
        Ok(Ok(prepared))
    }

    /// Pins the gate to the current versions, or returns all problems: checked as an evaluation of this version, which
    /// is not started; without a version, as far as possible.
    ///
    /// # Errors
    /// [`Refused`] with pointers into `/gate`.
    pub async fn check_gate(
        &self,
        workspace: Uuid,
        workflow: Uuid,
        version: Option<Arc<LoadedVersion>>,
        gate: RolloutGate,
    ) -> Result<FixedGate, Refused> {
        let request = Value::Object(gate.evaluation(&gate.dataset, gate.dataset_version));
        match version {
            Some(version) => {
                let number = version.number.unwrap_or_default();
                let kind = TrainingKind::Evaluation;
                let (inputs, config) = (Map::new(), Map::new());
                let wanted = Wanted { workspace, version, has_graph: false, kind, request, inputs, config };
                self.prepare(wanted).await.map_err(|refused| in_gate(refused, number))?;
            }
            None => {
                let mut problems = Vec::new();
                read_evaluation(&request, "/evaluation", &mut problems);
                if !problems.is_empty() {
                    return Err(in_gate(Refused::Invalid(problems), 0));
                }
            }
        }
        self.fixed(workspace, workflow, gate).await.map_err(|refused| in_gate(refused, 0))
    }

    /// Pins the gate to the current versions.
    async fn fixed(
        &self,
        workspace: Uuid,
        workflow: Uuid,
        mut gate: RolloutGate,
    ) -> Result<FixedGate, Refused> {
        let invalid = |pointer: &str, code: &'static str, message: String| {
            Refused::Invalid(vec![FieldError::new(pointer, code, message)])
        };
        let Some(dataset) = self.ports.store.dataset(workflow, &gate.dataset).await? else {
            let message = format!("this workflow has no dataset '{}'", gate.dataset);
            return Err(invalid("/evaluation/dataset/id", "dataset_not_found", message));
        };
        let version = *gate.dataset_version.get_or_insert(dataset.version);
        if self.ports.store.dataset_size(dataset.id, version).await?.is_none() {
            let message = format!("the dataset has no version {version}; its latest is {}", dataset.version);
            return Err(invalid("/evaluation/dataset/version", "dataset_not_found", message));
        }
        let mut judges = BTreeMap::new();
        for named in named_workflows(&gate.evaluators) {
            let Some(judge) = self.judge(workspace, &named.0, named.1).await? else {
                let message = format!("this workspace has no workflow '{}' with a version", named.0);
                return Err(invalid("/evaluation/evaluators", "evaluator_not_found", message));
            };
            judges.insert(named, judge);
        }
        let judge = |workflow: &str, version| judges.get(&(workflow.to_owned(), version)).copied();
        let by_id =
            |workflow: &str, version| judge(workflow, version).map(|(id, version)| (id.to_string(), version));
        let by_name = |workflow: &str, version| {
            judge(workflow, version).map(|(_, version)| (workflow.to_owned(), version))
        };
        let with_ids = RolloutGate { evaluators: with_versions(&gate.evaluators, by_id), ..gate.clone() };
        let evaluation = with_ids.evaluation(&dataset.id.to_string(), Some(version));
        gate.evaluators = with_versions(&gate.evaluators, by_name);
        Ok(FixedGate { gate, evaluation: Value::Object(evaluation).to_string() })
    }

    /// A judge workflow and its version: the named one, or else the live one.
    async fn judge(
        &self,
        workspace: Uuid,
        workflow: &str,
        version: Option<u32>,
    ) -> Result<Option<(Uuid, u32)>, StoreError> {
        let found = self.ports.store.workflow(&WorkflowRef::parse(workflow), workspace).await?;
        let Some(found) = found.filter(|found| found.workspace_id == workspace) else { return Ok(None) };
        let live = found.live_version.and_then(|live| u32::try_from(live).ok());
        Ok(version.or(live).map(|version| (found.id, version)))
    }

    /// Wakes the gate checks after versions were saved or a gate has changed.
    pub fn wake_gates(&self) {
        self.ports.rollouts.gates();
    }
}

/// Maps problems in an evaluation to the gate. `number`: the version that was checked.
fn in_gate(refused: Refused, number: i32) -> Refused {
    let Refused::Invalid(problems) = refused else { return refused };
    let placed = |problem: FieldError| match problem.pointer.strip_prefix("/evaluation") {
        Some("/dataset/id") => FieldError { pointer: "/gate/dataset".to_owned(), ..problem },
        Some("/dataset/version") => FieldError { pointer: "/gate/dataset_version".to_owned(), ..problem },
        Some(inside) => FieldError { pointer: format!("/gate{inside}"), ..problem },
        // A problem in the graph.
        None => {
            let message = format!("version {number} at {}: {}", problem.pointer, problem.message);
            FieldError { pointer: "/gate".to_owned(), message, ..problem }
        }
    };
    Refused::Invalid(problems.into_iter().map(placed).collect())
}

/// The reason why a run has ended without settling its evaluation.
fn why_ended(error: Option<&str>) -> String {
    let error = error.and_then(|error| stored_json(error).ok());
    let message = error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str);
    format!("the evaluation ended without a result: {}", message.unwrap_or("it was ended"))
}

/// Stores a gate evaluation's result, and its effect on the workflow's gates, before the run ends. A later life finds
/// the result stored.
pub(super) async fn settle(session: &TrainingSession, evaluated: &Evaluated) {
    if !session.decided.is_gate {
        return;
    }
    let cases = session.cases.len();
    let score = match evaluated.stop_reason {
        None => Ok(evaluated.summary.score),
        Some(StopReason::Cancelled) => Err("the evaluation was cancelled".to_owned()),
        Some(reason) => Err(format!(
            "the evaluation ended after {} of {cases} cases: {}",
            evaluated.summary.n_cases,
            reason.as_str()
        )),
    };
    let result = GateResult { score, fingerprint: session.training.fingerprint.clone() };
    let ports = &session.ports;
    let settle = || async {
        let _changing = ports.plans.changing(session.workflow);
        ports.store.settle_gate_evaluation(Some(ports.writer), session.run, &result).await
    };
    session.writer.ask("settling a gate", settle).await;
}
