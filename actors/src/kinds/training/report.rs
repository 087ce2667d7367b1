//! Builds a run's report from its rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use store::{CaseFilter, StoreError, StoredRun, StoredTraining};
use training::evaluators::{Verdict, read_evaluators};
use training::report::{JudgeCalibration, Report, ReportData};
pub use training::report::{curve_of as report_curve, html as report_page};
use training::{Case, RECORDED, calibrations, read_stored_case};
use uuid::Uuid;
use wire::{EvaluationResult, TrainingEvent, TrainingKind, TrainingNotice, TrainingResult};

use super::Trainings;
use super::decided::Decided;
use super::records::{checkpoint_summary, record};
use super::session::read_result;
use super::start::TrainingOptions;
use crate::run::overlaid;
use crate::text::stored_json;

/// Maximum candidates per query.
const PART: i64 = 200;

impl Trainings {
    /// Returns the report on a training or an evaluation; if it executes, the report so far.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn report(&self, run: Uuid) -> Result<Option<Report>, StoreError> {
        let store = &self.ports.store;
        let Some((stored, version)) = store.numbered_run(run).await? else { return Ok(None) };
        let Some(training) = store.training(run).await? else { return Ok(None) };
        let decided: Option<Decided> = serde_json::from_str(&training.start).ok();
        let best = self.best_of(&training).await?;
        let checkpoints = store.checkpoints_of_run(run).await?;
        let (epochs, more_warnings) = events(&store.events_for_report(run).await?);
        let mut warnings = decided.as_ref().map(|decided| decided.warnings.clone()).unwrap_or_default();
        warnings.extend(more_warnings);
        let output = stored.output.as_deref().and_then(|output| stored_json(output).ok());
        let kind = TrainingKind::from_name(&stored.trigger);
        let of_kind = |wanted: TrainingKind| output.clone().filter(|_| kind == Some(wanted));
        let result = of_kind(TrainingKind::Training).and_then(read::<TrainingResult>);
        let evaluation = of_kind(TrainingKind::Evaluation).and_then(read::<EvaluationResult>);
        let trainable = decided.as_ref().map(|decided| decided.trainable.as_slice()).unwrap_or_default();
        let names = store.names_of_training(stored.workflow_id, training.dataset_id).await?;
        let is_evaluation = kind == Some(TrainingKind::Evaluation);
        let data = ReportData {
            workflow_name: names.workflow,
            dataset_name: names.dataset,
            distribution: if is_evaluation { store.score_distribution(run).await? } else { Vec::new() },
            record: record(&stored, version, &training, best.as_ref()),
            splits: decided.as_ref().and_then(|decided| decided.splits.clone()),
            epochs,
            candidates: self.all_candidates(run).await?,
            checkpoints: checkpoints.iter().map(checkpoint_summary).collect(),
            seed_prompts: self.seed_prompts(&stored, trainable).await?,
            returned_prompts: result.as_ref().map(returned_texts).unwrap_or_default(),
            result,
            evaluation,
            warnings,
            judges: self.judges(&training).await?,
        };
        Ok(Some(Report::from(data)))
    }

    /// The agreement between model evaluators and people; empty if it was not measured.
    async fn judges(&self, training: &StoredTraining) -> Result<Vec<JudgeCalibration>, StoreError> {
        let store = &self.ports.store;
        let filter = CaseFilter {
            candidate: Some(i32::try_from(RECORDED).unwrap_or(i32::MAX)),
            ..CaseFilter::default()
        };
        let rows = store.cases_of_run(training.run_id, &filter, None, PART).await?;
        let results = rows.iter().filter_map(|row| {
            Some((usize::try_from(row.case_index).ok()?, read_result(&row.result)?.verdicts))
        });
        let results: Vec<(usize, Vec<Verdict>)> = results.collect();
        let (dataset, version) = (training.dataset_id, training.dataset_version);
        let mut cases: Vec<Case> = Vec::new();
        let mut verdicts: Vec<(usize, &[Verdict])> = Vec::new();
        for (place, of_case) in &results {
            let place = i32::try_from(*place).unwrap_or(i32::MAX);
            let Some(content) = store.case_of_version(dataset, version, place).await? else { continue };
            let Some(case) = stored_json(&content).ok().and_then(|it| read_stored_case(&it, 0)) else {
                continue;
            };
            verdicts.push((cases.len(), of_case));
            cases.push(case);
        }
        let request: Value = stored_json(&training.request).unwrap_or_default();
        let evaluators = request.get("evaluators").unwrap_or(&Value::Null);
        let evaluators = read_evaluators(evaluators, "", &mut Vec::new());
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        Ok(calibrations(&cases, &evaluators, &verdicts))
    }

    async fn all_candidates(&self, run: Uuid) -> Result<Vec<wire::CandidateRecord>, StoreError> {
        let (mut all, mut after) = (Vec::new(), -1);
        loop {
            let part = self.candidates(run, after, PART).await?;
            let Some(last) = part.last() else { return Ok(all) };
            after = i32::try_from(last.candidate_id).unwrap_or(i32::MAX);
            all.extend(part);
        }
    }

    /// The texts of these prompts before the training.
    async fn seed_prompts(
        &self,
        run: &StoredRun,
        trainable: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        if trainable.is_empty() {
            return Ok(BTreeMap::new());
        }
        let version = self.ports.store.version_by_id(run.version_id).await?;
        let below = version.and_then(|version| version.runnable_config).unwrap_or_default();
        let options =
            run.options.as_deref().and_then(|options| serde_json::from_str::<TrainingOptions>(options).ok());
        let config = overlaid(&below, &options.unwrap_or_default().config);
        let text = |name: &String| {
            let prompt = config.get("prompts")?.get(name)?;
            let text = prompt.get("text")?.as_str()?;
            Some((name.clone(), with_demos(text, prompt.get("demos"))))
        };
        Ok(trainable.iter().filter_map(text).collect())
    }
}

/// Epochs and warnings from the stored events.
fn events(stored: &[String]) -> (Vec<wire::EpochComplete>, Vec<TrainingNotice>) {
    let (mut epochs, mut warnings) = (Vec::new(), Vec::new());
    for event in stored.iter().filter_map(|event| serde_json::from_str(event).ok()) {
        match event {
            TrainingEvent::TrainingEpochComplete(epoch) => epochs.push(epoch),
            TrainingEvent::TrainingWarning { code, message } => {
                warnings.push(TrainingNotice { code, message });
            }
            _ => {}
        }
    }
    (epochs, warnings)
}

fn read<T: serde::de::DeserializeOwned>(output: Value) -> Option<T> {
    serde_json::from_value(output).ok()
}

/// The returned prompts with their demos.
fn returned_texts(result: &TrainingResult) -> BTreeMap<String, String> {
    let demos = json!(result.demos);
    let text =
        |(name, text): (&String, &Value)| Some((name.clone(), with_demos(text.as_str()?, demos.get(name))));
    result.prompts.iter().filter_map(text).collect()
}

/// Appends each demo as a line to the text, for comparison in the report.
fn with_demos(text: &str, demos: Option<&Value>) -> String {
    let mut whole = text.to_owned();
    for demo in demos.and_then(Value::as_array).into_iter().flatten() {
        if !whole.ends_with('\n') {
            whole.push('\n');
        }
        whole.push_str(&demo.to_string());
    }
    whole
}
