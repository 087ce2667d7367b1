//! The queue of runs.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// A run without a writer until one claims it from the queue; with its [`RunRow`], or with the [`RunUpdate`] that parks
/// it.
#[derive(Debug, Clone, Copy)]
pub struct QueueRow {
    /// The run.
    pub run_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// Whether it only waits for its turn among the runs of its workflow.
    pub turn: bool,
    /// When it is due; `None`: it waits for an answer alone.
    pub due_at: Option<DateTime<Utc>>,
}

lane_table! {
    Queued: "run_queue" from &'a QueueRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        turn: bool [Bool] = row.turn,
        due_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = row.due_at,
    }
}
