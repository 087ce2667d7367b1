//! Resolves workspaces and workflows that requests name, and checks access to them.

use auth::scope::Scope;
use control::place;
use store::{DEFAULT_WORKSPACE, StoredWorkflow, StoredWorkspace, WorkflowRef};
use uuid::Uuid;
use wire::ErrorCode;

use super::Caller;
use super::scopes::RouteScope;
use crate::http::error::{ApiError, ApiResult, MAX_CANDIDATES};

impl<S: RouteScope> Caller<S> {
    /// Returns the workspace that the request names, else the caller's only workspace, else, for unrestricted
    /// callers, the default workspace.
    pub(in crate::http) async fn workspace(&self) -> ApiResult<Uuid> {
        if let Some(slug) = self.named_workspace() {
            // A missing workspace gets the same answer as a forbidden one, so callers cannot probe which ones
            // exist.
            let closed = || ApiError::new(ErrorCode::WorkspaceForbidden);
            let Some(workspace) = self.store().workspace_with_slug(slug).await? else {
                return Err(self.denied(closed()).await);
            };
            self.enter(place(&workspace)).await?;
            return Ok(workspace.id);
        }
        let Some(names) = self.principal().workspaces() else {
            let found = self.store().workspace_id(DEFAULT_WORKSPACE).await?;
            return found.ok_or_else(|| {
                ApiError::new(ErrorCode::Internal).with_cause("the default workspace does not exist")
            });
        };
        match self.store().workspaces_named(&names).await?.as_slice() {
            [] => Err(self.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await),
            [only] => {
                self.enter(place(only)).await?;
                Ok(only.id)
            }
            _ => Err(ApiError::new(ErrorCode::WorkspaceRequired)),
        }
    }

    /// Returns the workspace that a path names by its id or slug.
    pub(in crate::http) async fn workspace_called(&self, name: &str) -> ApiResult<StoredWorkspace> {
        let found = self.store().workspaces_named(&[name.to_owned()]).await?.pop();
        let Some(workspace) = found else {
            // A restricted caller cannot probe which other workspaces exist.
            let missing = match self.principal().workspaces() {
                None => self.no_workspace(name).await?,
                Some(_) => ApiError::new(ErrorCode::WorkspaceForbidden),
            };
            return Err(self.denied(missing).await);
        };
        if self.named_workspace().is_some_and(|slug| slug != workspace.slug) {
            return Err(self.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await);
        }
        self.enter(place(&workspace)).await?;
        Ok(workspace)
    }

    /// Returns the not-found error with the most similar slug as a suggestion. Only for callers with access to all
    /// workspaces.
    async fn no_workspace(&self, name: &str) -> ApiResult<ApiError> {
        let missing = ApiError::new(ErrorCode::WorkspaceNotFound);
        let known = self.store().workspaces(None, None, MAX_CANDIDATES).await?;
        Ok(missing.suggest("workspace", name, known.iter().map(|workspace| workspace.slug.as_str())))
    }

    /// Returns the workflow that a path names. An id is found in any workspace. A handle is looked up in the workspace
    /// that the request names, else in the caller's only workspace with this handle, else in the default workspace.
    pub(in crate::http) async fn workflow(&self, name: &str) -> ApiResult<StoredWorkflow> {
        let found = match WorkflowRef::parse(name) {
            WorkflowRef::Handle(handle) if self.named_workspace().is_none() => self.handled(&handle).await?,
            name @ WorkflowRef::Handle(_) => self.store().workflow(&name, self.workspace().await?).await?,
            name @ WorkflowRef::Id(_) => self.store().workflow(&name, Uuid::nil()).await?,
        };
        let Some(workflow) = found else { return Err(self.no_workflow(name).await?) };
        self.enter_workspace_of(workflow.workspace_id).await?;
        Ok(workflow)
    }

    /// Returns the not-found error with the most similar handle in the searched workspace as a suggestion.
    async fn no_workflow(&self, name: &str) -> ApiResult<ApiError> {
        let not_found = ApiError::new(ErrorCode::WorkflowNotFound);
        let WorkflowRef::Handle(handle) = WorkflowRef::parse(name) else { return Ok(not_found) };
        let workspace = match (self.named_workspace(), self.principal().workspaces()) {
            (None, Some(names)) => match self.store().workspaces_named(&names).await?.as_slice() {
                [only] => only.id,
                _ => return Ok(not_found),
            },
            _ => self.workspace().await?,
        };
        let known = self.store().workflows(workspace, false, None, MAX_CANDIDATES).await?;
        Ok(not_found.suggest("workflow", &handle, known.iter().map(|workflow| workflow.handle.as_str())))
    }

    /// Checks that the caller may also change workflows in this workspace.
    pub(in crate::http) async fn check_writes_workflows(&self, workspace: Uuid) -> ApiResult<()> {
        let workspace = self.store().workspace(workspace).await?;
        let workspace = workspace.ok_or_else(|| ApiError::new(ErrorCode::WorkspaceForbidden))?;
        self.check_also_in(Scope::WorkflowsWrite, &workspace).await
    }

    async fn handled(&self, handle: &str) -> ApiResult<Option<StoredWorkflow>> {
        let mut found = self.store().workflows_with_handle(handle).await?;
        let open = match self.principal().workspaces() {
            None => None,
            Some(names) => Some(self.store().workspaces_named(&names).await?),
        };
        if let Some(open) = &open {
            found.retain(|found| open.iter().any(|workspace| workspace.id == found.workspace_id));
        } else if found.len() > 1 {
            let default = self.store().workspace_id(DEFAULT_WORKSPACE).await?;
            found.retain(|found| Some(found.workspace_id) == default);
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(ApiError::new(ErrorCode::WorkspaceRequired)),
        }
    }

    /// Checks that the caller may access the workspace of a workflow or run, and that the request names no
    /// other workspace.
    pub(in crate::http) async fn enter_workspace_of(&self, workspace: Uuid) -> ApiResult<()> {
        let closed = || ApiError::new(ErrorCode::WorkspaceForbidden);
        if self.principal().workspaces().is_none() && self.named_workspace().is_none() {
            return Ok(());
        }
        let Some(there) = self.store().workspace(workspace).await? else {
            return Err(self.denied_in(Some(workspace), closed()).await);
        };
        if self.named_workspace().is_some_and(|slug| slug != there.slug) {
            return Err(self.denied_in(Some(workspace), closed()).await);
        }
        self.enter(place(&there)).await
    }
}
