//! Sessions: one for each sign-in.

use auth::sign_in::{FAMILY_LIFE, SESSION_IDLE, SESSION_LIFE};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::identities::Account;
use super::{NewIdentity, StoredUser};
use crate::schema::{refresh_tokens, sign_in_sessions, users};
use crate::{Changes, Joined, Store, StoreError};

/// How far the noted time of a session's last request may lag behind.
const TOUCHED_EVERY: TimeDelta = TimeDelta::minutes(1);

/// What sessions of terminals are noted as.
const TERMINAL: &str = "a terminal";

/// A session to open.
pub struct NewSession<'a> {
    /// Who signs in.
    pub email: &'a str,
    /// Who they are at the provider that says so; `None` when they have shown that they read their mail.
    pub identity: Option<NewIdentity<'a>>,
    /// Whose first sign-in makes them owner of the workspace `default`.
    pub owner_email: Option<&'a str>,
    /// Whether only members may sign in.
    pub members_only: bool,
    /// SHA-256 of the first refresh token, where one is handed out.
    pub refresh_digest: Option<Vec<u8>>,
    /// SHA-256 of the browser's cookie, where it gets one.
    pub cookie_digest: Option<Vec<u8>>,
    /// What the client says it is.
    pub user_agent: Option<&'a str>,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// Its id, which access tokens name.
    pub id: Uuid,
    /// Who signed in.
    pub user: StoredUser,
    /// What they have become a member of by it.
    pub joined: Vec<Joined>,
    /// Whether their account was linked to a provider's subject by it.
    pub linked: bool,
}

/// A sign-in of a user that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = sign_in_sessions, check_for_backend(diesel::pg::Pg))]
pub struct StoredSession {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub user_id: Uuid,
    /// SHA-256 of the browser's cookie, if it has one.
    cookie_digest: Option<Vec<u8>>,
    /// What the client said it is.
    pub user_agent: Option<String>,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub expires_at: DateTime<Utc>,
}

impl StoredSession {
    /// Whether it is of a browser that keeps its cookie; otherwise of a terminal or another program that keeps tokens.
    #[must_use]
    pub fn is_browser(&self) -> bool {
        self.cookie_digest.is_some()
    }
}

/// A browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its session.
    pub id: Uuid,
    /// Who is signed in.
    pub user: StoredUser,
    /// When they will have to sign in again, whatever they do.
    pub ends_at: DateTime<Utc>,
}

impl Changes {
    /// Opens a session; `None` when the address may not sign in.
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
            diesel::insert_into(refresh_tokens::table)
                .values((
                    refresh_tokens::digest.eq(digest),
                    refresh_tokens::session_id.eq(id),
                    refresh_tokens::issued_at.eq(now),
                    refresh_tokens::expires_at.eq(now + FAMILY_LIFE),
                ))
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(Some(OpenedSession { id, user, joined, linked }))
    }

    /// Opens a session for a terminal of a signed-in user; its first refresh token is good for `life`. A session that
    /// was opened before and not used is deleted.
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
        diesel::insert_into(refresh_tokens::table)
            .values((
                refresh_tokens::digest.eq(refresh_digest),
                refresh_tokens::session_id.eq(id),
                refresh_tokens::issued_at.eq(now),
                refresh_tokens::expires_at.eq(now + life),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(id)
    }

    /// Ends a session: its cookie, its refresh tokens and its access tokens are worth nothing any more. Says whose it was;
    /// `None` when there was none, or it had ended.
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

    /// Whose session it is, ended or not.
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

    /// Ends every session of a user; returns their ids.
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

    /// The same for the session of a browser's cookie.
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
    /// The session of a browser's cookie, unless it was revoked, has not been used for an hour, or is half a day old.
    /// Its use is recorded, once a minute at most, if the request `counts` as one.
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
                // Of many requests at once, one notes it; and never back in time.
                .filter(sign_in_sessions::cookie_used_at.le(now - TOUCHED_EVERY))
                .set((sign_in_sessions::cookie_used_at.eq(now), sign_in_sessions::last_used_at.eq(now)))
                .execute(&mut *connection)
                .await?;
        }
        Ok(Some(BrowserSession { id, user, ends_at: created_at + SESSION_LIFE }))
    }

    /// The sessions of a user that have not ended, the newest first.
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

    /// Whose session it is, while it is neither revoked nor over: what an access token's `sid` is worth.
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
