//! Reads trainings and evaluations with their related rows.

use serde_json::Value;
use store::{CaseFilter, CaseKey, StoreError, StoredCheckpoint, StoredRun, StoredTraining, TrainingFilter};
use training::read_stored_case;
use uuid::Uuid;
use wire::{CandidateRecord, CaseRecord, TrainingRecord, TrainingState};

use super::Trainings;
use super::decided::Decided;
use super::records::{case_record, record};
use crate::text::stored_json;

/// A page of case results.
pub struct CasesPage {
    /// At most the requested number.
    pub cases: Vec<CaseRecord>,
    /// The key after which the next page starts; `None` after the last page.
    pub next: Option<CaseKey>,
}

impl Trainings {
    /// Returns a training or an evaluation.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn record(&self, run: Uuid) -> Result<Option<TrainingRecord>, StoreError> {
        let store = &self.ports.store;
        let Some((stored, version)) = store.numbered_run(run).await? else { return Ok(None) };
        let Some(training) = store.training(run).await? else { return Ok(None) };
        let best = self.best_of(&training).await?;
        Ok(Some(record(&stored, version, &training, best.as_ref())))
    }

    pub(super) async fn best_of(
        &self,
        training: &StoredTraining,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let store = &self.ports.store;
        store.best_checkpoint(training.workflow_id, &training.fingerprint, &training.judges).await
    }

    /// Returns a workflow's trainings and evaluations in this state and before this one, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn of_workflow(
        &self,
        workflow: Uuid,
        status: Option<TrainingState>,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<TrainingRecord>, StoreError> {
        let store = &self.ports.store;
        let filter = TrainingFilter { status, before };
        let ids = store.trainings_of_workflow(workflow, filter, limit).await?;
        let runs: Vec<(StoredRun, Option<i32>)> = store.numbered_runs(&ids).await?;
        let trainings = store.trainings(&ids).await?;
        let mut records = Vec::new();
        for (run, version) in &runs {
            let Some(training) = trainings.iter().find(|training| training.run_id == run.id) else {
                continue;
            };
            let best = self.best_of(training).await?;
            records.push(record(run, *version, training, best.as_ref()));
        }
        Ok(records)
    }

    /// Returns a training's candidates with numbers above `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn candidates(
        &self,
        run: Uuid,
        after: i32,
        limit: i64,
    ) -> Result<Vec<CandidateRecord>, StoreError> {
        let rows = self.ports.store.candidates_of_run(run, after, limit).await?;
        Ok(rows.iter().filter_map(|(_, record)| serde_json::from_str(record).ok()).collect())
    }

    /// Returns case results ordered by candidate, case and sample, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn cases(
        &self,
        run: Uuid,
        filter: &CaseFilter,
        after: Option<CaseKey>,
        limit: i64,
    ) -> Result<CasesPage, StoreError> {
        let store = &self.ports.store;
        let nothing = CasesPage { cases: Vec::new(), next: None };
        let Some(training) = store.training(run).await? else { return Ok(nothing) };
        let Ok(decided) = serde_json::from_str::<Decided>(&training.start) else { return Ok(nothing) };
        let request: Value = stored_json(&training.request).unwrap_or_default();
        let evaluators = request.get("evaluators").and_then(Value::as_array).into_iter().flatten();
        let ids = evaluators.filter_map(|evaluator| evaluator.get("id")?.as_str().map(str::to_owned));
        let evaluators: Vec<String> = ids.collect();
        let mut rows = store.cases_of_run(run, filter, after, limit.saturating_add(1)).await?;
        let has_more = i64::try_from(rows.len()).is_ok_and(|found| found > limit);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = rows.last().filter(|_| has_more);
        let next = last.map(|row| (row.candidate, row.case_index, row.sample));
        let mut cases = Vec::new();
        for row in &rows {
            let content =
                store.case_of_version(training.dataset_id, training.dataset_version, row.case_index);
            let content = content.await?.and_then(|content| stored_json(&content).ok()).unwrap_or_default();
            let index = u32::try_from(row.case_index).unwrap_or_default();
            let Some(case) = read_stored_case(&content, index) else { continue };
            cases.extend(case_record(row, &case, decided.kind, &evaluators, filter.with_details));
        }
        Ok(CasesPage { cases, next })
    }
}
