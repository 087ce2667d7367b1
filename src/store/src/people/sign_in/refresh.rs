//! Refresh tokens: each is valid once; a second use ends its whole session.
//!
//! A client that lost the answer has no grace period: within one, a stolen token would work unnoticed alongside
//! the owner's. Such a client signs in again.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::StoredUser;
use crate::schema::{refresh_tokens, sign_in_sessions, users};
use crate::{Changes, StoreError};

/// Maximum tokens per sign-in; used ones are stored to detect reuse. A month with one per quarter of an hour
/// needs 2,880.
const MOST_TOKENS: i64 = 10_000;

/// The result of using a refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// Replaced by another one.
    Good {
        /// The session.
        session: Uuid,
        /// The session's user.
        user: StoredUser,
    },
    /// Used before, so an unauthorized party has it: its session has just been ended.
    Reused(Revoked),
    /// Valid, but its session has had more tokens than any client needs: the session has just been ended.
    TooOften(Revoked),
    /// Not found, expired, or its session has ended.
    Unknown,
}

/// An ended session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// The session.
    pub session: Uuid,
    /// The session's user.
    pub user: Uuid,
}

impl Changes {
    /// Replaces the refresh token `shown` by `fresh`. Commit whatever the result.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn refresh(&mut self, shown: &[u8], fresh: &[u8]) -> Result<Refreshed, StoreError> {
        let now = self.store.now();
        let found: Option<(Uuid, DateTime<Utc>, Option<DateTime<Utc>>)> = refresh_tokens::table
            .find(shown)
            .select((refresh_tokens::session_id, refresh_tokens::expires_at, refresh_tokens::used_at))
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some((session, expires_at, used_at)) = found else { return Ok(Refreshed::Unknown) };
        let live: Option<(Uuid, DateTime<Utc>)> = sign_in_sessions::table
            .find(session)
            .filter(sign_in_sessions::revoked_at.is_null())
            .filter(sign_in_sessions::expires_at.gt(now))
            .select((sign_in_sessions::user_id, sign_in_sessions::expires_at))
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some((user, ends_at)) = live else { return Ok(Refreshed::Unknown) };
        if used_at.is_some() {
            self.revoke_session(session, "refresh_token_reused").await?;
            return Ok(Refreshed::Reused(Revoked { session, user }));
        }
        let user: Option<StoredUser> = users::table
            .find(user)
            .filter(users::email.is_not_null())
            .select(StoredUser::as_select())
            .first(&mut *self.connection)
            .await
            .optional()?;
        let Some(user) = user.filter(|_| now < expires_at) else { return Ok(Refreshed::Unknown) };
        let tokens: i64 = refresh_tokens::table
            .filter(refresh_tokens::session_id.eq(session))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        if tokens >= MOST_TOKENS {
            self.revoke_session(session, "refreshed_too_often").await?;
            return Ok(Refreshed::TooOften(Revoked { session, user: user.id }));
        }
        diesel::update(refresh_tokens::table.find(shown))
            .set(refresh_tokens::used_at.eq(now))
            .execute(&mut *self.connection)
            .await?;
        // Refreshing does not extend the sign-in.
        self.issue_refresh_token(session, fresh, now, ends_at).await?;
        diesel::update(sign_in_sessions::table.find(session))
            .set(sign_in_sessions::last_used_at.eq(now))
            .execute(&mut *self.connection)
            .await?;
        Ok(Refreshed::Good { session, user })
    }

    /// Stores a session's refresh token.
    pub(super) async fn issue_refresh_token(
        &mut self,
        session: Uuid,
        digest: &[u8],
        now: DateTime<Utc>,
        expires_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        diesel::insert_into(refresh_tokens::table)
            .values((
                refresh_tokens::digest.eq(digest),
                refresh_tokens::session_id.eq(session),
                refresh_tokens::issued_at.eq(now),
                refresh_tokens::expires_at.eq(expires_at),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Returns a refresh token's session, even if the token is not valid.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn session_of_refresh(&mut self, shown: &[u8]) -> Result<Option<Uuid>, StoreError> {
        let found = refresh_tokens::table
            .find(shown)
            .select(refresh_tokens::session_id)
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found)
    }
}
