//! The daily partitions of `stream_events`: created ahead, and dropped when their streams can no longer be
//! read.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use diesel::sql_types::{BigInt, Bool, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use kernel::first_id_at;
use uuid::Uuid;

use crate::database::connect::SessionKind;
use crate::database::scalar::Scalar;
use crate::system::roles::{LOCK, ROLE};
use crate::{Store, StoreError};

/// Days ahead of today for which a partition exists.
pub const PARTITIONS_AHEAD: u64 = 3;

/// Period after a stream's end in which its events can be read.
pub const EVENTS_KEPT: TimeDelta = TimeDelta::hours(24);
/// Maximum days between the creation of a stream's id, which determines its partition, and the stream's start.
const LATE: u64 = 2;
/// Maximum stream rows deleted per statement.
const PART: i64 = 5_000;

#[derive(QueryableByName)]
struct Partition {
    #[diesel(sql_type = Text)]
    name: String,
    /// Whether the table is still attached as a partition.
    #[diesel(sql_type = Bool)]
    attached: bool,
    /// Whether a detach was started and has not finished.
    #[diesel(sql_type = Bool)]
    detaching: bool,
}

impl Store {
    /// Drops the partitions of days whose last stream ended [`EVENTS_KEPT`] ago, deletes those streams and
    /// returns the days. Streams of parked runs do not count: their events are first moved to
    /// `stream_events_kept`. Runs in one instance at a time.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer or rejects a statement.
    pub async fn drop_old_events(&self, now: DateTime<Utc>) -> Result<Vec<NaiveDate>, StoreError> {
        let mut connection = self.connector().open(SessionKind::Owner).await?;
        // If this fails, the end of the connection releases the lock.
        let lock = "SELECT pg_try_advisory_lock(hashtext('callboard old events')) AS holds";
        let holds: Scalar<bool> = diesel::sql_query(lock).get_result(&mut connection).await?;
        let mut dropped = Vec::new();
        if !holds.0 {
            return Ok(dropped);
        }
        let last = now.date_naive().checked_sub_days(Days::new(LATE + 1)).unwrap_or_default();
        for Partition { name, attached, detaching } in partitions(&mut connection).await? {
            let Some(day) = day_of_partition(&name).filter(|day| *day <= last) else { continue };
            if attached && !detaching {
                if is_read(&mut connection, day, now - EVENTS_KEPT).await? {
                    continue;
                }
                // Before the detach, so that readers find the events at all times.
                connection.batch_execute(&keep(&name, UNFINISHED)).await?;
                forget_streams(&mut connection, day, now - EVENTS_KEPT).await?;
            }
            if attached {
                // Lanes continue to write to the other partitions. Must run outside a transaction.
                let how = if detaching { "FINALIZE" } else { "CONCURRENTLY" };
                let detach = format!("ALTER TABLE stream_events DETACH PARTITION {name} {how}");
                connection.batch_execute(&detach).await?;
            }
            // A run that resumes in the meantime writes into the table by name: existing rows are moved too,
            // and a later write finds no table and creates a new one.
            let keep = keep(&name, "");
            let drop = format!(
                "BEGIN; LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; {keep}; DROP TABLE {name}; COMMIT"
            );
            connection.batch_execute(&drop).await?;
            dropped.push(day);
        }
        forget_kept(&mut connection, now - EVENTS_KEPT).await?;
        // The server notices the end of the connection later, and the next call must not find the lock held.
        connection.batch_execute("SELECT pg_advisory_unlock(hashtext('callboard old events'))").await?;
        Ok(dropped)
    }

    /// Creates the partitions from yesterday (a clock may lag) to [`PARTITIONS_AHEAD`] days after `today`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer or rejects a statement.
    pub async fn ensure_partitions(&self, today: NaiveDate) -> Result<(), StoreError> {
        let mut connection = self.connector().open(SessionKind::Owner).await?;
        ensure(&mut connection, today).await
    }

    /// Creates missing partitions for a lane: the clock may have jumped.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer or rejects a statement.
    pub async fn make_partitions(&self, days: &BTreeSet<NaiveDate>) -> Result<(), StoreError> {
        let mut connection = self.connector().open(SessionKind::Owner).await?;
        make(&mut connection, days.iter().copied()).await
    }
}

/// The UTC day in a UUIDv7: the partition for a stream's events.
#[must_use]
pub fn day_of(id: Uuid) -> NaiveDate {
    let (seconds, nanos) = id.get_timestamp().map_or((0, 0), |time| time.to_unix());
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, nanos).unwrap_or_default().date_naive()
}

/// The name of the table with the events of a day's streams.
pub(crate) fn partition_name(day: NaiveDate) -> String {
    day.format("stream_events_%Y%m%d").to_string()
}

fn day_of_partition(name: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(name.strip_prefix("stream_events_")?, "%Y%m%d").ok()
}

/// Returns all partitions, oldest first, including those that were detached and not dropped.
async fn partitions(connection: &mut AsyncPgConnection) -> Result<Vec<Partition>, StoreError> {
    let sql = "SELECT c.relname::text AS name, i.inhrelid IS NOT NULL AS attached,
                   coalesce(i.inhdetachpending, false) AS detaching
               FROM pg_class parent JOIN pg_class c ON c.relnamespace = parent.relnamespace AND c.relkind = 'r'
               LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = parent.oid
               WHERE parent.oid = 'stream_events'::regclass AND c.relname LIKE 'stream\\_events\\_%' ORDER BY 1";
    Ok(diesel::sql_query(sql).load(connection).await?)
}

/// Restricts `keep` to streams of unfinished runs.
const UNFINISHED: &str = "JOIN runs r ON r.id = s.run_id WHERE r.finished_at IS NULL";

/// Moves the events of existing streams out of a partition.
fn keep(name: &str, which: &str) -> String {
    format!(
        "INSERT INTO stream_events_kept (stream_id, first_seq, last_seq, frames)
         SELECT e.stream_id, e.first_seq, e.last_seq, e.frames
         FROM {name} e JOIN streams s ON s.id = e.stream_id {which} ON CONFLICT DO NOTHING"
    )
}

/// Whether a run with a stream of this day executes, or ended after `ended`. Parked runs do not count.
async fn is_read(
    connection: &mut AsyncPgConnection,
    day: NaiveDate,
    ended: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let (from, to) = ids_of(day);
    let read: Option<Scalar<bool>> = diesel::sql_query(
        "SELECT true AS holds FROM streams s JOIN runs r ON r.id = s.run_id
         WHERE s.id >= $1 AND s.id < $2 AND (r.finished_at > $3 OR r.finished_at IS NULL
             AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id)) LIMIT 1",
    )
    .bind::<SqlUuid, _>(from)
    .bind::<SqlUuid, _>(to)
    .bind::<Timestamptz, _>(ended)
    .get_result(connection)
    .await
    .optional()?;
    Ok(read.is_some())
}

/// Deletes a day's streams whose runs ended until `ended`: without its events a stream would look empty.
async fn forget_streams(
    connection: &mut AsyncPgConnection,
    day: NaiveDate,
    ended: DateTime<Utc>,
) -> Result<(), StoreError> {
    let (from, to) = ids_of(day);
    loop {
        let forgotten = diesel::sql_query(
            "DELETE FROM streams WHERE id IN (
                 SELECT s.id FROM streams s JOIN runs r ON r.id = s.run_id
                 WHERE s.id >= $1 AND s.id < $2 AND r.finished_at <= $4
                     AND NOT EXISTS (SELECT FROM training_runs t WHERE t.run_id = s.run_id) LIMIT $3)",
        )
        .bind::<SqlUuid, _>(from)
        .bind::<SqlUuid, _>(to)
        .bind::<BigInt, _>(PART)
        .bind::<Timestamptz, _>(ended)
        .execute(connection)
        .await?;
        if forgotten == 0 {
            return Ok(());
        }
    }
}

/// Deletes streams with kept events whose runs ended until `ended`: their day's partition may be gone.
async fn forget_kept(connection: &mut AsyncPgConnection, ended: DateTime<Utc>) -> Result<(), StoreError> {
    let forget = "DELETE FROM streams s USING runs r WHERE r.id = s.run_id AND r.finished_at <= $1
                      AND s.id IN (SELECT stream_id FROM stream_events_kept)
                      -- Events of trainings stay with their run.
                      AND NOT EXISTS (SELECT FROM training_runs t WHERE t.run_id = s.run_id)";
    diesel::sql_query(forget).bind::<Timestamptz, _>(ended).execute(connection).await?;
    Ok(())
}

/// Returns the id range of a day: from the first id, before the second.
fn ids_of(day: NaiveDate) -> (Uuid, Uuid) {
    let first = |day: NaiveDate| first_id_at(day.and_time(NaiveTime::MIN).and_utc());
    (first(day), first(day.succ_opt().unwrap_or(day)))
}

pub(crate) async fn ensure(connection: &mut AsyncPgConnection, today: NaiveDate) -> Result<(), StoreError> {
    let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
    make(connection, first.iter_days().zip(0..PARTITIONS_AHEAD + 2).map(|(day, _)| day)).await
}

async fn make(
    connection: &mut AsyncPgConnection,
    days: impl Iterator<Item = NaiveDate>,
) -> Result<(), StoreError> {
    // The lock lasts until the tables are committed: a batch of several statements is one transaction.
    let mut sql = format!("{LOCK}SELECT pg_advisory_xact_lock(hashtext('callboard partitions'));");
    for day in days {
        let next = day.succ_opt().unwrap_or(day);
        let name = partition_name(day);
        // Lanes write directly into the partition, so the role needs rights on it too.
        sql.push_str(&format!(
            "CREATE TABLE IF NOT EXISTS {name} PARTITION OF stream_events FOR VALUES FROM ('{day}') TO ('{next}');
             DO $$ BEGIN
                 IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}')
                    AND NOT has_table_privilege('{ROLE}', '{name}', 'DELETE') THEN
                     GRANT SELECT, INSERT, DELETE ON {name} TO {ROLE};
                 END IF;
             END $$;"
        ));
    }
    connection.batch_execute(&sql).await?;
    Ok(())
}
