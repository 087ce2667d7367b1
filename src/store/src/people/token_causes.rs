//! Everything that a maker has caused: tokens that the maker created, secrets that the maker obtained by
//! rotating other makers' tokens, and everything that was created with one of these, transitively.

use std::collections::BTreeSet;

use auth::service_token::TokenDigest;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::people::tokens::{ServiceTokenRow, lock};
use crate::schema::{service_token_secrets, service_tokens};
use crate::{Cause, Changes, StoreError, StoredServiceToken};

/// The result of one search step.
#[derive(Debug, Default)]
pub struct Caused {
    /// Caused tokens.
    pub tokens: Vec<StoredServiceToken>,
    /// Caused secrets for tokens that others created.
    pub secrets: Vec<CausedSecret>,
}

/// A secret obtained by rotating another maker's token.
#[derive(Debug, Clone)]
pub struct CausedSecret {
    /// The secret's SHA-256.
    pub digest: Vec<u8>,
    /// The secret's token.
    pub token: StoredServiceToken,
}

/// A search that starts at a maker. The caller must end the tokens and secrets found in a step before the next
/// step: a holder waits for their locks, so it cannot create a token in the meantime that no step finds.
#[derive(Debug)]
pub struct CauseSearch {
    actors: Vec<String>,
    digests: Vec<Vec<u8>>,
    tokens: BTreeSet<Uuid>,
    secrets: BTreeSet<Vec<u8>>,
}

impl CauseSearch {
    /// Starts a search for everything that this maker has caused.
    #[must_use]
    pub fn for_maker(maker: &str) -> Self {
        Self {
            actors: vec![maker.to_owned()],
            digests: Vec::new(),
            tokens: BTreeSet::new(),
            secrets: BTreeSet::new(),
        }
    }
}

impl Changes {
    /// Returns the next search step; `None` at the end. Includes revoked tokens and ended secrets: tokens that
    /// were created with them may still be valid.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn next_caused(&mut self, search: &mut CauseSearch) -> Result<Option<Caused>, StoreError> {
        let (actors, digests) = (std::mem::take(&mut search.actors), std::mem::take(&mut search.digests));
        if actors.is_empty() && digests.is_empty() {
            return Ok(None);
        }
        let rows: Vec<ServiceTokenRow> = service_tokens::table
            .filter(
                service_tokens::created_by
                    .eq_any(&actors)
                    .or(service_tokens::created_with.eq_any(&digests).assume_not_null()),
            )
            .order(service_tokens::id)
            .select(ServiceTokenRow::as_select())
            .load(&mut *self.connection)
            .await?;
        let tokens: Vec<StoredServiceToken> =
            rows.into_iter().map(TryInto::try_into).collect::<Result<_, StoreError>>()?;
        let tokens: Vec<_> = tokens.into_iter().filter(|token| search.tokens.insert(token.id)).collect();
        let made: Vec<Uuid> = tokens.iter().map(|token| token.id).collect();
        let found: Vec<(Vec<u8>, ServiceTokenRow)> = service_token_secrets::table
            .inner_join(service_tokens::table)
            .filter(
                service_token_secrets::created_by
                    .eq_any(&actors)
                    .assume_not_null()
                    .or(service_token_secrets::created_with.eq_any(&digests).assume_not_null())
                    .or(service_token_secrets::token_id.eq_any(&made)),
            )
            .order(service_token_secrets::digest)
            .select((service_token_secrets::digest, ServiceTokenRow::as_select()))
            .load(&mut *self.connection)
            .await?;
        let mut secrets = Vec::new();
        for (digest, row) in found {
            if search.secrets.insert(digest.clone()) {
                search.digests.push(digest.clone());
                let token: StoredServiceToken = row.try_into()?;
                if !search.tokens.contains(&token.id) {
                    secrets.push(CausedSecret { digest, token });
                }
            }
        }
        // A caused token causes everything created with any of its secrets; older rows store no secret.
        search.actors.extend(made.iter().map(|id| format!("service_token:{id}")));
        Ok(Some(Caused { tokens, secrets }))
    }

    /// Ends a secret. Returns `false` if it has already ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn end_secret(&mut self, digest: &[u8]) -> Result<bool, StoreError> {
        let now = self.store.now();
        let ended = diesel::update(service_token_secrets::table.find(digest))
            .filter(
                service_token_secrets::expires_at
                    .is_null()
                    .or(service_token_secrets::expires_at.gt(now).assume_not_null()),
            )
            .set(service_token_secrets::expires_at.eq(Some(now)))
            .execute(&mut *self.connection)
            .await?;
        Ok(ended > 0)
    }

    /// Whether the maker's token and secret are still valid. Locks both and the token to rotate until the end
    /// of the transaction.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn hold_cause(&mut self, cause: &Cause, rotated: Option<Uuid>) -> Result<bool, StoreError> {
        let Some(digest) = &cause.with else { return Ok(true) };
        let digest = TokenDigest::as_bytes(digest);
        let found: Option<Uuid> = service_token_secrets::table
            .find(digest)
            .select(service_token_secrets::token_id)
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some(id) = found else { return Ok(false) };
        // Locks tokens in id order, so that two that rotate each other do not deadlock; then secrets.
        if let Some(rotated) = rotated.filter(|rotated| *rotated < id) {
            lock(&mut self.connection, rotated).await?;
        }
        let now = self.store.now();
        let Some(token) = lock(&mut self.connection, id).await? else { return Ok(false) };
        let good: Option<Uuid> = service_token_secrets::table
            .find(digest)
            .filter(
                service_token_secrets::expires_at
                    .is_null()
                    .or(service_token_secrets::expires_at.gt(now).assume_not_null()),
            )
            .select(service_token_secrets::token_id)
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(good.is_some() && token.status(now) == crate::ServiceTokenStatus::Active)
    }
}
