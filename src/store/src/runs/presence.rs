//! Readers of streams that another instance writes. As for leases, SQL `now()` decides about expiry: several
//! machines need one clock.

use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Duration of a presence without renewal, seconds.
const PRESENCE_SECONDS: i32 = 6;

impl Store {
    /// Records that this instance has readers of these streams; lasts six seconds.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn announce_readers(&self, instance: Uuid, streams: &[Uuid]) -> Result<(), StoreError> {
        // Sorted, so that two statements do not deadlock.
        diesel::sql_query(format!(
            "INSERT INTO stream_readers (stream_id, instance_id, until)
             SELECT id, $1, now() + interval '{PRESENCE_SECONDS} seconds' FROM unnest($2) AS t (id) ORDER BY id
             ON CONFLICT (stream_id, instance_id) DO UPDATE SET until = excluded.until"
        ))
        .bind::<SqlUuid, _>(instance)
        .bind::<Array<SqlUuid>, _>(streams)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Records that this instance no longer has readers of these streams.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn withdraw_readers(&self, instance: Uuid, streams: &[Uuid]) -> Result<(), StoreError> {
        prepared("DELETE FROM stream_readers WHERE instance_id = $1 AND stream_id = ANY($2)")
            .bind::<SqlUuid, _>(instance)
            .bind::<Array<SqlUuid>, _>(streams)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Whether an instance other than this one has readers of the stream.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn is_read_elsewhere(&self, stream: Uuid, instance: Uuid) -> Result<bool, StoreError> {
        let found: Scalar<bool> = prepared(
            "SELECT EXISTS (SELECT FROM stream_readers
                            WHERE stream_id = $1 AND instance_id <> $2
                                AND until BETWEEN now() AND now() + interval '1 minute') AS found",
        )
        .bind::<SqlUuid, _>(stream)
        .bind::<SqlUuid, _>(instance)
        .get_result(&mut *self.connection().await?)
        .await?;
        Ok(found.0)
    }

    /// Deletes expired presences, and those that a clock change on the database server has left in the future.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_readers(&self) -> Result<(), StoreError> {
        prepared(
            "DELETE FROM stream_readers
             WHERE until NOT BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'",
        )
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}
