//! Runs without a current writer, and the writers that claim them.
//!
//! A queued run waits for a time, for an answer, or for its workflow's next free slot. The writer that claims
//! it becomes its owner in the same transaction, with a lease that reaches back to it: an unfinished run is in
//! the queue, or has a writer that recovery watches.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::first_id_at;
use uuid::Uuid;

use crate::database::changes::lock_of;
use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::schema::workflows;
use crate::{Lease, Store, StoreError};

/// Maximum runs claimed per call.
const MOST: i64 = 200;
/// Maximum workflows read per call.
const MOST_WORKFLOWS: i64 = 1_000;
/// Retention of a signal that no writer takes.
const SIGNALS: TimeDelta = TimeDelta::minutes(5);

#[derive(QueryableByName)]
struct Queued {
    #[diesel(sql_type = SqlUuid)]
    run_id: Uuid,
    #[diesel(sql_type = Nullable<Integer>)]
    most: Option<i32>,
}

/// Runs could not be claimed, or the outcome of the claim is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ClaimFailed {
    /// Runs that this writer owns if the commit succeeded and only its answer was lost.
    pub uncertain: Vec<Uuid>,
    /// The cause.
    #[source]
    pub error: StoreError,
}

impl From<StoreError> for ClaimFailed {
    fn from(error: StoreError) -> Self {
        Self { uncertain: Vec::new(), error }
    }
}

/// Claims runs in a transaction; their ids are kept even if the commit fails.
macro_rules! taken {
    ($store:expr, |$connection:ident| $taking:expr) => {{
        let mut connection = $store.connection().await?;
        let mut runs = Vec::new();
        let done = connection
            .transaction(async |$connection| {
                runs = $taking;
                Ok::<_, StoreError>(())
            })
            .await;
        match done {
            Ok(()) => Ok(runs),
            Err(error) => Err(ClaimFailed { uncertain: runs, error }),
        }
    }};
}
pub(crate) use taken;

impl Store {
    /// Claims due runs. If a workflow limits its concurrent runs, its due runs wait for a slot from now on;
    /// chat turns, trainings and evaluations do not count toward that limit.
    ///
    /// # Errors
    /// [`ClaimFailed`] when the database does not answer.
    pub async fn take_due(&self, by: Lease) -> Result<Vec<Uuid>, ClaimFailed> {
        let now = self.now();
        taken!(self, |connection| {
            let due: Vec<Queued> = prepared(
                "SELECT q.run_id, CASE WHEN r.thread_id IS NULL AND r.trigger NOT IN ('training', 'evaluation', 'gate')
                     THEN w.max_concurrent_runs END AS most
                 FROM run_queue q JOIN runs r ON r.id = q.run_id LEFT JOIN workflows w ON w.id = q.workflow_id
                 WHERE NOT q.turn AND q.due_at <= $1 ORDER BY q.due_at LIMIT $2 FOR UPDATE OF q SKIP LOCKED",
            )
            .bind::<Timestamptz, _>(now)
            .bind::<BigInt, _>(MOST)
            .load(connection)
            .await?;
            let (limited, free): (Vec<_>, Vec<_>) = due.into_iter().partition(|run| run.most.is_some());
            if !limited.is_empty() {
                let limited: Vec<Uuid> = limited.into_iter().map(|run| run.run_id).collect();
                prepared("UPDATE run_queue SET turn = true WHERE run_id = ANY($1)")
                    .bind::<Array<SqlUuid>, _>(limited)
                    .execute(connection)
                    .await?;
            }
            let free: Vec<Uuid> = free.into_iter().map(|run| run.run_id).collect();
            take(connection, by, &free, now).await?
        })
    }

    /// Returns workflows with runs that wait for a slot.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workflows_with_turns(&self) -> Result<Vec<Uuid>, StoreError> {
        let found: Vec<Scalar<Uuid>> =
            prepared("SELECT DISTINCT workflow_id AS id FROM run_queue WHERE turn LIMIT $1")
                .bind::<BigInt, _>(MOST_WORKFLOWS)
                .load(&mut *self.connection().await?)
                .await?;
        Ok(found.into_iter().map(|found| found.0).collect())
    }

    /// Claims a workflow's waiting runs up to its concurrency limit, oldest first. `None` while another
    /// instance does so.
    ///
    /// # Errors
    /// [`ClaimFailed`] when the database does not answer.
    pub async fn take_turns(&self, by: Lease, workflow: Uuid) -> Result<Option<Vec<Uuid>>, ClaimFailed> {
        let (mut able, now) = (true, self.now());
        let turns = taken!(self, |connection| {
            able = may_count(connection, workflow).await?;
            if able { turns(connection, by, workflow, now).await? } else { Vec::new() }
        })?;
        Ok(able.then_some(turns))
    }

    /// Claims one run from the queue, whatever it waits for; returns it if it was queued.
    ///
    /// # Errors
    /// [`ClaimFailed`] when the database does not answer.
    pub async fn take_queued(&self, by: Lease, run: Uuid) -> Result<Vec<Uuid>, ClaimFailed> {
        let now = self.now();
        taken!(self, |connection| {
            let found: Vec<Scalar<Uuid>> =
                prepared("SELECT run_id AS id FROM run_queue WHERE run_id = $1 FOR UPDATE SKIP LOCKED")
                    .bind::<SqlUuid, _>(run)
                    .load(connection)
                    .await?;
            let found: Vec<Uuid> = found.into_iter().map(|found| found.0).collect();
            take(connection, by, &found, now).await?
        })
    }

    /// Makes waiting runs due that have been answered since then: an answer may arrive while its run is being
    /// enqueued.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn wake_answered(&self, since: DateTime<Utc>) -> Result<usize, StoreError> {
        let now = self.now();
        let woken = prepared(
            "UPDATE run_queue q SET due_at = $1
             FROM run_questions a JOIN run_steps s USING (run_id, node, visit, attempt)
             WHERE a.run_id = q.run_id AND NOT q.turn AND (q.due_at IS NULL OR q.due_at > $1)
               AND a.answered_at > $2 AND s.finished_at IS NULL",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(since)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(woken)
    }

    /// Frees the slots that ended runs still hold, and deletes signals that no writer has taken.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn tidy_run_queue(&self) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        prepared("DELETE FROM run_places p USING runs r WHERE r.id = p.run_id AND r.finished_at IS NOT NULL")
            .execute(&mut *connection)
            .await?;
        prepared("DELETE FROM run_signals WHERE created_at < $1")
            .bind::<Timestamptz, _>(self.now() - SIGNALS)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Signals another instance to check one of its runs.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn signal(&self, writer: Uuid, run: Uuid) -> Result<(), StoreError> {
        prepared("INSERT INTO run_signals (writer_id, run_id, created_at) VALUES ($1, $2, $3)")
            .bind::<SqlUuid, _>(writer)
            .bind::<SqlUuid, _>(run)
            .bind::<Timestamptz, _>(self.now())
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Takes the signals for this instance: runs to check.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn take_signals(&self, writer: Uuid) -> Result<Vec<Uuid>, StoreError> {
        let found: Vec<Scalar<Uuid>> =
            prepared("DELETE FROM run_signals WHERE writer_id = $1 RETURNING run_id AS id")
                .bind::<SqlUuid, _>(writer)
                .load(&mut *self.connection().await?)
                .await?;
        Ok(found.into_iter().map(|found| found.0).collect())
    }

    /// Scans `limit` runs after `after` for those that `by` owns and those that are orphaned: neither queued
    /// nor owned by a writer with a lease.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn scan_ownership(
        &self,
        by: Lease,
        after: Uuid,
        limit: i64,
    ) -> Result<OwnershipScan, StoreError> {
        #[derive(QueryableByName)]
        struct Looked {
            #[diesel(sql_type = SqlUuid)]
            id: Uuid,
            #[diesel(sql_type = SqlUuid)]
            writer_id: Uuid,
            #[diesel(sql_type = Bool)]
            unfinished: bool,
            #[diesel(sql_type = Bool)]
            owned: bool,
            #[diesel(sql_type = Bool)]
            orphaned: bool,
        }
        let looked: Vec<Looked> = prepared(
            "SELECT r.id, r.writer_id, r.unfinished, r.unfinished AND r.writer_id = $3 AND NOT q.there AS owned,
                 r.unfinished AND NOT q.there AND NOT EXISTS (SELECT FROM leases l WHERE l.writer_id = r.writer_id
                     AND l.expires_at <> 'infinity' AND l.oldest_run <= r.id) AS orphaned
             FROM (SELECT id, writer_id, finished_at IS NULL AS unfinished FROM runs WHERE id > $1
                   ORDER BY id LIMIT $2) r,
                 LATERAL (SELECT r.unfinished AND EXISTS (SELECT FROM run_queue WHERE run_id = r.id) AS there) q
             ORDER BY r.id",
        )
        .bind::<SqlUuid, _>(after)
        .bind::<BigInt, _>(limit)
        .bind::<SqlUuid, _>(by.writer_id)
        .load(&mut *self.connection().await?)
        .await?;
        let full = i64::try_from(looked.len()).is_ok_and(|looked| looked == limit);
        let which = |is: fn(&Looked) -> bool| {
            let found = looked.iter().filter(|row| is(row));
            found.map(|row| SeenRun { run: row.id, writer: row.writer_id }).collect()
        };
        Ok(OwnershipScan {
            orphaned: which(|row| row.orphaned),
            owned: which(|row| row.owned && !row.orphaned),
            last: looked.last().map(|row| row.id).filter(|_| full),
            first_unfinished: looked.iter().find(|row| row.unfinished).map(|row| row.id),
        })
    }

    /// Makes this writer the owner of runs that it already owns or that are orphaned; returns the runs for
    /// which this is still true.
    ///
    /// # Errors
    /// [`ClaimFailed`] when the database does not answer.
    pub async fn adopt_orphaned(&self, by: Lease, seen: &[SeenRun]) -> Result<Vec<Uuid>, ClaimFailed> {
        let Some(oldest) = seen.iter().map(|seen| seen.run).min() else { return Ok(Vec::new()) };
        let runs: Vec<Uuid> = seen.iter().map(|seen| seen.run).collect();
        let writers: Vec<Uuid> = seen.iter().map(|seen| seen.writer).collect();
        taken!(self, |connection| {
            if reach(connection, by, oldest).await? {
                let owned: Vec<Scalar<Uuid>> = prepared(
                    "UPDATE runs SET writer_id = $1 FROM unnest($2, $3) AS t (id, writer)
                     WHERE runs.id = t.id AND runs.writer_id = t.writer AND runs.finished_at IS NULL
                         AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = runs.id)
                         AND (t.writer = $1 OR NOT EXISTS (SELECT FROM leases l WHERE l.writer_id = t.writer
                             AND l.expires_at <> 'infinity' AND l.oldest_run <= runs.id))
                     RETURNING runs.id",
                )
                .bind::<SqlUuid, _>(by.writer_id)
                .bind::<Array<SqlUuid>, _>(&runs)
                .bind::<Array<SqlUuid>, _>(&writers)
                .load(connection)
                .await?;
                owned.into_iter().map(|found| found.0).collect()
            } else {
                Vec::new()
            }
        })
    }
}

/// A run as last scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRun {
    /// The run.
    pub run: Uuid,
    /// Its writer at that time.
    pub writer: Uuid,
}

/// The result of an ownership scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipScan {
    /// Unfinished runs without an owner.
    pub orphaned: Vec<SeenRun>,
    /// Unfinished runs owned by the scanning writer.
    pub owned: Vec<SeenRun>,
    /// The last scanned run, if more follow.
    pub last: Option<Uuid>,
    /// The first unfinished run.
    pub first_unfinished: Option<Uuid>,
}

/// Whether this transaction may claim a workflow's waiting runs: only one at a time counts the slots and
/// claims.
async fn may_count(connection: &mut AsyncPgConnection, workflow: Uuid) -> Result<bool, StoreError> {
    let locked: Scalar<bool> = prepared("SELECT pg_try_advisory_xact_lock($1) AS locked")
        .bind::<BigInt, _>(lock_of(&format!("turns\n{workflow}")))
        .get_result(connection)
        .await?;
    Ok(locked.0)
}

/// Claims as many of a workflow's runs as it has free slots.
async fn turns(
    connection: &mut AsyncPgConnection,
    by: Lease,
    workflow: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    let most: Option<Option<i32>> = workflows::table
        .find(workflow)
        .select(workflows::max_concurrent_runs)
        .first(connection)
        .await
        .optional()?;
    let most = most.flatten();
    let room = match most {
        Some(most) => {
            let held: Scalar<i64> =
                prepared("SELECT count(*) AS count FROM run_places WHERE workflow_id = $1")
                    .bind::<SqlUuid, _>(workflow)
                    .get_result(connection)
                    .await?;
            (i64::from(most) - held.0).clamp(0, MOST)
        }
        None => MOST,
    };
    let found: Vec<Scalar<Uuid>> = prepared(
        "SELECT run_id AS id FROM run_queue WHERE turn AND workflow_id = $1 ORDER BY run_id LIMIT $2
         FOR UPDATE SKIP LOCKED",
    )
    .bind::<SqlUuid, _>(workflow)
    .bind::<BigInt, _>(room)
    .load(connection)
    .await?;
    let found: Vec<Uuid> = found.into_iter().map(|found| found.0).collect();
    let taken = take(connection, by, &found, now).await?;
    if most.is_some() {
        prepared("INSERT INTO run_places (run_id, workflow_id) SELECT unnest($1), $2 ON CONFLICT DO NOTHING")
            .bind::<Array<SqlUuid>, _>(&taken)
            .bind::<SqlUuid, _>(workflow)
            .execute(connection)
            .await?;
    }
    Ok(taken)
}

/// Removes runs from the queue and claims them. The caller holds their row locks.
async fn take(
    connection: &mut AsyncPgConnection,
    by: Lease,
    runs: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    // Deletes the queue rows first: only a run outside the queue can have an owner.
    let Some(oldest) = runs.iter().min() else { return Ok(Vec::new()) };
    if !reach(connection, by, *oldest).await? {
        return Ok(Vec::new());
    }
    prepared("DELETE FROM run_queue WHERE run_id = ANY($1)")
        .bind::<Array<SqlUuid>, _>(runs)
        .execute(connection)
        .await?;
    own(connection, by, runs, now).await
}

/// Extends a lease back to a run; `false` if the lease is lost.
async fn reach(connection: &mut AsyncPgConnection, by: Lease, oldest: Uuid) -> Result<bool, StoreError> {
    let reached =
        prepared("UPDATE leases SET oldest_run = least(oldest_run, $3) WHERE writer_id = $1 AND epoch = $2")
            .bind::<SqlUuid, _>(by.writer_id)
            .bind::<BigInt, _>(by.epoch)
            .bind::<SqlUuid, _>(oldest)
            .execute(connection)
            .await?;
    Ok(reached > 0)
}

/// Makes a writer the owner of unfinished runs that are not queued. A chat turn is ordered after the turns that
/// its thread has accepted so far.
async fn own(
    connection: &mut AsyncPgConnection,
    by: Lease,
    runs: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    let owned: Vec<Scalar<Uuid>> = prepared(
        "UPDATE runs SET writer_id = $1, turn_order = CASE WHEN thread_id IS NOT NULL THEN $3 END,
             -- What has just left the queue executes nowhere.
             status = CASE WHEN thread_id IS NOT NULL AND status = 'running' THEN 'waiting' ELSE status END
         WHERE id = ANY($2) AND finished_at IS NULL
             AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = runs.id) RETURNING id",
    )
    .bind::<SqlUuid, _>(by.writer_id)
    .bind::<Array<SqlUuid>, _>(runs)
    .bind::<SqlUuid, _>(first_id_at(now))
    .load(connection)
    .await?;
    Ok(owned.into_iter().map(|found| found.0).collect())
}
