//! Streams.

use chrono::NaiveDate;
use diesel::sql_types::{Date, Nullable, Text, Uuid as SqlUuid};
use kernel::ThreadId;
use uuid::Uuid;
use wire::chat::Dialect;

use crate::runs::streams::dialect_name;
use crate::system::partitions::day_of;

/// A stream to create.
#[derive(Debug, Clone, Copy)]
pub struct StreamRow {
    /// UUIDv7.
    pub id: Uuid,
    /// The run that writes it.
    pub run_id: Uuid,
    /// The run's workflow.
    pub workflow_id: Uuid,
    /// The run's thread.
    pub thread_id: Option<ThreadId>,
    /// The events' dialect; `None` if the stream does not belong to a chat.
    pub dialect: Option<Dialect>,
}

lane_table! {
    Streams: "streams" from &'a StreamRow as row => {
        id: Uuid [SqlUuid] = row.id,
        day: NaiveDate [Date] = day_of(row.id),
        run_id: Uuid [SqlUuid] = row.run_id,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        thread_id: Option<Uuid> [Nullable<SqlUuid>] = row.thread_id.map(|id| id.0),
        dialect: &'a str [Text] = dialect_name(row.dialect),
    }
}
