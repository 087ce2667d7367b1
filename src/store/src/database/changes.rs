//! Changes that are committed together or not at all, and with them the answer that their request's key stands for.
//!
//! A request with an `Idempotency-Key` holds an advisory lock of its transaction while it is at work. The same
//! transaction writes the key's row and the change, so there is never one without the other: a caller that dies in
//! between leaves neither, and the lock ends with the connection.

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
    /// Takes a lock of the transaction, or says that another has it.
    fn pg_try_advisory_xact_lock(key: BigInt) -> Bool;
}

/// A request's `Idempotency-Key`.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// Caller and route; the first decides whether the key is known, and the answer is stored in each. A caller that has another name
    /// by the time of the retry has a scope of that name, too.
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

    /// Requests with the same one are not at work at once.
    fn lock(&self) -> i64 {
        lock_of(&format!("{}\n{}", self.scope(), self.key))
    }
}

/// The number of the advisory lock of this name.
pub(crate) fn lock_of(named: &str) -> i64 {
    let mut first = [0; 8];
    for (byte, of_digest) in first.iter_mut().zip(digest(&SHA256, named.as_bytes()).as_ref()) {
        *byte = *of_digest;
    }
    i64::from_be_bytes(first)
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// Its HTTP status.
    pub status: u16,
    /// Its body, byte for byte, or what seals it.
    pub body: String,
    /// Whether the body is sealed, because it holds a secret.
    #[serde(default)]
    pub sealed: bool,
}

/// What a request may do.
pub enum RequestState {
    /// Make its changes.
    New(Box<Changes>),
    /// Nothing: it was answered before.
    Answered(StoredAnswer),
    /// Nothing: its key stands for another request.
    Reused,
    /// Nothing now: a request with its key is at work.
    InProgress,
}

/// A transaction. Dropped before it is committed, it has changed nothing.
pub struct Changes {
    pub(crate) connection: Pooled,
    pub(crate) store: Store,
    key: Option<RequestKey>,
    touched: Vec<Uuid>,
}

impl Store {
    /// The answer that a request was given before, or what else its key stands for.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answered(&self, key: &RequestKey) -> Result<Reserved<StoredAnswer>, StoreError> {
        self.known_key(key.scope(), &key.key, &key.digest).await
    }

    /// Begins the changes of a request, unless its key says that it was answered or is at work.
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
        // Behind the lock: who had it has committed or is gone.
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

    /// Begins changes that no key stands for.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn begin(&self) -> Result<Changes, StoreError> {
        let mut connection = self.connection().await?;
        AnsiTransactionManager::begin_transaction(&mut *connection).await?;
        Ok(Changes { connection, store: self.clone(), key: None, touched: Vec::new() })
    }

    /// Makes changes that no key stands for, and commits them.
    ///
    /// # Errors
    /// What `make` says, and [`StoreError`] when the database does not answer.
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
    /// A workflow, or which version of it is live, changes with this.
    pub(crate) fn touch(&mut self, workflow: Uuid) {
        self.touched.push(workflow);
    }

    /// The workflows whose plans are stale after the commit, and also when it may have committed.
    #[must_use]
    pub fn touched(&self) -> Vec<Uuid> {
        self.touched.clone()
    }

    /// Commits, and the answer with it where the request has a key.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer; it may have committed all the same.
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
            // One that is there is too old to be honoured.
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

    /// Takes everything back. A connection that cannot say so is closed, which comes to the same.
    pub async fn roll_back(mut self) {
        if let Err(error) = AnsiTransactionManager::rollback_transaction(&mut *self.connection).await {
            tracing::debug!(%error, "a connection is closed with its transaction");
        }
    }
}
