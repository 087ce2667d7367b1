//! Sign-ins through the OpenID provider.

use auth::oidc::{ASKED_LIFE, ASKED_PER_CLIENT};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;

use crate::database::changes::lock_of;
use crate::schema::oidc_sign_ins;
use crate::{Changes, Store, StoreError};

/// A sign-in that starts at the provider.
pub struct NewOidcSignIn<'a> {
    /// SHA-256 of the state.
    pub state_digest: Vec<u8>,
    /// SHA-256 of the browser's secret.
    pub binding_digest: Vec<u8>,
    /// The sealed data that verifies the provider's answer.
    pub sealed: Vec<u8>,
    /// The destination after the sign-in.
    pub return_to: Option<&'a str>,
    /// The key for counting the client's requests.
    pub client: &'a str,
}

/// The result of using a returned state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OidcReturn {
    /// The sign-in continues, and the state is used up.
    Good {
        /// The sealed data that verifies the provider's answer.
        sealed: Vec<u8>,
        /// The destination after the sign-in.
        return_to: Option<String>,
    },
    /// Another browser started it.
    OtherBrowser,
    /// Used, expired, or unknown.
    Over,
}

impl Changes {
    /// Stores a sign-in that starts at the provider. `false`: nothing is stored, because the client has reached
    /// its limit of pending sign-ins.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start_oidc(&mut self, new: NewOidcSignIn<'_>) -> Result<bool, StoreError> {
        let now = self.store.now();
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<BigInt, _>(lock_of(&format!("provider sign-in from\n{}", new.client)))
            .execute(&mut *self.connection)
            .await?;
        let under_way: i64 = oidc_sign_ins::table
            .filter(oidc_sign_ins::address.eq(new.client))
            .filter(oidc_sign_ins::created_at.gt(now - ASKED_LIFE))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        if under_way >= ASKED_PER_CLIENT {
            return Ok(false);
        }
        diesel::insert_into(oidc_sign_ins::table)
            .values((
                oidc_sign_ins::state_digest.eq(new.state_digest),
                oidc_sign_ins::binding_digest.eq(new.binding_digest),
                oidc_sign_ins::sealed.eq(new.sealed),
                oidc_sign_ins::return_to.eq(new.return_to),
                oidc_sign_ins::address.eq(new.client),
                oidc_sign_ins::created_at.eq(now),
                oidc_sign_ins::expires_at.eq(now + ASKED_LIFE),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(true)
    }
}

impl Store {
    /// Uses up a state, for the browser that started it. This happens before any request to the provider, so
    /// that only one of several requests with the same state continues.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn use_oidc(
        &self,
        state_digest: &[u8],
        binding_digest: Option<&[u8]>,
    ) -> Result<OidcReturn, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let is_open = oidc_sign_ins::used_at.is_null().and(oidc_sign_ins::expires_at.gt(now));
        let used: Option<(Vec<u8>, Option<String>)> = diesel::update(oidc_sign_ins::table.find(state_digest))
            .filter(oidc_sign_ins::binding_digest.eq(binding_digest.unwrap_or_default()))
            .filter(is_open)
            .set(oidc_sign_ins::used_at.eq(now))
            .returning((oidc_sign_ins::sealed, oidc_sign_ins::return_to))
            .get_result(&mut *connection)
            .await
            .optional()?;
        if let Some((sealed, return_to)) = used {
            return Ok(OidcReturn::Good { sealed, return_to });
        }
        let elsewhere = oidc_sign_ins::table
            .find(state_digest)
            .filter(oidc_sign_ins::binding_digest.ne(binding_digest.unwrap_or_default()))
            .filter(is_open);
        let elsewhere: bool =
            diesel::select(diesel::dsl::exists(elsewhere)).get_result(&mut *connection).await?;
        Ok(if elsewhere { OidcReturn::OtherBrowser } else { OidcReturn::Over })
    }
}
