//! Judges stored results again with other evaluators, without model calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{StoreError, StoredRun, StoredTraining};
use training::calls::Spent;
use training::evaluators::Evaluator;
use training::optimize::{JudgedRun, Round, Stop};
use training::request::read_evaluation;
use training::{Case, CaseContext, CaseRun, Pins, is_erased, judge, read_stored_case};
use uuid::Uuid;
use wire::{ErrorCode, FieldError, TrainingKind};

use super::Trainings;
use super::cases::ResultKey;
use super::datasets::{ReadDataset, as_rows, elsewhere};
use super::decided::Decided;
use super::lab::ActorLab;
use super::limits::check_sizes;
use super::outside;
use super::prepare::{Prepared, Refused, returned};
use super::session::read_result;
use super::start::TrainingOptions;
use crate::run::whole;
use crate::text::stored_json;

/// Maximum time of such a run, in seconds, because the author's functions and services judge. After that it ends with
/// the results so far, with reason `max_seconds`.
const MAX_SECONDS: u64 = 1_800;

/// The results that a run judges again; stored with its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OriginResults {
    /// The run with the results.
    pub(super) run: Uuid,
    /// The candidate whose results are judged.
    pub(super) candidate: i32,
    /// Each case's place in that run's dataset.
    pub(super) places: Vec<i32>,
}

/// The candidate whose results are judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RescoredCandidate {
    /// The returned prompts.
    #[default]
    Best,
    /// The prompts before the training.
    Seed,
    /// The candidate with this number.
    Number(u32),
}

/// The reason why a run's results cannot be judged again.
#[derive(Debug, thiserror::Error)]
pub enum NotRescored {
    /// It has not ended.
    #[error("the run has not ended")]
    NotEnded,
    /// Its results were deleted.
    #[error("the results of the run were deleted")]
    Erased,
    /// Problems in the request, or the database did not answer.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl From<StoreError> for NotRescored {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl Trainings {
    /// Prepares an evaluation of a run's stored results; `evaluators` as in a request. Calls no model.
    ///
    /// # Errors
    /// [`NotRescored`].
    pub async fn prepare_rescore(
        &self,
        origin: &StoredRun,
        evaluators: Value,
        candidate: RescoredCandidate,
    ) -> Result<Prepared, NotRescored> {
        if !origin.status.is_terminal() {
            return Err(NotRescored::NotEnded);
        }
        let training = self.ports.store.training(origin.id).await?.ok_or(NotRescored::Erased)?;
        let decided: Decided = serde_json::from_str(&training.start).map_err(|_| NotRescored::Erased)?;
        let repeats = repeats_of(&training);
        let request = json!({
            "dataset": {"id": "inline"}, "evaluators": evaluators, "repeats": repeats,
            "budget": {"max_seconds": MAX_SECONDS},
        });
        let read = check(&request)?;
        let version = self.ports.plans.usable_version(origin.version_id).await?.ok_or(NotRescored::Erased)?;
        let mut problems = Vec::new();
        outside::check(&self.ports, origin.workspace_id, &version.plan, &read, &mut problems).await?;
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        let (results, cases) = self.stored_results(origin, &training, &decided, candidate, repeats).await?;
        let rows = elsewhere(move || {
            let mut problems = Vec::new();
            let rows = as_rows(&cases, "/cases", &mut problems);
            if problems.is_empty() { Ok(ReadDataset::from_rows(rows)) } else { Err(problems) }
        });
        let ReadDataset { cases, fingerprint } = rows.await?.map_err(invalid)?;
        let options = origin
            .options
            .as_deref()
            .and_then(|options| serde_json::from_str::<TrainingOptions>(options).ok());
        let inputs = stored_json(&origin.inputs).ok().and_then(|inputs: Value| inputs.as_object().cloned());
        let planned = u64::try_from(cases.len()).unwrap_or(u64::MAX).saturating_mul(repeats);
        let judges = outside::judges_digest(evaluators, &read, &version.plan);
        Ok(Prepared {
            workspace: origin.workspace_id,
            version,
            inputs: inputs.unwrap_or_default(),
            config: options.unwrap_or_default().config,
            judges,
            request,
            decided: decisions(planned, decided.dataset_label, results),
            dataset: None,
            fingerprint,
            cases,
        })
    }

    /// The results that the run judges again, and their cases.
    async fn stored_results(
        &self,
        origin: &StoredRun,
        training: &StoredTraining,
        decided: &Decided,
        candidate: RescoredCandidate,
        repeats: u64,
    ) -> Result<(OriginResults, Vec<Case>), NotRescored> {
        let no_results =
            |message: String| Err(invalid(vec![FieldError::new("/candidate", "no_results", message)]));
        let Some(number) = self.number_of(origin, candidate).await? else {
            return no_results("the run has returned no prompts".to_owned());
        };
        let places = self.places(training, decided, number, repeats).await?;
        if places.is_empty() {
            return no_results(format!("candidate {number} has no results of scoring cases"));
        }
        let (places, cases) = self.cases_at(training, places).await?;
        if cases.is_empty() {
            return Err(NotRescored::Erased);
        }
        Ok((OriginResults { run: origin.id, candidate: number, places }, cases))
    }

    /// The candidate's number; `None` for the returned prompts of a training that returned none.
    async fn number_of(
        &self,
        origin: &StoredRun,
        candidate: RescoredCandidate,
    ) -> Result<Option<i32>, StoreError> {
        match candidate {
            RescoredCandidate::Number(number) => Ok(Some(i32::try_from(number).unwrap_or(i32::MAX))),
            RescoredCandidate::Best if origin.trigger == TrainingKind::Training.as_str() => {
                Ok(returned(&self.ports, origin.id).await?.map(|checkpoint| checkpoint.candidate))
            }
            RescoredCandidate::Seed | RescoredCandidate::Best => Ok(Some(0)),
        }
    }

    /// Places of scoring cases for which all of this candidate's results exist; in an evaluation, all cases score.
    async fn places(
        &self,
        training: &StoredTraining,
        decided: &Decided,
        candidate: i32,
        repeats: u64,
    ) -> Result<Vec<i32>, StoreError> {
        let keys = self.ports.store.case_keys(training.run_id).await?;
        let scoring =
            decided.splits.as_ref().map(|splits| splits.val.iter().copied().collect::<BTreeSet<_>>());
        let scores = |place: i32| match (&scoring, usize::try_from(place)) {
            (Some(scoring), Ok(place)) => scoring.contains(&place),
            (None, _) => true,
            (Some(_), Err(_)) => false,
        };
        let mut found: BTreeMap<i32, u64> = BTreeMap::new();
        for (of, place, sample) in keys {
            let is_wanted = of == candidate && u64::try_from(sample).is_ok_and(|sample| sample < repeats);
            if is_wanted && scores(place) {
                *found.entry(place).or_default() += 1;
            }
        }
        Ok(found.into_iter().filter(|(_, samples)| *samples == repeats).map(|(place, _)| place).collect())
    }

    /// The cases at these places, with their places, except for erased ones.
    async fn cases_at(
        &self,
        training: &StoredTraining,
        places: Vec<i32>,
    ) -> Result<(Vec<i32>, Vec<Case>), StoreError> {
        let dataset = (training.dataset_id, training.dataset_version);
        let contents =
            self.ports.store.cases_of_version(dataset.0, dataset.1, training.n_cases.into()).await?;
        elsewhere(move || {
            let (mut kept, mut cases) = (Vec::new(), Vec::new());
            for place in places {
                let content = usize::try_from(place).ok().and_then(|place| contents.get(place));
                let content: Option<Value> = content.and_then(|content| stored_json(content).ok());
                let Some(content) = content.filter(|content| !is_erased(content)) else { continue };
                let index = u32::try_from(cases.len()).unwrap_or(u32::MAX);
                let Some(case) = read_stored_case(&content, index) else { continue };
                kept.push(place);
                cases.push(case);
            }
            (kept, cases)
        })
        .await
    }
}

/// Samples per case in the original run, all of which are judged again.
fn repeats_of(training: &StoredTraining) -> u64 {
    let request = stored_json(&training.request).unwrap_or_default();
    let repeats = |pointer: &str| request.pointer(pointer)?.as_u64();
    repeats("/repeats").or_else(|| repeats("/optimizer/repeats")).unwrap_or(1)
}

/// The decisions for a run that judges `planned` stored results.
fn decisions(planned: u64, dataset_label: Option<String>, origin: OriginResults) -> Decided {
    Decided {
        kind: TrainingKind::Evaluation,
        optimizer: Value::Null,
        splits: None,
        trainable: Vec::new(),
        pins: Pins::default(),
        estimate: json!({
            "cases": {"min": planned, "expected": planned, "max": planned},
            "llm_calls": {"min": 0, "expected": 0, "max": 0},
        }),
        planned,
        calls_of_case: 0,
        optimizer_model: Map::new(),
        judge_model: Map::new(),
        warnings: Vec::new(),
        dataset_label,
        resumed_from: None,
        is_gate: false,
        origin: Some(origin),
    }
}

/// Rejects invalid evaluators, and those that would call a model.
fn check(request: &Value) -> Result<Vec<Evaluator>, NotRescored> {
    let mut problems = Vec::new();
    let nothing = Map::new();
    check_sizes(request, &nothing, &nothing, "", &mut problems);
    let read = read_evaluation(request, "", &mut problems);
    let evaluators = read.as_ref().map(|read| read.workload.evaluators.as_slice()).unwrap_or_default();
    for (place, _) in evaluators.iter().enumerate().filter(|(_, evaluator)| evaluator.asks_model()) {
        let message = "calls a model or a workflow; stored results are judged without calls";
        problems.push(FieldError::new(format!("/evaluators/{place}"), "evaluator_needs_model", message));
    }
    match read {
        Some(read) if problems.is_empty() => Ok(read.workload.evaluators),
        _ => Err(invalid(problems)),
    }
}

fn invalid(problems: Vec<FieldError>) -> NotRescored {
    NotRescored::Refused(Refused::Invalid(problems))
}

impl ActorLab<'_> {
    /// Judges a stored result from another run, and stores the verdicts as this run's result.
    pub(super) async fn judge_again(
        &self,
        origin: &OriginResults,
        case: &Case,
        place: usize,
        sample: u32,
        round: Round,
    ) -> Result<JudgedRun, Stop> {
        let session = self.session;
        let Some(at) = origin.places.get(place).copied() else { return Err(Stop::Lost) };
        let store = &session.ports.store;
        let read = || store.case_results(origin.run, origin.candidate, std::slice::from_ref(&at), true);
        let rows = session.writer.ask("a result of another run", read).await;
        let row = rows.into_iter().find(|row| u32::try_from(row.sample) == Ok(sample));
        let Some((row, result)) = row.and_then(|row| read_result(&row.result).map(|result| (row, result)))
        else {
            // Its retention has ended meanwhile.
            *self.failed.lock() = Some(whole(ErrorCode::RunContentErased));
            return Err(Stop::Lost);
        };
        let trace = result.trace_with(row.details.as_deref());
        let run = CaseRun { trace, ..result.into_parts().0 };
        let spent = Arc::default();
        let name = format!("{}-{}", origin.candidate, case.index);
        let verdicts = self
            .with_ports(async |ports| {
                let bench = session.bench(ports, sample, &name, &spent);
                let context = CaseContext {
                    split: row.split.as_deref(),
                    epoch: u32::try_from(row.epoch).ok().filter(|epoch| *epoch > 0),
                };
                judge(&session.evaluators, case, &run, context, &bench).await
            })
            .await;
        let Some(verdicts) = verdicts else { return Err(Stop::Budget) };
        self.warn_of_failing(&verdicts).await?;
        let key = ResultKey { candidate: 0, place, sample };
        self.store(key, round, &run, &verdicts, Spent::default()).await?;
        Ok(JudgedRun { run: Arc::new(run.without_details()), verdicts })
    }
}
