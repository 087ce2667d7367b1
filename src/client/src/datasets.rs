//! Datasets: stored cases that trainings and evaluations use.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use wire::operation::Operation;
use wire::operations::datasets;
use wire::{
    CreateDataset, CreateDatasetVersion, DatasetCase, DatasetRecord, KeepRunAsCase, KeptCase, Listed,
    SavedDataset,
};

use crate::call::{texts, with_json};
use crate::client::{Bearer, Client};
use crate::{Answer, ClientError, Part};

/// Added to the response timeout: a request may carry 64 MiB of cases.
const UPLOAD_ALLOWANCE: Duration = Duration::from_secs(120);

/// Each call takes a workflow's id or handle and a dataset's id or name, and fails as [`Answer::ok`] does.
impl Client {
    /// `GET /api/workflows/{ref}/datasets`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn datasets(&self, workflow: &str, part: &Part) -> Result<Listed<DatasetRecord>, ClientError> {
        self.read(&datasets::LIST, &[workflow], &part.query()).await?.ok()
    }

    /// `POST /api/workflows/{ref}/datasets`: creates a dataset.
    ///
    /// # Errors
    /// See above.
    pub async fn create_dataset(
        &self,
        workflow: &str,
        new: &CreateDataset,
    ) -> Result<SavedDataset, ClientError> {
        self.send_cases(&datasets::CREATE, &[workflow], new).await?.ok()
    }

    /// `POST /api/workflows/{ref}/datasets/{id}/versions`: creates a dataset version. The flag is false if the latest
    /// version had the same cases.
    ///
    /// # Errors
    /// See above.
    pub async fn create_dataset_version(
        &self,
        workflow: &str,
        dataset: &str,
        new: &CreateDatasetVersion,
    ) -> Result<(SavedDataset, bool), ClientError> {
        let answer = self.send_cases(&datasets::ADD_VERSION, &[workflow, dataset], new).await?;
        Ok((answer.ok()?, answer.status == 201))
    }

    async fn send_cases(
        &self,
        operation: &Operation,
        values: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer, ClientError> {
        let answer = self.send_cases_once(operation, values, body).await?;
        match self.completed(operation, values, &answer).await? {
            Some(whole) => self.send_cases_once(operation, &texts(&whole), body).await,
            None => Ok(answer),
        }
    }

    async fn send_cases_once(
        &self,
        operation: &Operation,
        values: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer, ClientError> {
        let url = self.place(operation, values)?;
        let request = with_json(self.request(Method::POST, url, Bearer::Service), Some(body));
        self.answer_after(request, UPLOAD_ALLOWANCE).await
    }

    /// `GET /api/workflows/{ref}/datasets/{id}`: one dataset.
    ///
    /// # Errors
    /// See above.
    pub async fn dataset(&self, workflow: &str, dataset: &str) -> Result<DatasetRecord, ClientError> {
        self.read(&datasets::READ, &[workflow, dataset], &[]).await?.ok()
    }

    /// `GET /api/workflows/{ref}/datasets/{id}/cases`: part of a version's cases; by default of the latest version.
    ///
    /// # Errors
    /// See above.
    pub async fn dataset_cases(
        &self,
        workflow: &str,
        dataset: &str,
        version: Option<u32>,
        part: &Part,
    ) -> Result<Listed<DatasetCase>, ClientError> {
        let mut query = part.query();
        query.extend(version.map(|version| ("version", version.to_string())));
        self.read(&datasets::CASES, &[workflow, dataset], &query).await?.ok()
    }

    /// `DELETE /api/workflows/{ref}/datasets/{id}`: deletes a dataset.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_dataset(&self, workflow: &str, dataset: &str) -> Result<(), ClientError> {
        self.change(&datasets::DELETE, &[workflow, dataset], None::<&()>).await?.done()
    }

    /// `POST /api/runs/{id}/case`: adds an ended run as a case. The flag is false if the dataset already had it.
    ///
    /// # Errors
    /// See above.
    pub async fn keep_run_as_case(
        &self,
        run: &str,
        wanted: &KeepRunAsCase,
    ) -> Result<(KeptCase, bool), ClientError> {
        let answer = self.change(&datasets::KEEP_RUN, &[run], Some(wanted)).await?;
        Ok((answer.ok()?, answer.status == 201))
    }
}
