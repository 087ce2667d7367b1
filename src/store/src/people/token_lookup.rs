//! Looks up the owner of a secret: one row for every result, in about the same time, so that the time of a
//! rejection does not reveal whether a token was ever valid.

use auth::service_token::TokenDigest;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Binary, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use serde_json::Value;
use uuid::Uuid;

use crate::error::corrupt;
use crate::{Store, StoreError, StoredServiceToken};

/// The result of looking up a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenLookup {
    /// Not found.
    Unknown,
    /// Its token, with this id, was revoked.
    Revoked(Uuid),
    /// Its token is not revoked.
    Known {
        /// The token, which may have expired.
        token: Box<StoredServiceToken>,
        /// The secret's expiry, if another one has replaced it.
        secret_until: Option<DateTime<Utc>>,
    },
}

/// Reads only the revocation of a revoked token. For an unknown secret, another token's row is read and
/// discarded.
const SQL: [&str; 2] = [
    "SELECT s.digest, s.expires_at, t.id, t.issued_at, \
     CASE WHEN s.token_id IS NOT NULL AND t.revoked_at IS NULL THEN t.name END, \
     CASE WHEN s.token_id IS NOT NULL AND t.revoked_at IS NULL THEN t.scopes END, \
     CASE WHEN s.token_id IS NOT NULL AND t.revoked_at IS NULL THEN t.workspaces END, \
     CASE WHEN s.token_id IS NOT NULL AND t.revoked_at IS NULL THEN t.created_by END, \
     t.expires_at, t.revoked_at, t.last_used_at \
     FROM (VALUES (",
    "::bytea)) AS asked (digest) \
     LEFT JOIN service_token_secrets s ON s.digest = asked.digest \
     LEFT JOIN service_tokens t ON t.id = coalesce(s.token_id, (SELECT id FROM service_tokens LIMIT 1))",
];

#[derive(QueryId)]
struct Lookup {
    digest: Vec<u8>,
}

impl QueryFragment<Pg> for Lookup {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let [before, behind] = SQL;
        out.push_sql(before);
        out.push_bind_param::<Binary, _>(&self.digest)?;
        out.push_sql(behind);
        Ok(())
    }
}

impl Query for Lookup {
    type SqlType = (
        Nullable<Binary>,
        Nullable<Timestamptz>,
        Nullable<SqlUuid>,
        Nullable<Timestamptz>,
        Nullable<Text>,
        Nullable<Json>,
        Nullable<Json>,
        Nullable<Text>,
        Nullable<Timestamptz>,
        Nullable<Timestamptz>,
        Nullable<Timestamptz>,
    );
}

#[derive(Queryable)]
struct LookupRow {
    digest: Option<Vec<u8>>,
    secret_until: Option<DateTime<Utc>>,
    id: Option<Uuid>,
    issued_at: Option<DateTime<Utc>>,
    name: Option<String>,
    scopes: Option<Value>,
    workspaces: Option<Value>,
    created_by: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Looks up a secret.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn service_token_of(&self, digest: &TokenDigest) -> Result<TokenLookup, StoreError> {
        let lookup = Lookup { digest: digest.as_bytes().to_vec() };
        let found: LookupRow = lookup.get_result(&mut *self.connection().await?).await?;
        // The index has already compared it, but not in constant time.
        let is_same = digest.is(found.digest.as_deref().unwrap_or(&[0; 32]));
        let (Some(id), Some(issued_at), true) = (found.id, found.issued_at, is_same) else {
            return Ok(TokenLookup::Unknown);
        };
        if found.revoked_at.is_some() {
            return Ok(TokenLookup::Revoked(id));
        }
        let token = StoredServiceToken {
            id,
            name: found.name,
            scopes: texts("scopes of a service token", found.scopes)?,
            workspaces: texts("workspaces of a service token", found.workspaces)?,
            created_by: found.created_by.unwrap_or_default(),
            issued_at,
            expires_at: found.expires_at,
            revoked_at: None,
            revoked_reason: None,
            last_used_at: found.last_used_at,
        };
        Ok(TokenLookup::Known { token: Box::new(token), secret_until: found.secret_until })
    }
}

pub(crate) fn texts(what: &'static str, value: Option<Value>) -> Result<Vec<String>, StoreError> {
    serde_json::from_value(value.unwrap_or_default()).map_err(|error| corrupt(what, error))
}
