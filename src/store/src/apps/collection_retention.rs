//! Cleanup of expired records: long deleted ones, and those of deleted collections, apps and users. Each call
//! handles a batch and returns whether more may be left.

use chrono::TimeDelta;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use super::collections::enter;
use crate::database::scalar::Scalar;
use crate::system::retention::is_full;
use crate::{Store, StoreError};

/// Retention of a deleted record's row.
const TOMBSTONE_KEPT: TimeDelta = TimeDelta::days(30);
/// Maximum collections per batch.
const COLLECTIONS_PART: i64 = 100;
/// Maximum records per collection and batch: each has up to 64 KiB.
const RECORDS_PART: i64 = 1_000;
/// The name for all owners, for deletions only.
const ANY: &str = "any";

#[derive(QueryableByName)]
struct Collection {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    app_id: Uuid,
}

impl Store {
    /// Deletes the rows of records that were deleted 30 days ago.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_deleted_records(&self) -> Result<bool, StoreError> {
        let condition = format!(
            "data IS NULL AND updated_at <= '{}'",
            (self.now() - TOMBSTONE_KEPT).format("%Y-%m-%d %H:%M:%S%.6f+00")
        );
        self.forget_records("tombstones > 0 AND deleted_at IS NULL", &condition).await
    }

    /// Erases records in deleted collections and apps.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_records_of_deleted(&self) -> Result<bool, StoreError> {
        let deleted = "record_count + tombstones > 0 AND (deleted_at IS NOT NULL
            OR EXISTS (SELECT FROM apps a WHERE a.id = app_id AND a.deleted_at IS NOT NULL))";
        self.forget_records(deleted, "true").await
    }

    /// Erases the records of users whose accounts are deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_records_of_absent_users(&self) -> Result<bool, StoreError> {
        let absent = "owner IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = owner)";
        self.forget_records("kind = 'user' AND record_count + tombstones > 0 AND deleted_at IS NULL", absent)
            .await
    }

    /// Deletes matching records from matching collections.
    async fn forget_records(&self, collections: &str, records: &str) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        let (mut after, mut more) = (Uuid::nil(), false);
        loop {
            let found: Vec<Collection> = diesel::sql_query(format!(
                "SELECT id, app_id FROM app_collections WHERE id > $1 AND {collections} ORDER BY id LIMIT $2"
            ))
            .bind::<SqlUuid, _>(after)
            .bind::<BigInt, _>(COLLECTIONS_PART)
            .load(&mut *connection)
            .await?;
            let Some(last) = found.last() else { return Ok(more) };
            after = last.id;
            for collection in found {
                let deleted = connection
                    .transaction(async |connection| forget_in(connection, &collection, records).await);
                more |= deleted.await?;
            }
        }
    }
}

/// Deletes a batch of matching records. Skips a collection that has nothing to delete or is being changed: a
/// later round finds it again.
async fn forget_in(
    connection: &mut AsyncPgConnection,
    collection: &Collection,
    records: &str,
) -> Result<bool, StoreError> {
    enter(connection, collection.app_id, ANY).await?;
    let sql = format!("SELECT id FROM app_records WHERE collection_id = $1 AND {records} LIMIT 1");
    let found: Option<Scalar<Uuid>> =
        diesel::sql_query(sql).bind::<SqlUuid, _>(collection.id).get_result(connection).await.optional()?;
    if found.is_none() {
        return Ok(false);
    }
    // Every change locks the collection before its records.
    let locked: Option<Scalar<Uuid>> =
        diesel::sql_query("SELECT id FROM app_collections WHERE id = $1 FOR UPDATE SKIP LOCKED")
            .bind::<SqlUuid, _>(collection.id)
            .get_result(connection)
            .await
            .optional()?;
    if locked.is_none() {
        return Ok(false);
    }
    let sql = format!(
        "WITH gone AS (DELETE FROM app_records WHERE id IN (SELECT id FROM app_records
                 WHERE collection_id = $1 AND {records} LIMIT $2)
             RETURNING data),
         sums AS (SELECT count(*) FILTER (WHERE data IS NOT NULL) AS records,
                 coalesce(sum(octet_length(data)), 0)::bigint AS bytes,
                 count(*) FILTER (WHERE data IS NULL) AS tombstones, count(*) AS rows FROM gone),
         counted AS (UPDATE app_collections c SET record_count = record_count - s.records,
                 record_bytes = record_bytes - s.bytes, tombstones = c.tombstones - s.tombstones
             FROM sums s WHERE c.id = $1 AND s.rows > 0)
         SELECT rows AS count FROM sums"
    );
    let deleted: Scalar<i64> = diesel::sql_query(sql)
        .bind::<SqlUuid, _>(collection.id)
        .bind::<BigInt, _>(RECORDS_PART)
        .get_result(connection)
        .await?;
    Ok(is_full(usize::try_from(deleted.0).unwrap_or_default(), RECORDS_PART))
}
