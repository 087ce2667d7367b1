//! The outbox: requests stored with a step's row. A request is claimed before it is sent and marked after the
//! receiver has accepted it: if the sender dies in between, the request is sent again under the same id.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::outbox;
use crate::{Store, StoreError};

/// A claimed request.
#[derive(Clone, QueryableByName)]
pub struct ClaimedDelivery {
    /// Identical for every sender.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// The workspace whose secrets it names.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// JSON.
    #[diesel(sql_type = Text)]
    pub request: String,
    /// Attempts, including this one.
    #[diesel(sql_type = Integer)]
    pub attempts: i32,
    /// When its step finished.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// Progress recorded by earlier attempts, JSON.
    #[diesel(sql_type = Nullable<Text>)]
    pub progress: Option<String>,
}

/// The delivery state of a request.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = outbox)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredDelivery {
    /// Identical for every sender.
    pub id: Uuid,
    /// The number of claims.
    pub attempts: i32,
    /// When its step finished.
    pub created_at: DateTime<Utc>,
    /// The earliest time at which another sender can claim it; `None`: it is finished.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was finished.
    pub finished_at: Option<DateTime<Utc>>,
    /// The reason why the receiver did not accept the last attempt.
    pub error: Option<String>,
}

impl Store {
    /// Returns the delivery states of a run's stored requests, in creation order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn deliveries(&self, run: Uuid) -> Result<Vec<StoredDelivery>, StoreError> {
        let rows = outbox::table
            .filter(outbox::run_id.eq(run))
            .order((outbox::created_at, outbox::id))
            .select(StoredDelivery::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        Ok(rows)
    }

    /// Claims due requests; no other sender can claim them during `sending`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn claim_deliveries(
        &self,
        instance: Uuid,
        sending: TimeDelta,
        most: i64,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let now = self.now();
        diesel::sql_query(
            "UPDATE outbox SET next_attempt_at = $2, attempts = attempts + 1, claimed_by = $3 FROM runs
             WHERE outbox.id IN (SELECT o.id FROM outbox o JOIN runs r ON r.id = o.run_id WHERE o.next_attempt_at <= $1
                                 ORDER BY o.next_attempt_at LIMIT $4 FOR UPDATE OF o SKIP LOCKED)
             AND runs.id = outbox.run_id
             RETURNING outbox.id, runs.workspace_id, outbox.request, outbox.attempts, outbox.created_at,
                 outbox.progress",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + sending)
        .bind::<SqlUuid, _>(instance)
        .bind::<BigInt, _>(most)
        .load(&mut *self.connection().await?)
        .await
        .map_err(StoreError::from)
    }

    /// Releases the requests that an earlier life of this instance had claimed; they are due again.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn give_deliveries_back(&self, instance: Uuid) -> Result<usize, StoreError> {
        let given = diesel::update(outbox::table)
            .filter(outbox::claimed_by.eq(instance))
            .filter(outbox::finished_at.is_null())
            .set((outbox::next_attempt_at.eq(Some(self.now())), outbox::claimed_by.eq(None::<Uuid>)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(given)
    }

    /// Records the progress of a claimed request.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn note_progress(&self, id: Uuid, progress: &str) -> Result<(), StoreError> {
        diesel::update(outbox::table.find(id))
            .set(outbox::progress.eq(progress))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Schedules the next attempt at `next`, or finishes the request if `None`; `error`: the reason for a
    /// rejection.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn note_delivery(
        &self,
        id: Uuid,
        next: Option<DateTime<Utc>>,
        error: Option<&str>,
    ) -> Result<(), StoreError> {
        let finished_at = next.is_none().then(|| self.now());
        diesel::update(outbox::table.find(id))
            .set((
                outbox::next_attempt_at.eq(next),
                outbox::claimed_by.eq(None::<Uuid>),
                outbox::finished_at.eq(finished_at),
                outbox::error.eq(error),
            ))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Deletes requests that were finished before `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_deliveries(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let gone = diesel::delete(outbox::table.filter(outbox::finished_at.lt(before)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(gone)
    }
}
