//! The right to write. SQL `now()` is used here and only here: leases of several machines need one clock.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::committed::committed;
use crate::run_queue::taken;
use crate::{NotTaken, Store, StoreError};

/// How long a lease lasts without renewal, seconds.
pub const LEASE_SECONDS: i32 = 10;

/// The right of one service to write, under one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The service's instance.
    pub writer_id: Uuid,
    /// Grows with each owner.
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
struct Renewed {
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Other {
    #[diesel(sql_type = SqlUuid)]
    #[expect(dead_code, reason = "whether there is a row is all that counts")]
    writer_id: Uuid,
}

#[derive(QueryableByName)]
struct Dead {
    #[diesel(sql_type = SqlUuid)]
    writer_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    oldest_run: Uuid,
}

impl Store {
    /// Takes this instance's lease under a new epoch: whoever held it before is fenced from now on.
    ///
    /// The second value is the run from which on there may be unfinished ones. `since` is an id of now: ids of an earlier life
    /// may be later, if the clock was set back.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn take_lease(&self, writer_id: Uuid, since: Uuid) -> Result<(Lease, Uuid), StoreError> {
        let row: Epoch = diesel::sql_query(format!(
            "INSERT INTO leases (writer_id, epoch, expires_at, oldest_run)
             VALUES ($1, 1, now() + interval '{LEASE_SECONDS} seconds', $2)
             ON CONFLICT (writer_id) DO UPDATE
             SET epoch = leases.epoch + 1, expires_at = excluded.expires_at,
                 oldest_run = least(leases.oldest_run, excluded.oldest_run)
             RETURNING epoch, oldest_run"
        ))
        .bind::<SqlUuid, _>(writer_id)
        .bind::<SqlUuid, _>(since)
        .get_results(&mut *self.connection().await?)
        .await
        .and_then(committed)?;
        Ok((Lease { writer_id, epoch: row.epoch }, row.oldest_run))
    }

    /// Keeps the lease and returns the database's time; `None` when it has gone to another owner.
    ///
    /// `oldest_run`: no run of this writer before it is unfinished. Leases of others that end later than any lease does were
    /// renewed before the database's clock was set back: they end as if renewed now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn renew_lease(
        &self,
        lease: Lease,
        oldest_run: Uuid,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let renewed: Vec<Renewed> = diesel::sql_query(format!(
            "WITH late AS (UPDATE leases SET expires_at = now() + interval '{LEASE_SECONDS} seconds'
                           WHERE writer_id <> $1 AND expires_at <> 'infinity'
                               AND expires_at > now() + interval '{LEASE_SECONDS} seconds' * 3)
             UPDATE leases SET expires_at = now() + interval '{LEASE_SECONDS} seconds', oldest_run = $3
             WHERE writer_id = $1 AND epoch = $2 RETURNING now() AS at"
        ))
        .bind::<SqlUuid, _>(lease.writer_id)
        .bind::<BigInt, _>(lease.epoch)
        .bind::<SqlUuid, _>(oldest_run)
        .get_results(&mut *self.connection().await?)
        .await?;
        Ok(renewed.into_iter().next().map(|row| row.at))
    }

    /// Whether other services hold a lease now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_others(&self, lease: Lease) -> Result<bool, StoreError> {
        let others: Vec<Other> = diesel::sql_query(
            "SELECT writer_id FROM leases
             WHERE writer_id <> $1 AND expires_at > now() AND expires_at <> 'infinity' LIMIT 1",
        )
        .bind::<SqlUuid, _>(lease.writer_id)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(!others.is_empty())
    }

    /// Lets this writer's lease reach back to a run that is older than its oldest one.
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

    /// Gives the lease up after an orderly end, so that others need not wait for it to expire.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn release_lease(&self, lease: Lease) -> Result<(), StoreError> {
        diesel::sql_query("UPDATE leases SET expires_at = now() WHERE writer_id = $1 AND epoch = $2")
            .bind::<SqlUuid, _>(lease.writer_id)
            .bind::<BigInt, _>(lease.epoch)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Takes over the unfinished runs of writers whose lease has expired, and yields them.
    ///
    /// The dead writer's epoch grows in the same transaction, so that it is fenced if it was only slow. The taker's
    /// lease reaches back to the oldest of them; one whose own lease is gone takes nothing.
    ///
    /// # Errors
    /// [`NotTaken`] when the database does not answer.
    pub async fn take_over_expired(&self, by: Lease) -> Result<Vec<Uuid>, NotTaken> {
        taken!(self, |connection| take_over(connection, by).await?)
    }
}

/// What [`Store::take_over_expired`] does in its transaction.
async fn take_over(connection: &mut AsyncPgConnection, by: Lease) -> Result<Vec<Uuid>, StoreError> {
    // Its own lease first: of two that take each other for dead, neither waits for the other.
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
        "UPDATE leases SET epoch = epoch + 1, expires_at = 'infinity'
             WHERE writer_id IN (SELECT writer_id FROM leases
                                 WHERE expires_at < now() AND writer_id <> $1
                                 FOR UPDATE SKIP LOCKED)
             RETURNING writer_id, oldest_run",
    )
    .bind::<SqlUuid, _>(by.writer_id)
    .load(connection)
    .await?;
    let mut taken = Vec::new();
    for writer in dead {
        taken.extend(crate::runs::reassign(connection, writer.writer_id, writer.oldest_run, by).await?);
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
