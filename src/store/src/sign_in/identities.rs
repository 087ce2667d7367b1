//! Who people are at an OpenID provider.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::{NewSession, StoredUser};
use crate::schema::{user_identities, users};
use crate::{Changes, StoreError};

/// Who somebody is at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewIdentity<'a> {
    /// The provider.
    pub issuer: &'a str,
    /// Who they are there, for ever.
    pub subject: &'a str,
}

impl Changes {
    /// The account that a session is opened for.
    pub(super) async fn user_of(&mut self, new: &NewSession<'_>) -> Result<Option<StoredUser>, StoreError> {
        match new.identity {
            Some(identity) => self.user_of_identity(new, identity).await,
            None => self.user_with_address(new, new.email).await,
        }
    }

    /// By the rules of the address.
    async fn user_with_address(
        &mut self,
        new: &NewSession<'_>,
        email: &str,
    ) -> Result<Option<StoredUser>, StoreError> {
        self.user_signing_in(email, new.owner_email == Some(email), new.members_only).await
    }

    /// The first time by the address, which links the account; then by the subject, whatever the address is by then.
    /// `None` also when the address is of an account that is somebody else's there: it went to another person.
    async fn user_of_identity(
        &mut self,
        new: &NewSession<'_>,
        identity: NewIdentity<'_>,
    ) -> Result<Option<StoredUser>, StoreError> {
        let known: Option<Option<String>> = users::table
            .inner_join(user_identities::table.on(user_identities::user_id.eq(users::id)))
            .filter(user_identities::issuer.eq(identity.issuer))
            .filter(user_identities::subject.eq(identity.subject))
            .select(users::email)
            .first(&mut *self.connection)
            .await
            .optional()?;
        match known {
            Some(Some(email)) => self.user_with_address(new, &email).await,
            // They were erased, and are not brought back by somebody else's record of them.
            Some(None) => Ok(None),
            None => self.link(new, identity).await,
        }
    }

    async fn link(
        &mut self,
        new: &NewSession<'_>,
        identity: NewIdentity<'_>,
    ) -> Result<Option<StoredUser>, StoreError> {
        let other = users::table
            .inner_join(user_identities::table.on(user_identities::user_id.eq(users::id)))
            .filter(users::email.eq(new.email))
            .filter(user_identities::issuer.eq(identity.issuer));
        let linked_before: bool =
            diesel::select(diesel::dsl::exists(other)).get_result(&mut *self.connection).await?;
        // Looked at before anything is noted of the account.
        if linked_before && self.owner_of(identity).await?.is_none() {
            return Ok(None);
        }
        let Some(user) = self.user_with_address(new, new.email).await? else { return Ok(None) };
        diesel::insert_into(user_identities::table)
            .values((
                user_identities::issuer.eq(identity.issuer),
                user_identities::subject.eq(identity.subject),
                user_identities::user_id.eq(user.id),
                user_identities::created_at.eq(self.store.now()),
            ))
            .on_conflict_do_nothing()
            .execute(&mut *self.connection)
            .await?;
        // Another sign-in may have linked either of them meanwhile.
        let owner = self.owner_of(identity).await?;
        Ok(Some(user).filter(|user| owner == Some(user.id)))
    }

    async fn owner_of(&mut self, identity: NewIdentity<'_>) -> Result<Option<Uuid>, StoreError> {
        let found = user_identities::table
            .find((identity.issuer, identity.subject))
            .select(user_identities::user_id)
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found)
    }
}
