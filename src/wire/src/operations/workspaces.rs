//! Workspaces and their members.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, delete, get, json, operations, patch, post};
use crate::{
    AddMember, CreateWorkspace, ErrorCode, Listed, MemberRecord, Scope, UpdateMember, UpdateWorkspace,
    WorkspaceRecord,
};

operations! {
    LIST = get("/api/workspaces", "list_workspaces", "Lists the workspaces that the caller may see, newest first.")
        .needs_anywhere(Scope::WorkspacesRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<WorkspaceRecord>))]);

    CREATE = post(
        "/api/workspaces",
        "create_workspace",
        "Creates a workspace; a user who creates it becomes its owner. Not for callers restricted to workspaces by their token.",
    )
    .needs(Scope::WorkspacesWrite)
    .repeatable()
    .body(json!(CreateWorkspace, examples::CREATE))
    .answers(&[Answer::new(201, json!(WorkspaceRecord))])
    .errors(&[ErrorCode::WorkspaceSlugTaken]);

    READ = get(
        "/api/workspaces/{id}",
        "read_workspace",
        "Shows a workspace; `{id}` is its id or its slug, here and below. `storage` is `{\"bytes\", \"limit\", \"measured_at\"}`: its \
         storage use and quota; null before the first measurement, and in lists.",
    )
    .needs(Scope::WorkspacesRead)
    .answers(&[Answer::new(200, json!(WorkspaceRecord, examples::WORKSPACE))])
    .errors(&[ErrorCode::WorkspaceNotFound]);

    UPDATE = patch(
        "/api/workspaces/{id}",
        "update_workspace",
        "Changes the display name or the settings of a workspace; absent members stay unchanged. The slug stays. `training_calls`: with `drop`, \
         replies and messages of models and inputs of nodes are erased once their training has ended, also those of earlier trainings; \
         usage, outputs and scores stay. Default: `keep`.",
    )
    .needs(Scope::WorkspacesWrite)
    .repeatable()
    .body(json!(UpdateWorkspace, examples::UPDATE))
    .answers(&[Answer::new(200, json!(WorkspaceRecord))])
    .errors(&[ErrorCode::WorkspaceNotFound]);

    DELETE = delete(
        "/api/workspaces/{id}",
        "delete_workspace",
        "Deletes a workspace and archives its workflows. For owners, and callers with all of an owner's scopes in every workspace.",
    )
    .needs(Scope::WorkspacesWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::WorkspaceNotFound, ErrorCode::WorkspaceIsDefault]);

    LIST_MEMBERS = get(
        "/api/workspaces/{id}/members",
        "list_members",
        "Lists members and invitations, in the order of their accounts.",
    )
    .needs(Scope::WorkspacesRead)
    .query(&[LIMIT, CURSOR])
    .answers(&[Answer::new(200, json!(Listed<MemberRecord>))])
    .errors(&[ErrorCode::WorkspaceNotFound]);

    ADD_MEMBER = post(
        "/api/workspaces/{id}/members",
        "add_member",
        "Adds a person, and notifies them by email if there is a mail server.",
    )
    .needs(Scope::WorkspacesWrite)
    .repeatable()
    .body(json!(AddMember, examples::ADD_MEMBER))
    .answers(&[
        Answer::new(201, json!(MemberRecord, examples::MEMBER)),
        Answer::new(200, json!(MemberRecord)).when("the person already has this role, or was invited with it"),
    ])
    .errors(&[
        ErrorCode::WorkspaceNotFound,
        ErrorCode::MemberHasOtherRole,
        ErrorCode::TooManyInvitations,
    ]);

    CHANGE_MEMBER = patch("/api/workspaces/{id}/members/{user_id}", "change_member", "Changes the role of a member.")
        .needs(Scope::WorkspacesWrite)
        .repeatable()
        .body(json!(UpdateMember, examples::CHANGE_MEMBER))
        .answers(&[Answer::new(200, json!(MemberRecord))])
        .errors(&[ErrorCode::WorkspaceNotFound, ErrorCode::MemberNotFound, ErrorCode::LastOwner]);

    REMOVE_MEMBER = delete(
        "/api/workspaces/{id}/members/{user_id}",
        "remove_member",
        "Removes a member, or withdraws the invitation. With the caller's own id: leaves, for which `admin:workspaces:read` is \
         enough, which every role has.",
    )
    .needs(Scope::WorkspacesWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::WorkspaceNotFound, ErrorCode::MemberNotFound, ErrorCode::LastOwner]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "slug": "support",
  "name": "Support"
}"#;

    pub(super) const WORKSPACE: &str = r#"{
  "id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "slug": "support",
  "name": "Support",
  "role": "owner",
  "created_at": "2026-11-22T09:00:00.000000Z",
  "training_calls": "keep",
  "storage": {
    "bytes": 73400320,
    "limit": null,
    "measured_at": "2026-11-22T10:00:00.000000Z"
  }
}"#;

    pub(super) const UPDATE: &str = r#"{
  "name": "Customer support",
  "training_calls": "drop"
}"#;

    pub(super) const ADD_MEMBER: &str = r#"{
  "email": "bob@example.org",
  "role": "editor"
}"#;

    pub(super) const MEMBER: &str = r#"{
  "user_id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "email": "bob@example.org",
  "name": null,
  "role": "editor",
  "status": "invited",
  "invited_until": "2026-11-29T09:00:00.000000Z",
  "created_at": "2026-11-22T09:00:00.000000Z"
}"#;

    pub(super) const CHANGE_MEMBER: &str = r#"{
  "role": "admin"
}"#;
}
