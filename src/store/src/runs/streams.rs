//! Streams and their stored events.

use chrono::NaiveDate;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Date, Nullable, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::ThreadId;
use uuid::Uuid;
use wire::chat::Dialect;

use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::error::corrupt;
use crate::schema::{runs, streams};
use crate::system::partitions::day_of;
use crate::{Store, StoreError};

/// A stream, with data from its run.
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
    /// The texts' dialect; `None`: the stream belongs to a run, not to a chat.
    pub dialect: Option<Dialect>,
    /// Whether the stored events are complete.
    pub ended: bool,
}

/// Stream events that were committed together.
#[derive(Debug, Clone)]
pub struct StoredFrames {
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event.
    pub last_seq: u64,
    /// The events in the text form that was sent.
    pub frames: String,
}

impl Store {
    /// Returns a stream.
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

    /// Returns the sequence number of a stream's last stored event; 0 without events.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn last_seq(&self, stream: Uuid) -> Result<u64, StoreError> {
        let found: Scalar<Option<i64>> = prepared(
            "SELECT greatest(
                 (SELECT max(last_seq) FROM stream_events WHERE day = $1 AND stream_id = $2),
                 (SELECT last_seq FROM stream_events_kept WHERE stream_id = $2
                  ORDER BY first_seq DESC LIMIT 1)) AS last",
        )
        .bind::<Date, _>(day_of(stream))
        .bind::<SqlUuid, _>(stream)
        .get_result(&mut *self.connection().await?)
        .await?;
        u64::try_from(found.0.unwrap_or(0)).map_err(|e| corrupt("last_seq", e))
    }

    /// Returns a stream's stored events after event `after`, at most `rows` commits.
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
        #[derive(QueryableByName)]
        struct FramesRow {
            #[diesel(sql_type = BigInt)]
            first_seq: i64,
            #[diesel(sql_type = BigInt)]
            last_seq: i64,
            #[diesel(sql_type = Text)]
            frames: String,
        }
        // Each commit once: for a moment it may be in both tables. A stream with kept events may have very
        // many: it is read from the commit that contains `after`.
        let rows: Vec<FramesRow> = prepared(
            "SELECT DISTINCT ON (first_seq) first_seq, last_seq, frames FROM (
                 SELECT first_seq, last_seq, frames FROM stream_events
                 WHERE day = $1 AND stream_id = $2 AND last_seq > $3
                 UNION ALL
                 (SELECT first_seq, last_seq, frames FROM stream_events_kept
                  WHERE stream_id = $2 AND last_seq > $3 AND first_seq >= coalesce(
                      (SELECT max(k.first_seq) FROM stream_events_kept k WHERE k.stream_id = $2 AND k.first_seq <= $3), 0)
                  ORDER BY first_seq LIMIT $4)) e
             ORDER BY first_seq LIMIT $4",
        )
        .bind::<Date, _>(day_of(stream))
        .bind::<SqlUuid, _>(stream)
        .bind::<BigInt, _>(after)
        .bind::<BigInt, _>(rows)
        .load(&mut *self.connection().await?)
        .await?;
        rows.into_iter()
            .map(|row| {
                let first_seq = u64::try_from(row.first_seq).map_err(|e| corrupt("first_seq", e))?;
                let last_seq = u64::try_from(row.last_seq).map_err(|e| corrupt("last_seq", e))?;
                Ok(StoredFrames { first_seq, last_seq, frames: row.frames })
            })
            .collect()
    }
}

/// New events in a stream.
#[derive(Debug, Clone)]
pub struct StreamNews {
    /// The stream.
    pub stream: Uuid,
    /// The following commits in order; not all of them if there are many.
    pub commits: Vec<StoredFrames>,
    /// Whether these are the last ones.
    pub ended: bool,
}

/// Maximum commits per stream that [`Store::stream_news`] reads at once.
const NEWS_COMMITS: i64 = 16;

impl Store {
    /// Returns the new events in these streams, each after the last seen event, in one statement. Streams
    /// without new events are omitted.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stream_news(&self, seen: &[(Uuid, u64)]) -> Result<Vec<StreamNews>, StoreError> {
        #[derive(QueryableByName)]
        struct NewsRow {
            #[diesel(sql_type = SqlUuid)]
            id: Uuid,
            #[diesel(sql_type = Nullable<BigInt>)]
            first_seq: Option<i64>,
            #[diesel(sql_type = Nullable<BigInt>)]
            last_seq: Option<i64>,
            #[diesel(sql_type = Nullable<Text>)]
            frames: Option<String>,
            #[diesel(sql_type = Bool)]
            ended: bool,
        }
        let ids: Vec<Uuid> = seen.iter().map(|(id, _)| *id).collect();
        let days: Vec<NaiveDate> = ids.iter().map(|id| day_of(*id)).collect();
        let after: Vec<i64> = seen.iter().map(|(_, seq)| i64::try_from(*seq).unwrap_or(i64::MAX)).collect();
        let rows: Vec<NewsRow> = prepared(
            "SELECT a.id, e.first_seq, e.last_seq, e.frames, r.finished_at IS NOT NULL AS ended
             FROM unnest($1, $2, $3) AS a (id, day, seen)
             JOIN streams s ON s.id = a.id JOIN runs r ON r.id = s.run_id
             LEFT JOIN LATERAL (SELECT DISTINCT ON (first_seq) first_seq, last_seq, frames FROM (
                                    SELECT first_seq, last_seq, frames FROM stream_events e
                                    WHERE e.day = a.day AND e.stream_id = a.id AND e.last_seq > a.seen
                                    UNION ALL
                                    (SELECT first_seq, last_seq, frames FROM stream_events_kept k
                                     WHERE k.stream_id = a.id AND k.last_seq > a.seen AND k.first_seq >= coalesce(
                                         (SELECT max(b.first_seq) FROM stream_events_kept b
                                          WHERE b.stream_id = a.id AND b.first_seq <= a.seen), 0)
                                     ORDER BY first_seq LIMIT $4)) e
                                ORDER BY first_seq LIMIT $4) e ON true
             WHERE e.first_seq IS NOT NULL OR r.finished_at IS NOT NULL
             ORDER BY a.id, e.first_seq",
        )
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<Date>, _>(days)
        .bind::<Array<BigInt>, _>(after)
        .bind::<BigInt, _>(NEWS_COMMITS)
        .load(&mut *self.connection().await?)
        .await?;
        let mut news: Vec<StreamNews> = Vec::new();
        for row in rows {
            if news.last().is_none_or(|last| last.stream != row.id) {
                news.push(StreamNews { stream: row.id, commits: Vec::new(), ended: row.ended });
            }
            if let (Some(last), Some(first_seq), Some(last_seq), Some(frames)) =
                (news.last_mut(), row.first_seq, row.last_seq, row.frames)
            {
                let first_seq = u64::try_from(first_seq).map_err(|e| corrupt("first_seq", e))?;
                let last_seq = u64::try_from(last_seq).map_err(|e| corrupt("last_seq", e))?;
                last.commits.push(StoredFrames { first_seq, last_seq, frames });
            }
        }
        for stream in &mut news {
            let full = i64::try_from(stream.commits.len()).is_ok_and(|commits| commits >= NEWS_COMMITS);
            stream.ended &= !full;
        }
        Ok(news)
    }
}

/// The stored dialect name of a run's stream.
const RUN: &str = "run";

/// The stored name for a stream's dialect.
pub(crate) fn dialect_name(dialect: Option<Dialect>) -> &'static str {
    dialect.map_or(RUN, Dialect::as_str)
}

/// Parses a stored dialect name.
pub(crate) fn dialect(name: &str) -> Result<Option<Dialect>, StoreError> {
    match Dialect::from_name(name) {
        None if name != RUN => Err(StoreError::Corrupt(format!("dialect {name}"))),
        dialect => Ok(dialect),
    }
}
