//! Streams and their stored events.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use kernel::ThreadId;
use uuid::Uuid;
use wire::chat::Dialect;

use crate::batch::day_of;
use crate::error::corrupt;
use crate::schema::{runs, stream_events, streams};
use crate::{Store, StoreError};

/// A stream, with what its run says of it.
#[derive(Debug, Clone, Copy)]
pub struct StoredStream {
    /// UUIDv7.
    pub id: Uuid,
    /// The run that writes it.
    pub run_id: Uuid,
    /// The run's workflow.
    pub workflow_id: Uuid,
    /// The run's thread.
    pub thread_id: Option<ThreadId>,
    /// Who its texts are written for; `None`: it is not a chat's, but a run's.
    pub dialect: Option<Dialect>,
    /// Whether nothing will follow what is stored.
    pub ended: bool,
}

/// Events of a stream that were committed together.
#[derive(Debug, Clone)]
pub struct StoredFrames {
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event.
    pub last_seq: u64,
    /// The events as they were sent.
    pub frames: String,
}

impl Store {
    /// A stream by its id.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stream(&self, id: Uuid) -> Result<Option<StoredStream>, StoreError> {
        let row: Option<(Uuid, Uuid, Option<Uuid>, String, bool)> = streams::table
            .inner_join(runs::table.on(runs::id.eq(streams::run_id)))
            .filter(streams::id.eq(id))
            .select((
                streams::run_id,
                streams::workflow_id,
                streams::thread_id,
                streams::dialect,
                runs::finished_at.is_not_null(),
            ))
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(|(run_id, workflow_id, thread_id, dialect, ended)| {
            let dialect = self::dialect(&dialect)?;
            Ok(StoredStream { id, run_id, workflow_id, thread_id: thread_id.map(ThreadId), dialect, ended })
        })
        .transpose()
    }

    /// Sequence number of the last stored event of a stream; 0 when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn last_seq(&self, stream: Uuid) -> Result<u64, StoreError> {
        let last: Option<i64> = stream_events::table
            .filter(stream_events::day.eq(day_of(stream)))
            .filter(stream_events::stream_id.eq(stream))
            .order(stream_events::first_seq.desc())
            .select(stream_events::last_seq)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        u64::try_from(last.unwrap_or(0)).map_err(|e| corrupt("last_seq", e))
    }

    /// The stored events of a stream behind event `after`, at most `rows` commits of them.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn frames_after(
        &self,
        stream: Uuid,
        after: u64,
        rows: i64,
    ) -> Result<Vec<StoredFrames>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let rows: Vec<(i64, i64, String)> = stream_events::table
            .filter(stream_events::day.eq(day_of(stream)))
            .filter(stream_events::stream_id.eq(stream))
            .filter(stream_events::last_seq.gt(after))
            .order(stream_events::first_seq)
            .limit(rows)
            .select((stream_events::first_seq, stream_events::last_seq, stream_events::frames))
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter()
            .map(|(first_seq, last_seq, frames)| {
                let first_seq = u64::try_from(first_seq).map_err(|e| corrupt("first_seq", e))?;
                let last_seq = u64::try_from(last_seq).map_err(|e| corrupt("last_seq", e))?;
                Ok(StoredFrames { first_seq, last_seq, frames })
            })
            .collect()
    }
}

/// The stored name of a run's own stream.
const RUN: &str = "run";

/// The stored name of a stream's dialect.
pub(crate) fn dialect_name(dialect: Option<Dialect>) -> &'static str {
    dialect.map_or(RUN, Dialect::as_str)
}

/// The dialect of a stored name.
pub(crate) fn dialect(name: &str) -> Result<Option<Dialect>, StoreError> {
    match Dialect::from_name(name) {
        None if name != RUN => Err(StoreError::Corrupt(format!("dialect {name}"))),
        dialect => Ok(dialect),
    }
}
