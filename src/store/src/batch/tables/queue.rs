//! The run queue.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// A run without a writer until one claims it from the queue; accompanies its [`RunRow`], or the [`RunUpdate`]
/// that parks it.
#[derive(Debug, Clone, Copy)]
pub struct QueueRow {
    /// The run.
    pub run_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// Whether it only waits for a free workflow slot.
    pub turn: bool,
    /// When it is due; `None`: it waits only for an answer.
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
