//! Write leases. Leases on several machines need one clock, so the queries use SQL `now()`; only `presence.rs`
//! does the same.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::runs::crashes::record_end;
use crate::runs::queue::taken;
use crate::runs::records::reassign;
use crate::{ClaimFailed, Store, StoreError};

/// Lease duration without renewal, seconds.
pub const LEASE_SECONDS: i32 = 10;

/// An instance's right to write, under one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The service's instance.
    pub writer_id: Uuid,
    /// Increases with each owner.
    pub epoch: i64,
}

#[derive(QueryableByName)]
struct Epoch {
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = SqlUuid)]
    oldest_run: Uuid,
}

#[derive(QueryableByName)]
struct Dead {
    #[diesel(sql_type = SqlUuid)]
    writer_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    oldest_run: Uuid,
    /// Whether its process crashed.
    #[diesel(sql_type = Bool)]
    crashed: bool,
}

impl Store {
    /// Acquires this instance's lease under a new epoch, which fences the previous owner.
    ///
    /// The second value is the first run that may be unfinished. `since` is a current id: ids from an earlier
    /// life may be later if the clock was set back. The end of the earlier life is recorded for each of its
    /// unfinished runs.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn take_lease(&self, writer_id: Uuid, since: Uuid) -> Result<(Lease, Uuid), StoreError> {
        let mut connection = self.connection().await?;
        let row =
            connection.transaction(async |connection| begin_life(connection, writer_id, since).await).await?;
        Ok((Lease { writer_id, epoch: row.epoch }, row.oldest_run))
    }

    /// Renews the lease and returns the database's time; `None` if another owner has acquired the lease.
    ///
    /// This writer's runs before `oldest_run` have all ended. If another instance's lease expires later than
    /// any lease can, it was renewed before the database's clock was set back: it now expires as if renewed
    /// now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn renew_lease(
        &self,
        lease: Lease,
        oldest_run: Uuid,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let renewed: Vec<Scalar<DateTime<Utc>>> = diesel::sql_query(format!(
            "WITH late AS (UPDATE leases SET expires_at = now() + interval '{LEASE_SECONDS} seconds'
                           WHERE writer_id <> $1 AND expires_at <> 'infinity'
                               AND expires_at > now() + interval '{LEASE_SECONDS} seconds' * 3)
             UPDATE leases SET expires_at = now() + interval '{LEASE_SECONDS} seconds', oldest_run = $3,
                 round = round + 1
             WHERE writer_id = $1 AND epoch = $2 RETURNING now() AS at"
        ))
        .bind::<SqlUuid, _>(lease.writer_id)
        .bind::<BigInt, _>(lease.epoch)
        .bind::<SqlUuid, _>(oldest_run)
        .get_results(&mut *self.connection().await?)
        .await?;
        Ok(renewed.into_iter().next().map(|row| row.0))
    }

    /// Whether other instances may be running: they hold a lease, or held one recently. After a database
    /// failure all leases have expired, and each instance renews its lease in its own time.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_others(&self, lease: Lease) -> Result<bool, StoreError> {
        let others: Vec<Scalar<Uuid>> = diesel::sql_query(format!(
            "SELECT writer_id FROM leases
             WHERE writer_id <> $1 AND expires_at > now() - interval '{LEASE_SECONDS} seconds' * 3
                 AND expires_at <> 'infinity' LIMIT 1",
        ))
        .bind::<SqlUuid, _>(lease.writer_id)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(!others.is_empty())
    }

    /// Returns the renewal count of each other live instance.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn lease_rounds(&self, lease: Lease) -> Result<BTreeMap<Uuid, i64>, StoreError> {
        #[derive(QueryableByName)]
        struct LeaseRow {
            #[diesel(sql_type = SqlUuid)]
            writer_id: Uuid,
            #[diesel(sql_type = BigInt)]
            round: i64,
        }
        let rows: Vec<LeaseRow> = diesel::sql_query(
            "SELECT writer_id, round FROM leases
             WHERE writer_id <> $1 AND expires_at > now() AND expires_at <> 'infinity'",
        )
        .bind::<SqlUuid, _>(lease.writer_id)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(rows.into_iter().map(|row| (row.writer_id, row.round)).collect())
    }

    /// Deletes leases that ended a day ago and have no unfinished run; returns their number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_leases(&self) -> Result<usize, StoreError> {
        let deleted = diesel::sql_query(
            "DELETE FROM leases l WHERE l.expires_at = 'infinity' AND l.ended_at < now() - interval '24 hours'
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.id >= l.oldest_run AND r.writer_id = l.writer_id
                                     AND r.finished_at IS NULL
                                     AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id))",
        )
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(deleted)
    }

    /// Extends this writer's lease back to a run that is older than its oldest run.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn reach_back(&self, writer_id: Uuid, run: Uuid) -> Result<(), StoreError> {
        diesel::sql_query("UPDATE leases SET oldest_run = least(oldest_run, $2) WHERE writer_id = $1")
            .bind::<SqlUuid, _>(writer_id)
            .bind::<SqlUuid, _>(run)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Releases the lease at process exit, so that other instances need not wait for its expiry. `shutdown`:
    /// the exit was requested, not caused by a failure.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn release_lease(&self, lease: Lease, shutdown: bool) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET expires_at = now(), ended_at = CASE WHEN $3 THEN now() END
                   WHERE writer_id = $1 AND epoch = $2";
        diesel::sql_query(sql)
            .bind::<SqlUuid, _>(lease.writer_id)
            .bind::<BigInt, _>(lease.epoch)
            .bind::<Bool, _>(shutdown)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Takes over the unfinished runs of writers whose lease has expired, and returns them.
    ///
    /// The same transaction increases the dead writer's epoch, which fences a writer that was only slow. The
    /// lease of `by` is extended back to the oldest of these runs; if `by` has lost its lease, it takes over
    /// nothing.
    ///
    /// # Errors
    /// [`ClaimFailed`] when the database does not answer.
    pub async fn take_over_expired(&self, by: Lease) -> Result<Vec<Uuid>, ClaimFailed> {
        taken!(self, |connection| take_over(connection, by).await?)
    }
}

/// The transaction in [`Store::take_lease`].
async fn begin_life(
    connection: &mut AsyncPgConnection,
    writer_id: Uuid,
    since: Uuid,
) -> Result<Epoch, StoreError> {
    let earlier: Option<Dead> = diesel::sql_query(
        "SELECT writer_id, oldest_run, ended_at IS NULL AS crashed FROM leases WHERE writer_id = $1 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(writer_id)
    .get_result(connection)
    .await
    .optional()?;
    if let Some(earlier) = earlier {
        record_end(connection, writer_id, earlier.oldest_run, earlier.crashed).await?;
    }
    let row = diesel::sql_query(format!(
        "INSERT INTO leases (writer_id, epoch, expires_at, oldest_run)
         VALUES ($1, nextval('lease_epochs'), now() + interval '{LEASE_SECONDS} seconds', $2)
         ON CONFLICT (writer_id) DO UPDATE
         SET epoch = excluded.epoch, expires_at = excluded.expires_at, ended_at = NULL,
             oldest_run = least(leases.oldest_run, excluded.oldest_run)
         RETURNING epoch, oldest_run"
    ))
    .bind::<SqlUuid, _>(writer_id)
    .bind::<SqlUuid, _>(since)
    .get_result(connection)
    .await?;
    Ok(row)
}

/// The transaction in [`Store::take_over_expired`].
async fn take_over(connection: &mut AsyncPgConnection, by: Lease) -> Result<Vec<Uuid>, StoreError> {
    // Locks its own lease first, so that two instances that consider each other dead do not deadlock.
    let able = diesel::sql_query(
        "SELECT FROM leases WHERE writer_id = $1 AND epoch = $2
             AND EXISTS (SELECT FROM leases WHERE expires_at < now() AND writer_id <> $1)
             FOR UPDATE",
    )
    .bind::<SqlUuid, _>(by.writer_id)
    .bind::<BigInt, _>(by.epoch)
    .execute(connection)
    .await?;
    if able == 0 {
        return Ok(Vec::new());
    }
    let dead: Vec<Dead> = diesel::sql_query(
        "UPDATE leases l SET epoch = nextval('lease_epochs'), expires_at = 'infinity', ended_at = now()
         FROM (SELECT writer_id, ended_at IS NULL AS crashed FROM leases
               WHERE expires_at < now() AND writer_id <> $1 FOR UPDATE SKIP LOCKED) d
         WHERE l.writer_id = d.writer_id RETURNING l.writer_id, l.oldest_run, d.crashed",
    )
    .bind::<SqlUuid, _>(by.writer_id)
    .load(connection)
    .await?;
    let mut taken = Vec::new();
    for writer in dead {
        record_end(connection, writer.writer_id, writer.oldest_run, writer.crashed).await?;
        taken.extend(reassign(connection, writer.writer_id, writer.oldest_run, by).await?);
    }
    if let Some(oldest) = taken.iter().min() {
        diesel::sql_query("UPDATE leases SET oldest_run = least(oldest_run, $2) WHERE writer_id = $1")
            .bind::<SqlUuid, _>(by.writer_id)
            .bind::<SqlUuid, _>(oldest)
            .execute(connection)
            .await?;
    }
    Ok(taken)
}
