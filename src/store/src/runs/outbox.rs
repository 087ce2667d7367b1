//! The outbox: requests that came with a step's row. A request is claimed before it is sent and marked after the
//! receiver accepted it: if the sender dies in between, the request is sent again, under the same id.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::outbox;
use crate::{Store, StoreError};

/// A request that was claimed.
#[derive(Clone, QueryableByName)]
pub struct ClaimedDelivery {
    /// The same for every sender.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// Whose secrets it names.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// JSON.
    #[diesel(sql_type = Text)]
    pub request: String,
    /// This one included.
    #[diesel(sql_type = Integer)]
    pub attempts: i32,
    /// When its step was done.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// What was noted on the way, JSON.
    #[diesel(sql_type = Nullable<Text>)]
    pub progress: Option<String>,
}

/// What has become of a request.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = outbox)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredDelivery {
    /// The same for every sender.
    pub id: Uuid,
    /// How often it was claimed.
    pub attempts: i32,
    /// When its step was done.
    pub created_at: DateTime<Utc>,
    /// No other sender claims it before this time; `None`: it is over.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub finished_at: Option<DateTime<Utc>>,
    /// Why the last attempt was not taken.
    pub error: Option<String>,
}

impl Store {
    /// What has become of the requests of a run that are remembered, in the order in which they were left.
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

    /// Claims requests that are due; no other sender can claim them for as long as `sending`.
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

    /// Requests that an earlier life of this instance had claimed are due again.
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

    /// Notes how far a claimed request has come.
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

    /// A claimed request is tried again at `next`, or is over; `error` says why it was not taken.
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

    /// Forgets requests that were over before `before`.
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
