//! Workspaces and their members.

use wire::operations::workspaces;
use wire::{
    AddMember, CreateWorkspace, Listed, MemberRecord, UpdateMember, UpdateWorkspace, WorkspaceRecord,
};

use crate::{Client, ClientError, Part};

/// Calls fail as [`crate::Answer::ok`] does. Each call takes a workspace's slug or id.
impl Client {
    /// `GET /api/workspaces`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn workspaces(&self, part: &Part) -> Result<Listed<WorkspaceRecord>, ClientError> {
        self.read(&workspaces::LIST, &[], &part.query()).await?.ok()
    }

    /// `GET /api/workspaces/{id}`: one workspace with its usage.
    ///
    /// # Errors
    /// See above.
    pub async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, ClientError> {
        self.read(&workspaces::READ, &[workspace], &[]).await?.ok()
    }

    /// `POST /api/workspaces`: creates a workspace.
    ///
    /// # Errors
    /// See above.
    pub async fn create_workspace(&self, new: &CreateWorkspace) -> Result<WorkspaceRecord, ClientError> {
        self.change(&workspaces::CREATE, &[], Some(new)).await?.ok()
    }

    /// `PATCH /api/workspaces/{id}`: changes a workspace's name or settings.
    ///
    /// # Errors
    /// See above.
    pub async fn update_workspace(
        &self,
        workspace: &str,
        change: &UpdateWorkspace,
    ) -> Result<WorkspaceRecord, ClientError> {
        self.change(&workspaces::UPDATE, &[workspace], Some(change)).await?.ok()
    }

    /// `DELETE /api/workspaces/{id}`: deletes a workspace and archives its workflows.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_workspace(&self, workspace: &str) -> Result<(), ClientError> {
        self.change(&workspaces::DELETE, &[workspace], None::<&()>).await?.done()
    }

    /// `GET /api/workspaces/{id}/members`: a list page, ordered by account.
    ///
    /// # Errors
    /// See above.
    pub async fn members(&self, workspace: &str, part: &Part) -> Result<Listed<MemberRecord>, ClientError> {
        self.read(&workspaces::LIST_MEMBERS, &[workspace], &part.query()).await?.ok()
    }

    /// `POST /api/workspaces/{id}/members`: adds or invites a member.
    ///
    /// # Errors
    /// See above.
    pub async fn add_member(&self, workspace: &str, new: &AddMember) -> Result<MemberRecord, ClientError> {
        self.change(&workspaces::ADD_MEMBER, &[workspace], Some(new)).await?.ok()
    }

    /// `PATCH /api/workspaces/{id}/members/{user_id}`: changes a member's role.
    ///
    /// # Errors
    /// See above.
    pub async fn change_member(
        &self,
        workspace: &str,
        user_id: &str,
        change: &UpdateMember,
    ) -> Result<MemberRecord, ClientError> {
        self.change(&workspaces::CHANGE_MEMBER, &[workspace, user_id], Some(change)).await?.ok()
    }

    /// `DELETE /api/workspaces/{id}/members/{user_id}`: removes a member, or withdraws an invitation.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_member(&self, workspace: &str, user_id: &str) -> Result<(), ClientError> {
        self.change(&workspaces::REMOVE_MEMBER, &[workspace, user_id], None::<&()>).await?.done()
    }
}
