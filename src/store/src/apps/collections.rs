//! Collection records. Each access is a transaction that names the app and the owner: row security hides every
//! other record.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::{Changes, Store, StoreError};

/// Maximum records per collection.
pub const MAX_COLLECTION_RECORDS: i64 = 10_000;
/// Maximum data bytes per collection.
const MAX_COLLECTION_BYTES: i64 = 64 << 20;
/// The owner name for records that belong to no user.
const SHARED: &str = "shared";

/// The records that a request can access: those of one owner in one collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordScope {
    /// The app.
    pub app: Uuid,
    /// The collection.
    pub collection: Uuid,
    /// The user; `None` in a shared collection.
    pub owner: Option<Uuid>,
}

/// A record that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct StoredRecord {
    /// Its id.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// Its version number, from 1.
    #[diesel(sql_type = BigInt)]
    pub version: i64,
    /// JSON object.
    #[diesel(sql_type = Text)]
    pub data: String,
    /// SHA-256 of the node visit that wrote this version.
    #[diesel(sql_type = Nullable<Bytea>)]
    pub written_by: Option<Vec<u8>>,
    /// When it was created.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    #[diesel(sql_type = Timestamptz)]
    pub updated_at: DateTime<Utc>,
}

/// Record data to store.
#[derive(Debug, Clone, Copy)]
pub struct RecordWrite<'a> {
    /// JSON object.
    pub data: &'a str,
    /// SHA-256 of the node visit that writes it; `None`: a request writes it.
    pub written_by: Option<&'a [u8]>,
}

/// The reason why a record access was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordRefusal {
    /// The collection is deleted.
    Gone,
    /// The record does not exist, or is deleted.
    NotFound,
    /// The collection has reached its maximum records or bytes.
    Full,
}

/// The result of a record change.
pub type RecordChange<T> = Result<Result<T, RecordRefusal>, StoreError>;

/// A page of records to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPage {
    /// The previous page's last record.
    pub after: Option<(DateTime<Utc>, Uuid)>,
    /// Whether newest come first.
    pub descending: bool,
    /// Maximum records.
    pub limit: i64,
}

#[derive(QueryableByName)]
struct Counters {
    #[diesel(sql_type = BigInt)]
    records: i64,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

const COLUMNS: &str = "id, version, data, written_by, created_at, updated_at";

/// Sets the app and the owner until the end of the transaction.
pub(super) async fn enter(
    connection: &mut AsyncPgConnection,
    app: Uuid,
    owner: &str,
) -> Result<(), StoreError> {
    prepared("SELECT set_config('callboard.app', $1, true), set_config('callboard.owner', $2, true)")
        .bind::<Text, _>(app.to_string())
        .bind::<Text, _>(owner)
        .execute(connection)
        .await?;
    Ok(())
}

async fn enter_scope(connection: &mut AsyncPgConnection, scope: RecordScope) -> Result<(), StoreError> {
    let owner = scope.owner.map_or_else(|| SHARED.to_owned(), |owner| owner.to_string());
    enter(connection, scope.app, &owner).await
}

/// Whether the collection exists, in a read transaction.
async fn is_living(connection: &mut AsyncPgConnection, scope: RecordScope) -> Result<bool, StoreError> {
    let found: Scalar<bool> = prepared(
        "SELECT EXISTS (SELECT FROM app_collections c JOIN apps a ON a.id = c.app_id
             WHERE c.id = $1 AND c.app_id = $2 AND c.deleted_at IS NULL AND a.deleted_at IS NULL) AS living",
    )
    .bind::<SqlUuid, _>(scope.collection)
    .bind::<SqlUuid, _>(scope.app)
    .get_result(connection)
    .await?;
    Ok(found.0)
}

impl Store {
    /// Returns a page of records.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn records(&self, scope: RecordScope, page: RecordPage) -> RecordChange<Vec<StoredRecord>> {
        let (comparison, direction) = if page.descending { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT {COLUMNS} FROM app_records
             WHERE collection_id = $1 AND owner IS NOT DISTINCT FROM $2 AND data IS NOT NULL
                 AND ($3 IS NULL OR (created_at, id) {comparison} ($3, $4))
             ORDER BY created_at {direction}, id {direction} LIMIT $5"
        );
        let (at, id) = page.after.unzip();
        self.connection()
            .await?
            .transaction(async |connection| {
                enter_scope(connection, scope).await?;
                if !is_living(connection, scope).await? {
                    return Ok(Err(RecordRefusal::Gone));
                }
                let found = diesel::sql_query(sql)
                    .bind::<SqlUuid, _>(scope.collection)
                    .bind::<Nullable<SqlUuid>, _>(scope.owner)
                    .bind::<Nullable<Timestamptz>, _>(at)
                    .bind::<Nullable<SqlUuid>, _>(id)
                    .bind::<BigInt, _>(page.limit)
                    .load(connection)
                    .await?;
                Ok(Ok(found))
            })
            .await
    }

    /// Returns a record.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn record(&self, scope: RecordScope, id: Uuid) -> RecordChange<StoredRecord> {
        self.connection()
            .await?
            .transaction(async |connection| {
                enter_scope(connection, scope).await?;
                if !is_living(connection, scope).await? {
                    return Ok(Err(RecordRefusal::Gone));
                }
                Ok(found(connection, scope, id, "").await?.ok_or(RecordRefusal::NotFound))
            })
            .await
    }
}

async fn found(
    connection: &mut AsyncPgConnection,
    scope: RecordScope,
    id: Uuid,
    lock: &str,
) -> Result<Option<StoredRecord>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM app_records
         WHERE id = $1 AND collection_id = $2 AND owner IS NOT DISTINCT FROM $3 AND data IS NOT NULL {lock}"
    );
    let found = diesel::sql_query(sql)
        .bind::<SqlUuid, _>(id)
        .bind::<SqlUuid, _>(scope.collection)
        .bind::<Nullable<SqlUuid>, _>(scope.owner)
        .get_result(connection)
        .await;
    Ok(found.optional()?)
}

/// A collection whose row this transaction has locked, with its counters: other writers wait.
#[derive(Debug)]
pub struct LockedCollection {
    scope: RecordScope,
    records: i64,
    bytes: i64,
}

impl LockedCollection {
    /// Whether the collection has room for these additional records and bytes. Reductions are always allowed.
    fn takes(&self, records: i64, bytes: i64) -> bool {
        let fits = |now: i64, more: i64, most: i64| more <= 0 || now.saturating_add(more) <= most;
        fits(self.records, records, MAX_COLLECTION_RECORDS) && fits(self.bytes, bytes, MAX_COLLECTION_BYTES)
    }
}

impl Changes {
    /// Locks a collection for record changes, which are serialized.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn lock_collection(&mut self, scope: RecordScope) -> RecordChange<LockedCollection> {
        let connection = &mut *self.connection;
        enter_scope(connection, scope).await?;
        let found: Option<Counters> = prepared(
            "SELECT c.record_count AS records, c.record_bytes AS bytes
             FROM app_collections c JOIN apps a ON a.id = c.app_id
             WHERE c.id = $1 AND c.app_id = $2 AND c.deleted_at IS NULL AND a.deleted_at IS NULL FOR UPDATE OF c",
        )
        .bind::<SqlUuid, _>(scope.collection)
        .bind::<SqlUuid, _>(scope.app)
        .get_result(connection)
        .await
        .optional()?;
        let locked = found.map(|Counters { records, bytes }| LockedCollection { scope, records, bytes });
        Ok(locked.ok_or(RecordRefusal::Gone))
    }

    /// Returns a record in a locked collection.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn record(
        &mut self,
        collection: &LockedCollection,
        id: Uuid,
    ) -> Result<Option<StoredRecord>, StoreError> {
        found(&mut self.connection, collection.scope, id, "FOR UPDATE").await
    }

    /// Creates a record with a new id; [`RecordRefusal::NotFound`] if a record has or had the id.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn create_record(
        &mut self,
        collection: &LockedCollection,
        id: Uuid,
        write: RecordWrite<'_>,
    ) -> RecordChange<StoredRecord> {
        let bytes = length(write.data);
        if !collection.takes(1, bytes) {
            return Ok(Err(RecordRefusal::Full));
        }
        let sql = format!(
            "INSERT INTO app_records (id, app_id, collection_id, owner, version, data, written_by, created_at, updated_at)
             VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $7) ON CONFLICT (id) DO NOTHING RETURNING {COLUMNS}"
        );
        let RecordScope { app, collection: of, owner } = collection.scope;
        let made: Option<StoredRecord> = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(id)
            .bind::<SqlUuid, _>(app)
            .bind::<SqlUuid, _>(of)
            .bind::<Nullable<SqlUuid>, _>(owner)
            .bind::<Text, _>(write.data)
            .bind::<Nullable<Bytea>, _>(write.written_by)
            .bind::<Timestamptz, _>(self.store.now())
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        let Some(made) = made else { return Ok(Err(RecordRefusal::NotFound)) };
        self.count(collection, 1, bytes, 0).await?;
        Ok(Ok(made))
    }

    /// Replaces a record's data in a locked collection.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn replace_record(
        &mut self,
        collection: &LockedCollection,
        record: &StoredRecord,
        write: RecordWrite<'_>,
    ) -> RecordChange<StoredRecord> {
        let more = length(write.data).saturating_sub(length(&record.data));
        if !collection.takes(0, more) {
            return Ok(Err(RecordRefusal::Full));
        }
        let sql = format!(
            "UPDATE app_records SET version = version + 1, data = $2, written_by = $3, updated_at = greatest(updated_at, $4)
             WHERE id = $1 AND version = $5 AND data IS NOT NULL AND collection_id = $6 AND owner IS NOT DISTINCT FROM $7
             RETURNING {COLUMNS}"
        );
        let changed: Option<StoredRecord> = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(record.id)
            .bind::<Text, _>(write.data)
            .bind::<Nullable<Bytea>, _>(write.written_by)
            .bind::<Timestamptz, _>(self.store.now())
            .bind::<BigInt, _>(record.version)
            .bind::<SqlUuid, _>(collection.scope.collection)
            .bind::<Nullable<SqlUuid>, _>(collection.scope.owner)
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        let Some(changed) = changed else { return Ok(Err(RecordRefusal::NotFound)) };
        self.count(collection, 0, more, 0).await?;
        Ok(Ok(changed))
    }

    /// Deletes a record and its data from a locked collection. The id stays taken.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_record(
        &mut self,
        collection: &LockedCollection,
        record: &StoredRecord,
    ) -> Result<(), StoreError> {
        let deleted = prepared(
            "UPDATE app_records SET version = version + 1, data = NULL, written_by = NULL, updated_at = $2
             WHERE id = $1 AND version = $3 AND data IS NOT NULL AND collection_id = $4 AND owner IS NOT DISTINCT FROM $5",
        )
        .bind::<SqlUuid, _>(record.id)
        .bind::<Timestamptz, _>(self.store.now())
        .bind::<BigInt, _>(record.version)
        .bind::<SqlUuid, _>(collection.scope.collection)
        .bind::<Nullable<SqlUuid>, _>(collection.scope.owner)
        .execute(&mut *self.connection)
        .await?;
        if deleted == 0 {
            return Ok(());
        }
        self.count(collection, -1, -length(&record.data), 1).await
    }

    /// Adds to a collection's counters.
    async fn count(
        &mut self,
        collection: &LockedCollection,
        records: i64,
        bytes: i64,
        tombstones: i64,
    ) -> Result<(), StoreError> {
        prepared(
            "UPDATE app_collections SET record_count = record_count + $2, record_bytes = record_bytes + $3,
                 tombstones = tombstones + $4 WHERE id = $1",
        )
        .bind::<SqlUuid, _>(collection.scope.collection)
        .bind::<BigInt, _>(records)
        .bind::<BigInt, _>(bytes)
        .bind::<BigInt, _>(tombstones)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

fn length(data: &str) -> i64 {
    i64::try_from(data.len()).unwrap_or(i64::MAX)
}
