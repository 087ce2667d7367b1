//! Workflows and their versions.

use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use wire::{
    CreateVersion, CreateWorkflow, PublicWorkflow, PublishRequest, Published, VersionRecord, WorkflowRecord,
};

use crate::client::{Bearer, Client};
use crate::{Answer, ClientError};

/// Every call takes a workflow's id or handle, and fails as [`Answer::ok`] does.
impl Client {
    /// `POST /api/workflows`: makes a workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn create_workflow(&self, new: &CreateWorkflow) -> Result<WorkflowRecord, ClientError> {
        self.post(&["api", "workflows"], Some(new)).await?.ok()
    }

    /// `GET /api/workflows`: the newest workflows.
    ///
    /// # Errors
    /// See above.
    pub async fn workflows(&self) -> Result<Vec<WorkflowRecord>, ClientError> {
        self.get(&["api", "workflows"]).await?.ok()
    }

    /// `GET /api/workflows/{ref}`: one workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn workflow(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.get(&["api", "workflows", workflow]).await?.ok()
    }

    /// `GET /api/workflows/{ref}/public`: what anybody may know of a published workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn public_workflow(&self, workflow: &str) -> Result<PublicWorkflow, ClientError> {
        self.get(&["api", "workflows", workflow, "public"]).await?.ok()
    }

    /// `POST /api/workflows/{ref}/versions`: saves a version. The flag is false when the newest was the same already.
    ///
    /// # Errors
    /// See above.
    pub async fn save_version(
        &self,
        workflow: &str,
        version: &CreateVersion,
    ) -> Result<(VersionRecord, bool), ClientError> {
        let answer = self.post(&["api", "workflows", workflow, "versions"], Some(version)).await?;
        Ok((answer.ok()?, answer.status == 201))
    }

    /// `GET /api/workflows/{ref}/versions/{n}`: one version.
    ///
    /// # Errors
    /// See above.
    pub async fn version(&self, workflow: &str, number: i32) -> Result<VersionRecord, ClientError> {
        self.get(&["api", "workflows", workflow, "versions", &number.to_string()]).await?.ok()
    }

    /// `POST /api/workflows/{ref}/publish`: opens the chat to the public, or changes whether it asks for a login.
    /// What the request does not say stays as it is.
    ///
    /// # Errors
    /// See above.
    pub async fn publish(&self, workflow: &str, request: &PublishRequest) -> Result<Published, ClientError> {
        self.post(&["api", "workflows", workflow, "publish"], Some(request)).await?.ok()
    }

    /// `POST /api/workflows/{ref}/publish/revoke`: closes the chat again.
    ///
    /// # Errors
    /// See above.
    pub async fn unpublish(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.post(&["api", "workflows", workflow, "publish", "revoke"], None::<&()>).await?.ok()
    }

    async fn get(&self, segments: &[&str]) -> Result<Answer, ClientError> {
        self.answer(self.request(Method::GET, self.url(segments)?, Bearer::Service)).await
    }

    async fn post(&self, segments: &[&str], body: Option<&impl Serialize>) -> Result<Answer, ClientError> {
        let request = self.request(Method::POST, self.url(segments)?, Bearer::Service);
        self.answer(with_json(request, body)).await
    }
}

fn with_json(request: RequestBuilder, body: Option<&impl Serialize>) -> RequestBuilder {
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}
