//! Threads of chats.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::ThreadId;
use uuid::Uuid;

use crate::OwnerKind;

/// A thread to create.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// Its id.
    pub id: ThreadId,
    /// The workflow it belongs to.
    pub workflow_id: Uuid,
    /// The workspace of the workflow.
    pub workspace_id: Uuid,
    /// Kind of its owner.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// Its title, if it has one from the start.
    pub title: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

lane_table! {
    Threads: "threads" from &'a ThreadRow as row => {
        id: Uuid [SqlUuid] = row.id.0,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        workspace_id: Uuid [SqlUuid] = row.workspace_id,
        owner_kind: &'a str [Text] = row.owner_kind.as_str(),
        owner_id: Option<&'a str> [Nullable<Text>] = row.owner_id.as_deref(),
        title: Option<&'a str> [Nullable<Text>] = row.title.as_deref(),
        created_at: DateTime<Utc> [Timestamptz] = row.created_at,
    } and { "status" = "'active'" }
}
