//! Requests to send.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// A request to send after its step's row is stored.
#[derive(Clone)]
pub struct OutboxRow {
    /// Identical for every writer.
    pub id: Uuid,
    /// The run.
    pub run_id: Uuid,
    /// JSON; names secrets but contains none.
    pub request: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

impl std::fmt::Debug for OutboxRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboxRow").field("id", &self.id).finish_non_exhaustive()
    }
}

lane_table! {
    Outbox: "outbox" from &'a OutboxRow as row => {
        id: Uuid [SqlUuid] = row.id,
        run_id: Uuid [SqlUuid] = row.run_id,
        request: &'a str [Text] = &row.request,
        created_at: DateTime<Utc> [Timestamptz] = row.created_at,
        next_attempt_at: DateTime<Utc> [Timestamptz] = row.created_at,
    } and { "attempts" = "0" }
}
