//! Workflows and their versions.

use wire::operation::Operation;
use wire::operations::{nodes, rollouts, workflows};
use wire::{
    CheckVersion, Checked, CreateVersion, CreateWorkflow, Listed, NodeTypeRecord, PublicWorkflow,
    PublishRequest, Published, PutRollout, Rollout, SavedVersion, SetLive, UpdateWorkflow, VersionDiff,
    VersionRecord, VersionSummary, WorkflowRecord, WorkflowUses,
};

use crate::{Client, ClientError};

/// A list page; the service chooses unset fields.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Maximum entries to return.
    pub limit: Option<u32>,
    /// The previous page's `next_cursor`.
    pub cursor: Option<String>,
}

impl Part {
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        limit.into_iter().chain(cursor).collect()
    }
}

/// Each call takes a workflow's id or handle, and fails as [`Answer::ok`] does.
impl Client {
    /// `POST /api/workflows`: creates a workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn create_workflow(&self, new: &CreateWorkflow) -> Result<WorkflowRecord, ClientError> {
        self.change(&workflows::CREATE, &[], Some(new)).await?.ok()
    }

    /// `GET /api/workflows`: the newest workflows, up to 1,000.
    ///
    /// # Errors
    /// See above.
    pub async fn workflows(&self) -> Result<Vec<WorkflowRecord>, ClientError> {
        self.read(&workflows::LIST, &[], &[]).await?.ok()
    }

    /// `GET /api/workflows`: a list page, newest first; optionally with archived workflows.
    ///
    /// # Errors
    /// See above.
    pub async fn list_workflows(
        &self,
        include_archived: bool,
        part: &Part,
    ) -> Result<Listed<WorkflowRecord>, ClientError> {
        let mut query = part.query();
        if include_archived {
            query.push(("include_archived", "true".to_owned()));
        }
        let answer = self.read(&workflows::LIST, &[], &query).await?;
        let next_cursor = answer.header("x-next-cursor").map(str::to_owned);
        Ok(Listed { data: answer.ok()?, next_cursor })
    }

    /// `GET /api/workflows/{ref}`: one workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn workflow(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.read(&workflows::READ, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}`: changes only the fields in the request.
    ///
    /// # Errors
    /// See above.
    pub async fn update_workflow(
        &self,
        workflow: &str,
        change: &UpdateWorkflow,
    ) -> Result<WorkflowRecord, ClientError> {
        self.change(&workflows::UPDATE, &[workflow], Some(change)).await?.ok()
    }

    /// `DELETE /api/workflows/{ref}`: archives a workflow and unpublishes it.
    ///
    /// # Errors
    /// See above.
    pub async fn archive(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.change(&workflows::ARCHIVE, &[workflow], None::<&()>).await?.ok()
    }

    /// `POST /api/workflows/{ref}/restore`: restores an archived workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn restore(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.change(&workflows::RESTORE, &[workflow], None::<&()>).await?.ok()
    }

    /// `GET /api/workflows/{ref}/uses`: triggers, apps and workflows that run a workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn workflow_uses(&self, workflow: &str) -> Result<WorkflowUses, ClientError> {
        self.read(&workflows::READ_USES, &[workflow], &[]).await?.ok()
    }

    /// `GET /api/workflows/{ref}/public`: the public data of a published workflow.
    ///
    /// # Errors
    /// See above.
    pub async fn public_workflow(&self, workflow: &str) -> Result<PublicWorkflow, ClientError> {
        self.read(&workflows::READ_PUBLIC, &[workflow], &[]).await?.ok()
    }

    /// `POST /api/workflows/{ref}/versions`: saves a version. The flag is false if the newest version was already
    /// identical.
    ///
    /// # Errors
    /// See above.
    pub async fn save_version(
        &self,
        workflow: &str,
        version: &CreateVersion,
    ) -> Result<(SavedVersion, bool), ClientError> {
        let answer = self.change(&workflows::SAVE_VERSION, &[workflow], Some(version)).await?;
        Ok((answer.ok()?, answer.status == 201))
    }

    /// `GET /api/workflows/{ref}/versions/{n}`: one version.
    ///
    /// # Errors
    /// See above.
    pub async fn version(&self, workflow: &str, number: i32) -> Result<VersionRecord, ClientError> {
        self.read(&workflows::READ_VERSION, &[workflow, &number.to_string()], &[]).await?.ok()
    }

    /// `GET /api/workflows/{ref}/versions`: a version list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn versions(&self, workflow: &str, part: &Part) -> Result<Listed<VersionSummary>, ClientError> {
        self.read(&workflows::LIST_VERSIONS, &[workflow], &part.query()).await?.ok()
    }

    /// `POST /api/workflows/{ref}/publish`: opens the chat to the public, or changes whether it requires a login.
    /// Fields not in the request stay unchanged.
    ///
    /// # Errors
    /// See above.
    pub async fn publish(&self, workflow: &str, request: &PublishRequest) -> Result<Published, ClientError> {
        self.change(&workflows::PUBLISH, &[workflow], Some(request)).await?.ok()
    }

    /// `GET /api/workflows/{ref}/rollout`: the rules by which versions become live.
    ///
    /// # Errors
    /// See above.
    pub async fn rollout(&self, workflow: &str) -> Result<Rollout, ClientError> {
        self.read(&rollouts::READ, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}/rollout`: sets the gate and the canary; absent ones are removed.
    ///
    /// # Errors
    /// See above.
    pub async fn put_rollout(&self, workflow: &str, rollout: &PutRollout) -> Result<Rollout, ClientError> {
        self.change(&rollouts::PUT, &[workflow], Some(rollout)).await?.ok()
    }

    /// `POST /api/workflows/{ref}/rollout/promote`: makes the canary live.
    ///
    /// # Errors
    /// See above.
    pub async fn promote_canary(&self, workflow: &str) -> Result<Rollout, ClientError> {
        self.change(&rollouts::PROMOTE, &[workflow], None::<&()>).await?.ok()
    }

    /// `POST /api/workflows/{ref}/versions/{number}/live`: makes a version live; with `force`, even after a failed
    /// gate.
    ///
    /// # Errors
    /// See above.
    pub async fn set_live(
        &self,
        workflow: &str,
        number: i32,
        force: bool,
    ) -> Result<WorkflowRecord, ClientError> {
        let body = force.then_some(SetLive { force: Some(true) });
        let number = number.to_string();
        self.change(&workflows::SET_LIVE, &[workflow, &number], body.as_ref()).await?.ok()
    }

    /// `POST /api/workflows/{ref}/publish/revoke`: closes the chat again.
    ///
    /// # Errors
    /// See above.
    pub async fn unpublish(&self, workflow: &str) -> Result<WorkflowRecord, ClientError> {
        self.change(&workflows::UNPUBLISH, &[workflow], None::<&()>).await?.ok()
    }

    /// `POST /api/workflows/check`: reports the problems in a graph, and saves nothing.
    ///
    /// # Errors
    /// See above.
    pub async fn check(&self, version: &CheckVersion) -> Result<Checked, ClientError> {
        self.change(&workflows::CHECK, &[], Some(version)).await?.ok()
    }

    /// `GET /api/workflows/{ref}/versions/{a}/diff/{b}`: the differences between two versions.
    ///
    /// # Errors
    /// See above.
    pub async fn diff(&self, workflow: &str, base: i32, target: i32) -> Result<VersionDiff, ClientError> {
        let (base, target) = (base.to_string(), target.to_string());
        self.read(&workflows::DIFF, &[workflow, &base, &target], &[]).await?.ok()
    }

    /// `GET /api/workflows/{ref}/versions/{n}/diagram.svg`: a version as a picture.
    ///
    /// # Errors
    /// See above.
    pub async fn diagram_svg(&self, workflow: &str, number: i32) -> Result<String, ClientError> {
        self.diagram(&workflows::DIAGRAM_SVG, workflow, number).await
    }

    /// `GET /api/workflows/{ref}/versions/{n}/diagram.mmd`: a version as a Mermaid flowchart.
    ///
    /// # Errors
    /// See above.
    pub async fn diagram_mermaid(&self, workflow: &str, number: i32) -> Result<String, ClientError> {
        self.diagram(&workflows::DIAGRAM_MERMAID, workflow, number).await
    }

    async fn diagram(
        &self,
        operation: &Operation,
        workflow: &str,
        number: i32,
    ) -> Result<String, ClientError> {
        let answer = self.read(operation, &[workflow, &number.to_string()], &[]).await?;
        if answer.is_success() { Ok(answer.text()) } else { Err(answer.error()) }
    }

    /// `GET /api/nodes`: a node catalogue page.
    ///
    /// # Errors
    /// See above.
    pub async fn nodes(&self, part: &Part) -> Result<Listed<NodeTypeRecord>, ClientError> {
        self.read(&nodes::LIST, &[], &part.query()).await?.ok()
    }

    /// `GET /api/nodes/{type}`: one node type.
    ///
    /// # Errors
    /// See above.
    pub async fn node(&self, name: &str) -> Result<NodeTypeRecord, ClientError> {
        self.read(&nodes::READ, &[name], &[]).await?.ok()
    }
}
