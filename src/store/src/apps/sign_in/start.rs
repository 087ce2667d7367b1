//! Sign-ins through the central host.

use auth::app_sign_in::{SIGN_IN_LIFE, SIGN_INS_OF_CLIENT, SIGN_INS_OF_CLIENT_AND_APP};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::changes::lock_of;
use crate::{Changes, Store, StoreError};

/// A sign-in that starts at the central host.
pub struct NewAppSignIn<'a> {
    /// SHA-256 of the state.
    pub state_digest: &'a [u8],
    /// The app.
    pub app: Uuid,
    /// SHA-256 of the browser's secret.
    pub binding_digest: &'a [u8],
    /// The sealed verifier.
    pub sealed: &'a [u8],
    /// The path on which the user continues.
    pub return_to: &'a str,
    /// The key for counting the client's requests.
    pub client: &'a str,
}

/// The stored data of a returned sign-in.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct UsedAppSignIn {
    /// The sealed verifier.
    #[diesel(sql_type = Bytea)]
    pub sealed: Vec<u8>,
    /// The path on which the user continues.
    #[diesel(sql_type = Text)]
    pub return_to: String,
}

impl Changes {
    /// Stores a sign-in that starts at the central host. Returns `false`, and stores nothing, if the client has
    /// reached its limit of pending sign-ins.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn start_app_sign_in(&mut self, new: NewAppSignIn<'_>) -> Result<bool, StoreError> {
        let now = self.store.now();
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<BigInt, _>(lock_of(&format!("app sign-in from\n{}", new.client)))
            .execute(&mut *self.connection)
            .await?;
        let stored = diesel::sql_query(
            "INSERT INTO app_sign_ins (state_digest, app_id, binding_digest, sealed, return_to, address, created_at, expires_at)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8
             WHERE (SELECT count(*) < $10 AND count(*) FILTER (WHERE app_id = $2) < $11
                    FROM app_sign_ins WHERE address = $6 AND created_at > $9)",
        )
        .bind::<Bytea, _>(new.state_digest)
        .bind::<SqlUuid, _>(new.app)
        .bind::<Bytea, _>(new.binding_digest)
        .bind::<Bytea, _>(new.sealed)
        .bind::<Text, _>(new.return_to)
        .bind::<Text, _>(new.client)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + SIGN_IN_LIFE)
        .bind::<Timestamptz, _>(now - SIGN_IN_LIFE)
        .bind::<BigInt, _>(SIGN_INS_OF_CLIENT)
        .bind::<BigInt, _>(SIGN_INS_OF_CLIENT_AND_APP)
        .execute(&mut *self.connection)
        .await?;
        Ok(stored > 0)
    }
}

impl Store {
    /// Uses up the state of an app sign-in, in the browser that started it. Only one of several concurrent
    /// requests receives it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn use_app_sign_in(
        &self,
        app: Uuid,
        state_digest: &[u8],
        binding_digest: &[u8],
    ) -> Result<Option<UsedAppSignIn>, StoreError> {
        let used = diesel::sql_query(
            "UPDATE app_sign_ins SET used_at = $4
             WHERE state_digest = $1 AND app_id = $2 AND binding_digest = $3 AND used_at IS NULL AND expires_at > $4
             RETURNING sealed, return_to",
        )
        .bind::<Bytea, _>(state_digest)
        .bind::<SqlUuid, _>(app)
        .bind::<Bytea, _>(binding_digest)
        .bind::<Timestamptz, _>(self.now())
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?;
        Ok(used)
    }
}
