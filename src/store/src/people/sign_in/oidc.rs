//! Sign-ins on their way to the OpenID provider and back.

use auth::oidc::{ASKED_LIFE, ASKED_PER_CLIENT};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;

use crate::database::changes::lock_of;
use crate::schema::oidc_sign_ins;
use crate::{Changes, Store, StoreError};

/// A browser that is sent to the provider.
pub struct NewOidcSignIn<'a> {
    /// SHA-256 of the state.
    pub state_digest: Vec<u8>,
    /// SHA-256 of what the browser keeps.
    pub binding_digest: Vec<u8>,
    /// What the answer is judged by, sealed.
    pub sealed: Vec<u8>,
    /// Where they want to go.
    pub return_to: Option<&'a str>,
    /// Under what the client's requests are counted.
    pub client: &'a str,
}

/// What a state that comes back is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OidcReturn {
    /// The sign-in continues, and the state is used up.
    Good {
        /// What the answer is judged by, sealed.
        sealed: Vec<u8>,
        /// Where they want to go.
        return_to: Option<String>,
    },
    /// Another browser asked.
    OtherBrowser,
    /// It is used or too old, or there never was one.
    Over,
}

impl Changes {
    /// Notes that a browser is sent to the provider. `false`: nothing is noted, because the client has as many under way
    /// as may be.
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
    /// Uses a state up, for the browser that asked. It is used up before the provider is asked anything, so that of
    /// several requests with the same state only one continues.
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
