//! Idempotency keys and the outcomes stored under them.

use chrono::{DateTime, Duration, Utc};
use diesel::prelude::*;
use diesel::upsert::excluded;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use serde_json::Value;

use crate::error::corrupt;
use crate::schema::idempotency_keys;
use crate::{Store, StoreError};

/// Retention of a key, hours.
pub(crate) const KEPT_HOURS: i64 = 24;

/// A key and the outcome to reserve for it.
#[derive(Debug, Clone)]
pub struct Reservation<'a, T> {
    /// Caller and route.
    pub scope: &'a str,
    /// The header's value.
    pub key: &'a str,
    /// SHA-256 of the request.
    pub digest: &'a [u8],
    /// The ids that the request will use if it is the first.
    pub outcome: &'a T,
}

/// The state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved<T> {
    /// This request is the first and may proceed.
    New,
    /// The same request has already reserved the key, with these ids.
    Same(T),
    /// A different request has used this key.
    Different,
}

/// Reads the state of a key; an expired key counts as new.
pub(crate) async fn known<T: serde::de::DeserializeOwned>(
    connection: &mut AsyncPgConnection,
    scope: &str,
    key: &str,
    digest: &[u8],
    now: DateTime<Utc>,
) -> Result<Reserved<T>, StoreError> {
    let row: Option<(Vec<u8>, Value)> = idempotency_keys::table
        .filter(idempotency_keys::scope.eq(scope))
        .filter(idempotency_keys::key.eq(key))
        .filter(idempotency_keys::created_at.ge(now - Duration::hours(KEPT_HOURS)))
        .select((idempotency_keys::request_digest, idempotency_keys::outcome))
        .first(connection)
        .await
        .optional()?;
    match row {
        None => Ok(Reserved::New),
        Some((known, _)) if known != digest => Ok(Reserved::Different),
        Some((_, outcome)) => {
            serde_json::from_value(outcome).map(Reserved::Same).map_err(|e| corrupt("idempotency outcome", e))
        }
    }
}

impl Store {
    /// Reserves a key, or returns its existing state.
    ///
    /// The ids are reserved before any work starts, so a retry after a crash in between uses the same ids.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn reserve_key<T>(&self, wanted: Reservation<'_, T>) -> Result<Reserved<T>, StoreError>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        use diesel::query_dsl::methods::FilterDsl as _;
        let now = self.now();
        let outcome = serde_json::to_value(wanted.outcome).map_err(|e| corrupt("idempotency outcome", e))?;
        let expired = now - Duration::hours(KEPT_HOURS);
        let mut connection = self.connection().await?;
        // An expired key is overwritten.
        let inserted = diesel::insert_into(idempotency_keys::table)
            .values((
                idempotency_keys::scope.eq(wanted.scope),
                idempotency_keys::key.eq(wanted.key),
                idempotency_keys::request_digest.eq(wanted.digest),
                idempotency_keys::outcome.eq(outcome),
                idempotency_keys::created_at.eq(now),
            ))
            .on_conflict((idempotency_keys::scope, idempotency_keys::key))
            .do_update()
            .set((
                idempotency_keys::request_digest.eq(excluded(idempotency_keys::request_digest)),
                idempotency_keys::outcome.eq(excluded(idempotency_keys::outcome)),
                idempotency_keys::created_at.eq(excluded(idempotency_keys::created_at)),
            ))
            .filter(idempotency_keys::created_at.lt(expired))
            .execute(&mut *connection)
            .await?;
        if inserted == 1 {
            return Ok(Reserved::New);
        }
        known(&mut connection, wanted.scope, wanted.key, wanted.digest, now).await
    }

    /// Reads the state of a key without reserving it: [`Reserved::New`] if it has no outcome.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn known_key<T>(&self, scope: &str, key: &str, digest: &[u8]) -> Result<Reserved<T>, StoreError>
    where
        T: serde::de::DeserializeOwned,
    {
        known(&mut *self.connection().await?, scope, key, digest, self.now()).await
    }

    /// Deletes expired keys and returns their number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_keys(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let old = idempotency_keys::created_at.lt(now - Duration::hours(KEPT_HOURS));
        Ok(diesel::delete(idempotency_keys::table)
            .filter(old)
            .execute(&mut *self.connection().await?)
            .await?)
    }
}
