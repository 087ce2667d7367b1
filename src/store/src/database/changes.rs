//! Changes that are committed together or not at all, with the response stored under their request's key.
//!
//! A request with an `Idempotency-Key` holds a transaction-level advisory lock while it runs. The same
//! transaction writes the key's row and the change, so neither exists without the other: if the caller dies in
//! between, both are rolled back, and the lock ends with the connection.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::upsert::excluded;
use diesel_async::{AnsiTransactionManager, RunQueryDsl, TransactionManager};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::database::idempotency::{self, Reserved};
use crate::database::pool::Pooled;
use crate::error::corrupt;
use crate::schema::idempotency_keys;
use crate::{Store, StoreError};

diesel::define_sql_function! {
    /// Takes a transaction-level lock. Returns false if another transaction holds it.
    fn pg_try_advisory_xact_lock(key: BigInt) -> Bool;
}

/// A request's `Idempotency-Key`.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// Caller and route. The first scope decides whether the key is known; the response is stored in each. If
    /// the caller's name changes before the retry, the list also contains a scope with the new name.
    pub scopes: Vec<String>,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

impl RequestKey {
    fn scope(&self) -> &str {
        self.scopes.as_slice().first().map_or("", String::as_str)
    }

    /// The lock key. Requests with the same lock key do not run concurrently.
    fn lock(&self) -> i64 {
        lock_of(&format!("{}\n{}", self.scope(), self.key))
    }
}

/// The advisory lock number for this name.
pub(crate) fn lock_of(named: &str) -> i64 {
    let mut first = [0; 8];
    for (byte, of_digest) in first.iter_mut().zip(digest(&SHA256, named.as_bytes()).as_ref()) {
        *byte = *of_digest;
    }
    i64::from_be_bytes(first)
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// Its HTTP status.
    pub status: u16,
    /// Its body, byte for byte, or the sealed form.
    pub body: String,
    /// Whether the body is sealed because it contains a secret.
    #[serde(default)]
    pub sealed: bool,
}

/// The actions that are open to a request.
pub enum RequestState {
    /// It may make its changes.
    New(Box<Changes>),
    /// Nothing: it has already been answered.
    Answered(StoredAnswer),
    /// Nothing: its key belongs to another request.
    Reused,
    /// Nothing yet: a request with its key is still running.
    InProgress,
}

/// A transaction. Rolled back if it is dropped before the commit.
pub struct Changes {
    pub(crate) connection: Pooled,
    pub(crate) store: Store,
    key: Option<RequestKey>,
    touched: Vec<Uuid>,
}

impl Store {
    /// Returns the stored response of a request, or the state of its key.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answered(&self, key: &RequestKey) -> Result<Reserved<StoredAnswer>, StoreError> {
        self.known_key(key.scope(), &key.key, &key.digest).await
    }

    /// Begins the changes of a request, unless its key shows that it was answered or is still running.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn begin_request(&self, key: RequestKey) -> Result<RequestState, StoreError> {
        let mut changes = self.begin().await?;
        let connection = &mut *changes.connection;
        let lock: bool = diesel::select(pg_try_advisory_xact_lock(key.lock())).get_result(connection).await?;
        if !lock {
            changes.roll_back().await;
            return Ok(RequestState::InProgress);
        }
        // Read under the lock: its previous holder has committed or is gone.
        let known = idempotency::known(connection, key.scope(), &key.key, &key.digest, self.now()).await?;
        changes.key = Some(key);
        let state = match known {
            Reserved::New => return Ok(RequestState::New(Box::new(changes))),
            Reserved::Same(answer) => RequestState::Answered(answer),
            Reserved::Different => RequestState::Reused,
        };
        changes.roll_back().await;
        Ok(state)
    }

    /// Begins changes without an idempotency key.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn begin(&self) -> Result<Changes, StoreError> {
        let mut connection = self.connection().await?;
        AnsiTransactionManager::begin_transaction(&mut *connection).await?;
        Ok(Changes { connection, store: self.clone(), key: None, touched: Vec::new() })
    }

    /// Makes changes without an idempotency key, and commits them.
    ///
    /// # Errors
    /// Errors from `make`, and [`StoreError`] when the database does not answer.
    pub async fn change<T>(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut changes = self.begin().await?;
        match make(&mut changes).await {
            Ok(made) => changes.commit(None).await.map(|()| made),
            Err(error) => {
                changes.roll_back().await;
                Err(error)
            }
        }
    }
}

impl Changes {
    /// Records that these changes affect a workflow or its live version.
    pub(crate) fn touch(&mut self, workflow: Uuid) {
        self.touched.push(workflow);
    }

    /// The workflows whose plans are stale after the commit, even if its outcome is unknown.
    #[must_use]
    pub fn touched(&self) -> Vec<Uuid> {
        self.touched.clone()
    }

    /// Commits the changes, together with the response if the request has a key.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; the commit may still have happened.
    pub async fn commit(mut self, answer: Option<&StoredAnswer>) -> Result<(), StoreError> {
        let now = self.store.now();
        if let (Some(key), Some(answer)) = (&self.key, answer) {
            let outcome = serde_json::to_value(answer).map_err(|e| corrupt("idempotency outcome", e))?;
            let rows: Vec<_> = key
                .scopes
                .iter()
                .map(|scope| {
                    (
                        idempotency_keys::scope.eq(scope),
                        idempotency_keys::key.eq(&key.key),
                        idempotency_keys::request_digest.eq(&key.digest),
                        idempotency_keys::outcome.eq(&outcome),
                        idempotency_keys::created_at.eq(now),
                    )
                })
                .collect();
            // An existing row has expired, so it is overwritten.
            diesel::insert_into(idempotency_keys::table)
                .values(rows)
                .on_conflict((idempotency_keys::scope, idempotency_keys::key))
                .do_update()
                .set((
                    idempotency_keys::request_digest.eq(excluded(idempotency_keys::request_digest)),
                    idempotency_keys::outcome.eq(excluded(idempotency_keys::outcome)),
                    idempotency_keys::created_at.eq(excluded(idempotency_keys::created_at)),
                ))
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(AnsiTransactionManager::commit_transaction(&mut *self.connection).await?)
    }

    /// Rolls back. If the rollback fails, the connection is closed, which has the same effect.
    pub async fn roll_back(mut self) {
        if let Err(error) = AnsiTransactionManager::rollback_transaction(&mut *self.connection).await {
            tracing::debug!(%error, "connection closed with its transaction");
        }
    }
}
