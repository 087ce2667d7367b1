//! Runs and their states.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::ThreadId;
use uuid::Uuid;

use crate::RunState;

/// A run to create.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// UUIDv7.
    pub id: Uuid,
    /// The workflow's workspace.
    pub workspace_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The frozen version it runs.
    pub version_id: Uuid,
    /// The trigger, such as `chat` or `api`; it determines the run's kind.
    pub trigger: &'static str,
    /// Its thread, for a turn.
    pub thread_id: Option<ThreadId>,
    /// Its stream.
    pub stream_id: Option<Uuid>,
    /// JSON.
    pub inputs: String,
    /// Start options, JSON.
    pub options: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// The current state of a run. Ignored if the run has ended or has another writer.
#[derive(Debug, Clone)]
pub struct RunUpdate {
    /// The run.
    pub id: Uuid,
    /// Its state.
    pub status: RunState,
    /// When execution started; the first value stays.
    pub started_at: Option<DateTime<Utc>>,
    /// JSON.
    pub output: Option<String>,
    /// JSON `{code, message, node}`: the reason for a failure, or a warning if the run succeeded.
    pub error: Option<String>,
    /// When it ended, if it has.
    pub finished_at: Option<DateTime<Utc>>,
    /// The number of times the run has been parked, from 1; 0: this update does not park it. Each number
    /// applies once, however often it is sent: another writer may have claimed the run since.
    pub parking: i32,
}

/// The last state of a run in a commit, and when execution first started.
pub(in crate::batch) type Latest<'a> = (&'a RunUpdate, Option<DateTime<Utc>>);

lane_table! {
    /// A statement does not see the rows it inserts, so a new run's row contains its state. The update is
    /// written too, in case the run already exists.
    Runs: "runs" from (&'a RunRow, Option<Latest<'a>>) as (row, now) => {
        id: Uuid [SqlUuid] = row.id,
        workspace_id: Uuid [SqlUuid] = row.workspace_id,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        version_id: Uuid [SqlUuid] = row.version_id,
        trigger: &'a str [Text] = row.trigger,
        thread_id: Option<Uuid> [Nullable<SqlUuid>] = row.thread_id.map(|id| id.0),
        stream_id: Option<Uuid> [Nullable<SqlUuid>] = row.stream_id,
        inputs: &'a str [Text] = &row.inputs,
        options: Option<&'a str> [Nullable<Text>] = row.options.as_deref(),
        created_at: DateTime<Utc> [Timestamptz] = row.created_at,
        status: &'a str [Text] = now.map_or(RunState::Queued, |(update, _)| update.status).as_str(),
        started_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = now.and_then(|(_, started_at)| started_at),
        output: Option<&'a str> [Nullable<Text>] = now.and_then(|(update, _)| update.output.as_deref()),
        error: Option<&'a str> [Nullable<Text>] = now.and_then(|(update, _)| update.error.as_deref()),
        finished_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = now.and_then(|(update, _)| update.finished_at),
        parked: i32 [Integer] = now.map_or(0, |(update, _)| update.parking),
    } and { "writer_id" = "fence.writer_id" }
}

lane_table! {
    Updates: "runs" from Latest<'a> as (row, first) => {
        id: Uuid [SqlUuid] = row.id,
        status: &'a str [Text] = row.status.as_str(),
        started_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = first,
        output: Option<&'a str> [Nullable<Text>] = row.output.as_deref(),
        error: Option<&'a str> [Nullable<Text>] = row.error.as_deref(),
        finished_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = row.finished_at,
        parking: i32 [Integer] = row.parking,
    }
}
