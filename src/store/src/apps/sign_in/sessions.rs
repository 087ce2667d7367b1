//! Member sessions on app hosts.

use std::sync::LazyLock;

use auth::app_sign_in::{OVERLAP, ROTATED_EVERY, SESSION_IDLE};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::{Changes, Store, StoreError};

/// SQL condition: the central session of `t` has not ended, and its user is a member. `$5`: now, `$6`: the
/// workspace.
pub(super) const IS_MEMBER: &str = "EXISTS (SELECT FROM sign_in_sessions c JOIN users u ON u.id = c.user_id
     JOIN workspace_members m ON m.user_id = u.id JOIN workspaces w ON w.id = m.workspace_id
     WHERE c.id = t.central_session AND c.user_id = t.user_id AND c.revoked_at IS NULL AND c.expires_at > $5
         AND u.email IS NOT NULL AND m.workspace_id = $6 AND m.invited_until IS NULL AND w.deleted_at IS NULL)";
/// Selects the session for a cookie.
static BY_COOKIE: LazyLock<String> = LazyLock::new(|| {
    format!(
            "SELECT t.id, t.user_id, o.name, o.email, t.expires_at, t.used_at, t.digest = $1 AND t.rotated_at <= $4 AS is_due
             FROM app_sessions t JOIN users o ON o.id = t.user_id
             WHERE t.app_id = $2 AND (t.digest = $1 OR t.previous_digest = $1 AND t.previous_until > $5)
                 AND t.revoked_at IS NULL AND t.expires_at > $5 AND t.used_at > $3 AND {IS_MEMBER}"
        )
});
/// Checks that a session has not ended.
static LIVES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT EXISTS (SELECT FROM app_sessions t WHERE t.id = $1 AND t.app_id = $2 AND t.revoked_at IS NULL
                 AND t.used_at > $3 AND t.expires_at > $4 AND {IS_MEMBER}) AS lives"
    )
});

/// Maximum delay in the stored time of the last request.
const STORED_EVERY: TimeDelta = TimeDelta::minutes(1);

/// A request that presents a cookie.
pub struct AppSessionUse<'a> {
    /// The app.
    pub app: Uuid,
    /// The app's workspace.
    pub workspace: Uuid,
    /// SHA-256 of the cookie.
    pub digest: &'a [u8],
}

/// A session that has not ended, and whose user is currently a member.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct AppSession {
    /// Its id.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// The member.
    #[diesel(sql_type = SqlUuid)]
    pub user_id: Uuid,
    /// The member's name, if they gave one.
    #[diesel(sql_type = Nullable<Text>)]
    pub name: Option<String>,
    /// The member's address.
    #[diesel(sql_type = Text)]
    pub email: String,
    /// When it ends at the latest.
    #[diesel(sql_type = Timestamptz)]
    pub expires_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    #[diesel(sql_type = Timestamptz)]
    used_at: DateTime<Utc>,
    /// Whether the cookie is the newest one, and old enough to be rotated.
    #[diesel(sql_type = Bool)]
    pub is_due: bool,
}

impl Changes {
    /// Ends the session for an app's cookie.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_app_session(
        &mut self,
        app: Uuid,
        digest: &[u8],
        reason: &str,
    ) -> Result<bool, StoreError> {
        let now = self.store.now();
        let ended = prepared(
            "UPDATE app_sessions SET revoked_at = $3, revoked_reason = $4
             WHERE app_id = $2 AND (digest = $1 OR previous_digest = $1 AND previous_until > $3) AND revoked_at IS NULL",
        )
        .bind::<Bytea, _>(digest)
        .bind::<SqlUuid, _>(app)
        .bind::<Timestamptz, _>(now)
        .bind::<Text, _>(reason)
        .execute(&mut *self.connection)
        .await?;
        Ok(ended > 0)
    }

    /// Ends a user's sessions in a workspace's apps, and deletes the user's consents there.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub(crate) async fn end_app_sessions_of(
        &mut self,
        workspace: Uuid,
        user: Uuid,
    ) -> Result<(), StoreError> {
        let now = self.store.now();
        prepared(
            "WITH forgotten AS (DELETE FROM app_consents t USING apps a
                 WHERE a.id = t.app_id AND a.workspace_id = $2 AND t.user_id = $1)
             UPDATE app_sessions t SET revoked_at = $3, revoked_reason = 'no_member' FROM apps a
                 WHERE a.id = t.app_id AND a.workspace_id = $2 AND t.user_id = $1 AND t.revoked_at IS NULL",
        )
        .bind::<SqlUuid, _>(user)
        .bind::<SqlUuid, _>(workspace)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

impl Store {
    /// Returns the session for a cookie, if it has not ended and its user is still a member. Records its use,
    /// once a minute at most.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn app_session(&self, shown: &AppSessionUse<'_>) -> Result<Option<AppSession>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let found: Option<AppSession> = prepared(&BY_COOKIE)
            .bind::<Bytea, _>(shown.digest)
            .bind::<SqlUuid, _>(shown.app)
            .bind::<Timestamptz, _>(now - SESSION_IDLE)
            .bind::<Timestamptz, _>(now - ROTATED_EVERY)
            .bind::<Timestamptz, _>(now)
            .bind::<SqlUuid, _>(shown.workspace)
            .get_result(&mut *connection)
            .await
            .optional()?;
        if let Some(session) = &found
            && now - session.used_at >= STORED_EVERY
        {
            // Only one of several concurrent requests stores it, and the time never goes back.
            prepared("UPDATE app_sessions SET used_at = $2 WHERE id = $1 AND used_at <= $3")
                .bind::<SqlUuid, _>(session.id)
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(now - STORED_EVERY)
                .execute(&mut *connection)
                .await?;
        }
        Ok(found)
    }

    /// Whether a session has not ended, for a client that has already presented its cookie. Does not count as a
    /// request by the member.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn app_session_lives(&self, app: Uuid, workspace: Uuid, id: Uuid) -> Result<bool, StoreError> {
        let now = self.now();
        let found: Scalar<bool> = prepared(&LIVES)
            .bind::<SqlUuid, _>(id)
            .bind::<SqlUuid, _>(app)
            .bind::<Timestamptz, _>(now - SESSION_IDLE)
            .bind::<Timestamptz, _>(now)
            .bind::<Timestamptz, _>(now)
            .bind::<SqlUuid, _>(workspace)
            .get_result(&mut *self.connection().await?)
            .await?;
        Ok(found.0)
    }

    /// Rotates a session's cookie; the previous one stays valid a little longer. Only one of several concurrent
    /// requests succeeds; the others receive `false`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn rotate_app_session(&self, id: Uuid, digest: &[u8], next: &[u8]) -> Result<bool, StoreError> {
        let now = self.now();
        let rotated = prepared(
            "UPDATE app_sessions SET digest = $3, previous_digest = digest, previous_until = $5, rotated_at = $4
             WHERE id = $1 AND digest = $2 AND revoked_at IS NULL",
        )
        .bind::<SqlUuid, _>(id)
        .bind::<Bytea, _>(digest)
        .bind::<Bytea, _>(next)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + OVERLAP)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(rotated > 0)
    }
}
