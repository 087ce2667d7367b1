//! Chat threads.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::ThreadId;
use uuid::Uuid;

use wire::chat::ThreadStatus;

use crate::OwnerKind;

/// A thread to create.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// Its id.
    pub id: ThreadId,
    /// The workflow it belongs to.
    pub workflow_id: Uuid,
    /// The workflow's workspace.
    pub workspace_id: Uuid,
    /// The owner kind.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// Its title, if it has one from the start.
    pub title: Option<String>,
    /// The canary version that it uses while that version is the canary.
    pub canary_version: Option<i32>,
    /// Whether the request that starts it presented the visitor's cookie.
    pub requires_cookie: bool,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// Changes to a thread; ignored if it is deleted.
#[derive(Debug, Clone)]
pub struct ThreadChangeRow {
    /// Its id.
    pub id: ThreadId,
    /// The run that changes it.
    pub run_id: Uuid,
    /// Its title.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: Option<ThreadStatus>,
    /// Allowed hosts for widget images; `Some(None)`: no list.
    pub image_domains: Option<Option<Vec<String>>>,
}

lane_table! {
    Threads: "threads" from &'a ThreadRow as row => {
        id: Uuid [SqlUuid] = row.id.0,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        workspace_id: Uuid [SqlUuid] = row.workspace_id,
        owner_kind: &'a str [Text] = row.owner_kind.as_str(),
        owner_id: Option<&'a str> [Nullable<Text>] = row.owner_id.as_deref(),
        title: Option<&'a str> [Nullable<Text>] = row.title.as_deref(),
        canary_version: Option<i32> [Nullable<Integer>] = row.canary_version,
        requires_cookie: bool [Bool] = row.requires_cookie,
        created_at: DateTime<Utc> [Timestamptz] = row.created_at,
    } and { "status" = "'active'" }
}

lane_table! {
    ThreadChanges: "threads" from ThreadChangeRow as row => {
        id: Uuid [SqlUuid] = row.id.0,
        run_id: Uuid [SqlUuid] = row.run_id,
        title: Option<String> [Nullable<Text>] = row.title,
        status: Option<&'static str> [Nullable<Text>] = row.status.as_ref().map(ThreadStatus::as_str),
        reason: Option<String> [Nullable<Text>] = row.status.and_then(ThreadStatus::into_reason),
        image_domains: Option<String> [Nullable<Text>] = row.image_domains.map(|hosts| json(&hosts)),
    }
}

/// JSON; `null` for no list.
fn json(hosts: &Option<Vec<String>>) -> String {
    serde_json::to_string(hosts).unwrap_or_default()
}
