//! Refresh tokens: each is good once, and shown twice it ends its whole session.
//!
//! A client that lost the answer has no grace period: within it, the thief of a token would be served beside its owner,
//! unnoticed. Such a client signs in again.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::StoredUser;
use crate::schema::{refresh_tokens, sign_in_sessions, users};
use crate::{Changes, StoreError};

/// Tokens of one sign-in; used ones are kept to be known again. A month of one each quarter of an hour is 2,880.
const MOST_TOKENS: i64 = 10_000;

/// What a refresh token was worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// Another one is in its place.
    Good {
        /// The session.
        session: Uuid,
        /// Whose it is.
        user: StoredUser,
    },
    /// It was used before, so a party has it who should not: its session has ended just now.
    Reused(Revoked),
    /// It is good, and its session has had more of them than anybody needs: it has ended just now.
    TooOften(Revoked),
    /// Nothing: it is not found, it is too old, or its session has ended.
    Unknown,
}

/// A session that was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// The session.
    pub session: Uuid,
    /// Whose it was.
    pub user: Uuid,
}

impl Changes {
    /// Puts `fresh` in the place of the refresh token `shown`. Commit whatever comes of it.
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
        diesel::insert_into(refresh_tokens::table)
            .values((
                refresh_tokens::digest.eq(fresh),
                refresh_tokens::session_id.eq(session),
                refresh_tokens::issued_at.eq(now),
                // However often it is refreshed, a sign-in comes to its end.
                refresh_tokens::expires_at.eq(ends_at),
            ))
            .execute(&mut *self.connection)
            .await?;
        diesel::update(sign_in_sessions::table.find(session))
            .set(sign_in_sessions::last_used_at.eq(now))
            .execute(&mut *self.connection)
            .await?;
        Ok(Refreshed::Good { session, user })
    }

    /// The session of a refresh token, whatever the token is worth.
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
