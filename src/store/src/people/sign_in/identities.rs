//! User identities at OpenID providers.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;

use super::{NewSession, StoredUser};
use crate::database::changes::lock_of;
use crate::schema::{user_identities, users};
use crate::{Changes, Joined, StoreError};

/// A user's identity at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewIdentity<'a> {
    /// The provider.
    pub issuer: &'a str,
    /// Their permanent id at the provider.
    pub subject: &'a str,
}

/// An account, the memberships it gains by this sign-in, and whether this sign-in links it to a provider's
/// subject.
pub(super) struct Account {
    pub(super) user: StoredUser,
    pub(super) joined: Vec<Joined>,
    pub(super) linked: bool,
}

impl Changes {
    /// Returns the account for a new session.
    pub(super) async fn user_of(&mut self, new: &NewSession<'_>) -> Result<Option<Account>, StoreError> {
        match new.identity {
            Some(identity) => self.user_of_identity(new, identity).await,
            None => self.user_with_address(new, new.email).await,
        }
    }

    /// Applies the rules for mail addresses.
    async fn user_with_address(
        &mut self,
        new: &NewSession<'_>,
        email: &str,
    ) -> Result<Option<Account>, StoreError> {
        let found = self.user_signing_in(email, new.owner_email == Some(email), new.members_only).await?;
        Ok(found.map(|(user, joined)| Account { user, joined, linked: false }))
    }

    /// Finds the account by its address the first time, and links it; then by the subject, whatever the address
    /// is. `None` also if the address's account belongs to another subject at the provider: the address was
    /// given to another person.
    async fn user_of_identity(
        &mut self,
        new: &NewSession<'_>,
        identity: NewIdentity<'_>,
    ) -> Result<Option<Account>, StoreError> {
        if let Some(known) = self.address_of(identity).await? {
            return self.known_identity(new, known).await;
        }
        // First sign-ins are serialized, so a rejected one leaves no record.
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<BigInt, _>(lock_of(&format!("link to\n{}", identity.issuer)))
            .execute(&mut *self.connection)
            .await?;
        match self.address_of(identity).await? {
            Some(known) => self.known_identity(new, known).await,
            None => self.link(new, identity).await,
        }
    }

    /// Returns the linked account's address; the inner `None`: the user was erased.
    async fn address_of(&mut self, identity: NewIdentity<'_>) -> Result<Option<Option<String>>, StoreError> {
        let known = users::table
            .inner_join(user_identities::table.on(user_identities::user_id.eq(users::id)))
            .filter(user_identities::issuer.eq(identity.issuer))
            .filter(user_identities::subject.eq(identity.subject))
            .select(users::email)
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(known)
    }

    async fn known_identity(
        &mut self,
        new: &NewSession<'_>,
        address: Option<String>,
    ) -> Result<Option<Account>, StoreError> {
        match address {
            Some(email) => self.user_with_address(new, &email).await,
            // The user was erased, and another party's record does not restore the account.
            None => Ok(None),
        }
    }

    async fn link(
        &mut self,
        new: &NewSession<'_>,
        identity: NewIdentity<'_>,
    ) -> Result<Option<Account>, StoreError> {
        let other = users::table
            .inner_join(user_identities::table.on(user_identities::user_id.eq(users::id)))
            .filter(users::email.eq(new.email))
            .filter(user_identities::issuer.eq(identity.issuer));
        if diesel::select(diesel::dsl::exists(other)).get_result(&mut *self.connection).await? {
            return Ok(None);
        }
        let Some(account) = self.user_with_address(new, new.email).await? else { return Ok(None) };
        diesel::insert_into(user_identities::table)
            .values((
                user_identities::issuer.eq(identity.issuer),
                user_identities::subject.eq(identity.subject),
                user_identities::user_id.eq(account.user.id),
                user_identities::created_at.eq(self.store.now()),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(Some(Account { linked: true, ..account }))
    }
}
