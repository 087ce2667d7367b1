//! Trainings and evaluations, and the checkpoints that trainings write.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use wire::operations::{runs, trainings as training, workflows};
use wire::{
    CandidateRecord, CaseRecord, CheckpointRecord, Listed, PromoteCheckpoint, RescoreTraining, SavedVersion,
    StartTraining, TrainingPlan, TrainingRecord,
};

use crate::call::with_json;
use crate::client::{Bearer, Client};
use crate::follow::StreamSource;
use crate::{Answer, ClientError, Part, ResumingTraining, TrainingStream};

/// Added to the response timeout: a request may carry 64 MiB of cases, which the service checks before it responds.
const UPLOAD_ALLOWANCE: Duration = Duration::from_secs(120);

/// A filter for training or evaluation cases. A case must match every field that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CasesFilter {
    /// The candidate whose prompts executed the case; 0 is the seed.
    pub candidate: Option<u32>,
    /// The split: `train`, `val` or `test`.
    pub split: Option<String>,
    /// Whether to return failed cases only.
    pub failed: bool,
    /// Whether to return the traces as well.
    pub trace: bool,
}

impl CasesFilter {
    fn query(&self, part: &Part) -> Vec<(&'static str, String)> {
        let mut query = part.query();
        query.extend(self.candidate.map(|number| ("candidate", number.to_string())));
        query.extend(self.split.clone().map(|split| ("split", split)));
        query.extend(self.failed.then(|| ("failed", "true".to_owned())));
        query.extend(self.trace.then(|| ("trace", "true".to_owned())));
        query
    }
}

/// Each call takes a workflow's id or handle, and fails as [`Answer::ok`] does.
impl Client {
    /// `GET /api/workflows/{ref}/trainer/runs`: a page with trainings and evaluations, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn trainings(
        &self,
        workflow: &str,
        part: &Part,
    ) -> Result<Listed<TrainingRecord>, ClientError> {
        self.read(&training::LIST, &[workflow], &part.query()).await?.ok()
    }

    /// `POST /api/workflows/{ref}/trainer/runs`: starts a training or an evaluation. Repeating the request with the
    /// same `run_id` starts nothing new.
    ///
    /// # Errors
    /// See above.
    pub async fn start_training(
        &self,
        workflow: &str,
        wanted: &StartTraining,
    ) -> Result<TrainingRecord, ClientError> {
        self.send_training(workflow, wanted, false).await?.ok()
    }

    /// `POST /api/workflows/{ref}/trainer/runs?dry_run=true`: the plan for the request; starts nothing.
    ///
    /// # Errors
    /// See above.
    pub async fn plan_training(
        &self,
        workflow: &str,
        wanted: &StartTraining,
    ) -> Result<TrainingPlan, ClientError> {
        self.send_training(workflow, wanted, true).await?.ok()
    }

    async fn send_training(
        &self,
        workflow: &str,
        wanted: &StartTraining,
        is_dry_run: bool,
    ) -> Result<Answer, ClientError> {
        let answer = self.send_training_once(workflow, wanted, is_dry_run).await?;
        match self.completed(&training::START, &[workflow], &answer).await?.as_deref() {
            Some([whole]) => self.send_training_once(whole, wanted, is_dry_run).await,
            _ => Ok(answer),
        }
    }

    async fn send_training_once(
        &self,
        workflow: &str,
        wanted: &StartTraining,
        is_dry_run: bool,
    ) -> Result<Answer, ClientError> {
        let mut url = self.place(&training::START, &[workflow])?;
        if is_dry_run {
            url.query_pairs_mut().append_pair("dry_run", "true");
        }
        let request = with_json(self.request(Method::POST, url, Bearer::Service), Some(wanted));
        self.answer_after(request, UPLOAD_ALLOWANCE).await
    }

    /// `GET /api/workflows/{ref}/trainer/runs/{id}`: one training or evaluation.
    ///
    /// # Errors
    /// See above.
    pub async fn training(&self, workflow: &str, id: &str) -> Result<TrainingRecord, ClientError> {
        self.read(&training::READ, &[workflow, id], &[]).await?.ok()
    }

    /// `GET /api/runs/{id}`: the workflow id of a run of any kind.
    ///
    /// # Errors
    /// See above.
    pub async fn workflow_of_run(&self, id: &str) -> Result<String, ClientError> {
        #[derive(Deserialize)]
        struct OwnedRun {
            workflow_id: String,
        }
        let run: OwnedRun = self.read(&runs::READ, &[id], &[]).await?.ok()?;
        Ok(run.workflow_id)
    }

    /// `GET …/trainer/runs/{id}/events`: the events after the given one, or from the first one. `None` if all were
    /// received.
    ///
    /// # Errors
    /// See above; [`ClientError::Protocol`] if the response is not an event stream.
    pub async fn training_events(
        &self,
        workflow: &str,
        id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Option<TrainingStream>, ClientError> {
        self.read_stream(&source(workflow, id), id, last_event_id).await
    }

    /// Follows a training or an evaluation to its end over broken connections, after the given event or from the first
    /// one.
    #[must_use]
    pub fn follow_training(&self, workflow: &str, id: &str, last_event_id: Option<&str>) -> ResumingTraining {
        ResumingTraining::rejoin(self, source(workflow, id), id, last_event_id)
    }

    /// `GET …/trainer/runs/{id}/candidates`: a page of a training's candidates.
    ///
    /// # Errors
    /// See above.
    pub async fn candidates(
        &self,
        workflow: &str,
        id: &str,
        part: &Part,
    ) -> Result<Listed<CandidateRecord>, ClientError> {
        self.read(&training::CANDIDATES, &[workflow, id], &part.query()).await?.ok()
    }

    /// `GET …/trainer/runs/{id}/cases`: a page of the executed cases.
    ///
    /// # Errors
    /// See above.
    pub async fn cases(
        &self,
        workflow: &str,
        id: &str,
        filter: &CasesFilter,
        part: &Part,
    ) -> Result<Listed<CaseRecord>, ClientError> {
        self.read(&training::CASES, &[workflow, id], &filter.query(part)).await?.ok()
    }

    /// `GET …/trainer/runs/{id}/report`: the report as JSON.
    ///
    /// # Errors
    /// See above.
    pub async fn training_report(&self, workflow: &str, id: &str) -> Result<Value, ClientError> {
        self.read(&training::REPORT, &[workflow, id], &[]).await?.ok()
    }

    /// `GET …/trainer/runs/{id}/report?format=html`: the report as a page.
    ///
    /// # Errors
    /// See above.
    pub async fn training_report_page(&self, workflow: &str, id: &str) -> Result<String, ClientError> {
        let answer = self.read(&training::REPORT, &[workflow, id], &[("format", "html".to_owned())]).await?;
        answer.done().map(|()| answer.text())
    }

    /// `GET …/trainer/runs/{id}/curve.svg`: the scores by epoch as a picture.
    ///
    /// # Errors
    /// See above.
    pub async fn training_curve(&self, workflow: &str, id: &str) -> Result<String, ClientError> {
        let answer = self.read(&training::CURVE, &[workflow, id], &[]).await?;
        answer.done().map(|()| answer.text())
    }

    /// `POST …/trainer/runs/{id}/rescore`: judges the stored results with other evaluators, as a new evaluation.
    ///
    /// # Errors
    /// See above.
    pub async fn rescore_training(
        &self,
        workflow: &str,
        id: &str,
        wanted: &RescoreTraining,
    ) -> Result<TrainingRecord, ClientError> {
        self.change(&training::RESCORE, &[workflow, id], Some(wanted)).await?.ok()
    }

    /// `POST …/trainer/runs/{id}/pause`: pauses the run at the next case.
    ///
    /// # Errors
    /// See above.
    pub async fn pause_training(&self, workflow: &str, id: &str) -> Result<TrainingRecord, ClientError> {
        self.change(&training::PAUSE, &[workflow, id], None::<&()>).await?.ok()
    }

    /// `POST …/trainer/runs/{id}/resume`: resumes the run.
    ///
    /// # Errors
    /// See above.
    pub async fn resume_training(&self, workflow: &str, id: &str) -> Result<TrainingRecord, ClientError> {
        self.change(&training::RESUME, &[workflow, id], None::<&()>).await?.ok()
    }

    /// `POST …/trainer/runs/{id}/cancel`: cancels the run; the result so far is kept.
    ///
    /// # Errors
    /// See above.
    pub async fn cancel_training(&self, workflow: &str, id: &str) -> Result<TrainingRecord, ClientError> {
        self.change(&training::CANCEL, &[workflow, id], None::<&()>).await?.ok()
    }

    /// `GET /api/workflows/{ref}/trainer/checkpoints`: the newest checkpoints, 20 unless `limit` is given (1 to 200).
    ///
    /// # Errors
    /// See above.
    pub async fn checkpoints(
        &self,
        workflow: &str,
        limit: Option<u32>,
        best_only: bool,
    ) -> Result<Vec<CheckpointRecord>, ClientError> {
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        let best = best_only.then(|| ("best", "true".to_owned()));
        let query: Vec<_> = limit.into_iter().chain(best).collect();
        self.read(&training::CHECKPOINTS, &[workflow], &query).await?.ok()
    }

    /// `GET /api/workflows/{ref}/trainer/checkpoints/{id}`: one checkpoint.
    ///
    /// # Errors
    /// See above.
    pub async fn checkpoint(&self, workflow: &str, id: &str) -> Result<CheckpointRecord, ClientError> {
        self.read(&training::CHECKPOINT, &[workflow, id], &[]).await?.ok()
    }

    /// `POST /api/workflows/{ref}/versions`: saves a version with a checkpoint's config. The flag is false if the
    /// newest version was already identical.
    ///
    /// # Errors
    /// See above.
    pub async fn save_checkpoint(
        &self,
        workflow: &str,
        checkpoint: &str,
        notes: Option<&str>,
    ) -> Result<(SavedVersion, bool), ClientError> {
        let notes = notes.map(str::to_owned);
        let wanted = PromoteCheckpoint { checkpoint: checkpoint.to_owned(), metadata: None, notes };
        let answer = self.change(&workflows::SAVE_VERSION, &[workflow], Some(&wanted)).await?;
        Ok((answer.ok()?, answer.status == 201))
    }
}

fn source(workflow: &str, id: &str) -> StreamSource {
    StreamSource::new(&training::EVENTS, &[workflow, id], Bearer::Service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_filters_are_in_the_query() {
        assert!(CasesFilter::default().query(&Part::default()).is_empty());
        let filter = CasesFilter { candidate: Some(0), split: Some("val".into()), failed: true, trace: true };
        let query = filter.query(&Part { limit: Some(5), cursor: None });
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(query, ["limit=5", "candidate=0", "split=val", "failed=true", "trace=true"]);
    }
}
