//! Stream events.

use chrono::NaiveDate;
use diesel::sql_types::{BigInt, Date, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::system::partitions::day_of;

/// Events from one stream, in the text form that is sent.
#[derive(Debug, Clone)]
pub struct EventsRow {
    /// The stream.
    pub stream_id: Uuid,
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event.
    pub last_seq: u64,
    /// The events as server-sent events.
    pub frames: String,
    /// Whether they are kept as long as their run, and not only until the end of their day.
    pub kept: bool,
}

lane_table! {
    Events: "stream_events" from &'a EventsRow as row => {
        day: NaiveDate [Date] = day_of(row.stream_id),
        stream_id: Uuid [SqlUuid] = row.stream_id,
        first_seq: i64 [BigInt] = i64::try_from(row.first_seq).unwrap_or(i64::MAX),
        last_seq: i64 [BigInt] = i64::try_from(row.last_seq).unwrap_or(i64::MAX),
        frames: &'a str [Text] = &row.frames,
    }
}

lane_table! {
    KeptEvents: "stream_events_kept" from &'a EventsRow as row => {
        stream_id: Uuid [SqlUuid] = row.stream_id,
        first_seq: i64 [BigInt] = i64::try_from(row.first_seq).unwrap_or(i64::MAX),
        last_seq: i64 [BigInt] = i64::try_from(row.last_seq).unwrap_or(i64::MAX),
        frames: &'a str [Text] = &row.frames,
    }
}

impl Events<'_> {
    /// The day of the events, if all have the same one.
    pub(in crate::batch) fn single_day(&self) -> Option<NaiveDate> {
        let first = *self.day.first()?;
        self.day.iter().all(|day| *day == first).then_some(first)
    }
}
