//! Sessions: one for each sign-in.

use auth::sign_in::{FAMILY_LIFE, SESSION_IDLE, SESSION_LIFE};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::identities::Account;
use super::{NewIdentity, StoredUser};
use crate::schema::{sign_in_sessions, users};
use crate::{Changes, Joined, Store, StoreError};

/// Maximum delay in the recorded time of a session's last request.
const TOUCHED_EVERY: TimeDelta = TimeDelta::minutes(1);

/// The user agent recorded for terminal sessions.
const TERMINAL: &str = "a terminal";

/// A session to open.
pub struct NewSession<'a> {
    /// The mail address that signs in.
    pub email: &'a str,
    /// The identity confirmed by a provider; `None` if the user has proved access to the mail address.
    pub identity: Option<NewIdentity<'a>>,
    /// The address whose first sign-in becomes owner of the workspace `default`.
    pub owner_email: Option<&'a str>,
    /// Whether only members may sign in.
    pub members_only: bool,
    /// SHA-256 of the first refresh token, if one is issued.
    pub refresh_digest: Option<Vec<u8>>,
    /// SHA-256 of the browser's cookie, if it gets one.
    pub cookie_digest: Option<Vec<u8>>,
    /// The client's user agent.
    pub user_agent: Option<&'a str>,
}

/// An opened session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// Its id, which access tokens name.
    pub id: Uuid,
    /// The user who signed in.
    pub user: StoredUser,
    /// The memberships gained by this sign-in.
    pub joined: Vec<Joined>,
    /// Whether this sign-in linked the account to a provider's subject.
    pub linked: bool,
}

/// A user's session that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = sign_in_sessions, check_for_backend(diesel::pg::Pg))]
pub struct StoredSession {
    /// Its id.
    pub id: Uuid,
    /// Its user.
    pub user_id: Uuid,
    /// SHA-256 of the browser's cookie, if it has one.
    cookie_digest: Option<Vec<u8>>,
    /// The client's user agent.
    pub user_agent: Option<String>,
    /// When it started.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub expires_at: DateTime<Utc>,
}

impl StoredSession {
    /// Whether a browser with a cookie holds it; otherwise a terminal or another program with tokens does.
    #[must_use]
    pub fn is_browser(&self) -> bool {
        self.cookie_digest.is_some()
    }
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its session.
    pub id: Uuid,
    /// The signed-in user.
    pub user: StoredUser,
    /// When they must sign in again, regardless of use.
    pub ends_at: DateTime<Utc>,
}

impl Changes {
    /// Opens a session; `None` if the address may not sign in.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn open_session(&mut self, new: NewSession<'_>) -> Result<Option<OpenedSession>, StoreError> {
        let Some(Account { user, joined, linked }) = self.user_of(&new).await? else { return Ok(None) };
        let (id, now) = (self.store.ids().uuid()?, self.store.now());
        diesel::insert_into(sign_in_sessions::table)
            .values((
                sign_in_sessions::id.eq(id),
                sign_in_sessions::user_id.eq(user.id),
                sign_in_sessions::cookie_digest.eq(new.cookie_digest),
                sign_in_sessions::cookie_used_at.eq(now),
                sign_in_sessions::user_agent.eq(new.user_agent),
                sign_in_sessions::created_at.eq(now),
                sign_in_sessions::last_used_at.eq(now),
                sign_in_sessions::expires_at.eq(now + FAMILY_LIFE),
            ))
            .execute(&mut *self.connection)
            .await?;
        if let Some(digest) = new.refresh_digest {
            self.issue_refresh_token(id, &digest, now, now + FAMILY_LIFE).await?;
        }
        Ok(Some(OpenedSession { id, user, joined, linked }))
    }

    /// Opens a terminal session for a signed-in user; its first refresh token is valid for `life`. Deletes a
    /// session that was opened before and not used.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn open_terminal_session(
        &mut self,
        user: Uuid,
        refresh_digest: Vec<u8>,
        life: TimeDelta,
    ) -> Result<Uuid, StoreError> {
        let (id, now) = (self.store.ids().uuid()?, self.store.now());
        diesel::delete(sign_in_sessions::table)
            .filter(sign_in_sessions::user_id.eq(user))
            .filter(sign_in_sessions::cookie_digest.is_null())
            .filter(sign_in_sessions::user_agent.eq(TERMINAL))
            .filter(sign_in_sessions::last_used_at.eq(sign_in_sessions::created_at))
            .execute(&mut *self.connection)
            .await?;
        diesel::insert_into(sign_in_sessions::table)
            .values((
                sign_in_sessions::id.eq(id),
                sign_in_sessions::user_id.eq(user),
                sign_in_sessions::cookie_used_at.eq(now),
                sign_in_sessions::user_agent.eq(TERMINAL),
                sign_in_sessions::created_at.eq(now),
                sign_in_sessions::last_used_at.eq(now),
                sign_in_sessions::expires_at.eq(now + FAMILY_LIFE),
            ))
            .execute(&mut *self.connection)
            .await?;
        self.issue_refresh_token(id, &refresh_digest, now, now + life).await?;
        Ok(id)
    }

    /// Ends a session and with it the validity of its cookie, its refresh tokens and its access tokens. Returns
    /// its user; `None` if it is not found or has already ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn revoke_session(&mut self, id: Uuid, reason: &str) -> Result<Option<Uuid>, StoreError> {
        let revoked = diesel::update(sign_in_sessions::table.find(id))
            .filter(sign_in_sessions::revoked_at.is_null())
            .set((
                sign_in_sessions::revoked_at.eq(self.store.now()),
                sign_in_sessions::revoked_reason.eq(reason),
            ))
            .returning(sign_in_sessions::user_id)
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        Ok(revoked)
    }

    /// Returns a session's user, even if it has ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn session_user(&mut self, id: Uuid) -> Result<Option<Uuid>, StoreError> {
        let found = sign_in_sessions::table
            .find(id)
            .select(sign_in_sessions::user_id)
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found)
    }

    /// Ends all of a user's sessions; returns their ids.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn revoke_sessions_of(&mut self, user: Uuid, reason: &str) -> Result<Vec<Uuid>, StoreError> {
        let revoked = diesel::update(sign_in_sessions::table)
            .filter(sign_in_sessions::user_id.eq(user))
            .filter(sign_in_sessions::revoked_at.is_null())
            .set((
                sign_in_sessions::revoked_at.eq(self.store.now()),
                sign_in_sessions::revoked_reason.eq(reason),
            ))
            .returning(sign_in_sessions::id)
            .get_results(&mut *self.connection)
            .await?;
        Ok(revoked)
    }

    /// The same for a browser's cookie.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn revoke_browser_session(
        &mut self,
        cookie_digest: &[u8],
        reason: &str,
    ) -> Result<Option<Uuid>, StoreError> {
        let found: Option<Uuid> = sign_in_sessions::table
            .filter(sign_in_sessions::cookie_digest.eq(cookie_digest))
            .select(sign_in_sessions::id)
            .first(&mut *self.connection)
            .await
            .optional()?;
        match found {
            Some(id) => self.revoke_session(id, reason).await,
            None => Ok(None),
        }
    }
}

impl Store {
    /// Returns the session for a browser's cookie, unless it was revoked, has not been used for an hour, or is
    /// half a day old. Records its use, once a minute at most, if the request `counts` as one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn browser_session(
        &self,
        cookie_digest: &[u8],
        counts: bool,
    ) -> Result<Option<BrowserSession>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let found: Option<(Uuid, DateTime<Utc>, DateTime<Utc>, StoredUser)> = sign_in_sessions::table
            .inner_join(users::table.on(users::id.eq(sign_in_sessions::user_id)))
            .filter(sign_in_sessions::cookie_digest.eq(cookie_digest))
            .filter(sign_in_sessions::revoked_at.is_null())
            .filter(sign_in_sessions::cookie_used_at.gt(now - SESSION_IDLE))
            .filter(sign_in_sessions::created_at.gt(now - SESSION_LIFE))
            .filter(users::email.is_not_null())
            .select((
                sign_in_sessions::id,
                sign_in_sessions::cookie_used_at,
                sign_in_sessions::created_at,
                StoredUser::as_select(),
            ))
            .first(&mut *connection)
            .await
            .optional()?;
        let Some((id, used_at, created_at, user)) = found else { return Ok(None) };
        if counts && now - used_at >= TOUCHED_EVERY {
            diesel::update(sign_in_sessions::table.find(id))
                // Only one of several concurrent requests records it, and the time never goes back.
                .filter(sign_in_sessions::cookie_used_at.le(now - TOUCHED_EVERY))
                .set((sign_in_sessions::cookie_used_at.eq(now), sign_in_sessions::last_used_at.eq(now)))
                .execute(&mut *connection)
                .await?;
        }
        Ok(Some(BrowserSession { id, user, ends_at: created_at + SESSION_LIFE }))
    }

    /// Returns a user's sessions that have not ended, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn sessions_of(&self, user: Uuid, limit: i64) -> Result<Vec<StoredSession>, StoreError> {
        let found = sign_in_sessions::table
            .filter(sign_in_sessions::user_id.eq(user))
            .filter(sign_in_sessions::revoked_at.is_null())
            .filter(sign_in_sessions::expires_at.gt(self.now()))
            .order(sign_in_sessions::id.desc())
            .limit(limit)
            .select(StoredSession::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }

    /// Returns the user of a session that is neither revoked nor expired; checks an access token's `sid`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn live_session(&self, id: Uuid) -> Result<Option<StoredUser>, StoreError> {
        let found = sign_in_sessions::table
            .inner_join(users::table.on(users::id.eq(sign_in_sessions::user_id)))
            .filter(sign_in_sessions::id.eq(id))
            .filter(sign_in_sessions::revoked_at.is_null())
            .filter(sign_in_sessions::expires_at.gt(self.now()))
            .filter(users::email.is_not_null())
            .select(StoredUser::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }
}
