//! Workspaces and their members.

use wire::operations::workspaces;
use wire::{
    AddMember, CreateWorkspace, Listed, MemberRecord, UpdateMember, UpdateWorkspace, WorkspaceRecord,
};

use crate::{Client, ClientError, Part};

/// Calls fail as [`crate::Answer::ok`] does. A workspace is named by its slug or its id.
impl Client {
    /// `GET /api/workspaces`: part of the list, the newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn workspaces(&self, part: &Part) -> Result<Listed<WorkspaceRecord>, ClientError> {
        self.read(&workspaces::LIST, &[], &part.query()).await?.ok()
    }

    /// `GET /api/workspaces/{id}`: one, with what it keeps.
    ///
    /// # Errors
    /// See above.
    pub async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, ClientError> {
        self.read(&workspaces::READ, &[workspace], &[]).await?.ok()
    }

    /// `POST /api/workspaces`: makes one.
    ///
    /// # Errors
    /// See above.
    pub async fn create_workspace(&self, new: &CreateWorkspace) -> Result<WorkspaceRecord, ClientError> {
        self.change(&workspaces::CREATE, &[], Some(new)).await?.ok()
    }

    /// `PATCH /api/workspaces/{id}`: changes its name or settings.
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

    /// `DELETE /api/workspaces/{id}`: takes it away and archives its workflows.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_workspace(&self, workspace: &str) -> Result<(), ClientError> {
        self.change(&workspaces::DELETE, &[workspace], None::<&()>).await?.done()
    }

    /// `GET /api/workspaces/{id}/members`: part of the list, in the order of their accounts.
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

    /// `PATCH /api/workspaces/{id}/members/{user_id}`: gives them another role.
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

    /// `DELETE /api/workspaces/{id}/members/{user_id}`: removes them, or takes their invitation back.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_member(&self, workspace: &str, user_id: &str) -> Result<(), ClientError> {
        self.change(&workspaces::REMOVE_MEMBER, &[workspace, user_id], None::<&()>).await?.done()
    }
}
