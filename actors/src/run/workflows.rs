//! Other workflows, as a `sub_workflow` node finds them.

use std::sync::Arc;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{Resolved, Workflows};
use store::WorkflowRef;
use uuid::Uuid;
use wire::ErrorCode;

use super::shares::WorkspaceShare;
use crate::plans::{LoadedVersion, PlanError, Plans};

/// Workflows in one workspace.
pub(super) struct WorkflowsOf {
    pub(super) workspace: Uuid,
    pub(super) plans: Arc<Plans>,
    pub(super) reads: WorkspaceShare,
}

#[async_trait]
impl Workflows for WorkflowsOf {
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError> {
        let number = version.map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        let _permit = self.reads.permit().await;
        let found = self.plans.find(self.workspace, &WorkflowRef::parse(workflow), number).await;
        found.map_err(unreadable)?.map(resolved).ok_or_else(|| match version {
            Some(number) => NodeError::new(
                ErrorCode::WorkflowNotFound,
                format!("this workspace has no workflow '{workflow}' with a version {number}"),
            ),
            None => NodeError::new(
                ErrorCode::WorkflowNotFound,
                format!("this workspace has no workflow '{workflow}' with a version"),
            ),
        })
    }

    async fn version(&self, id: &str) -> Result<Resolved, NodeError> {
        let id =
            Uuid::parse_str(id).map_err(|error| NodeError::new(ErrorCode::Internal, error.to_string()))?;
        let _permit = self.reads.permit().await;
        self.plans.version(id).await.map(resolved).map_err(unreadable)
    }
}

fn resolved(version: Arc<LoadedVersion>) -> Resolved {
    Resolved {
        version: version.id.to_string(),
        workflow: version.workflow.to_string(),
        plan: Arc::clone(&version.plan),
        config: Arc::clone(&version.config),
    }
}

fn unreadable(error: PlanError) -> NodeError {
    match error {
        PlanError::Store(error) => {
            tracing::warn!(%error, "failed to read a sub-workflow");
            NodeError::retryable(error.code(), error.code().message())
        }
        error @ (PlanError::Graph(..) | PlanError::Missing(_)) => {
            NodeError::new(ErrorCode::NodeFailed, error.to_string())
        }
    }
}
