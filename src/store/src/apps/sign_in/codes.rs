//! Authorization codes: issued to a member's browser, redeemed once.

use auth::app_sign_in::{CODE_LIFE, CODE_OVERLAP, CODES_PER_USER, SESSION_LIFE, SIGN_IN_LIFE};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::sessions::IS_MEMBER;
use crate::database::changes::lock_of;
use crate::{Changes, Store, StoreError};

/// A code to issue.
pub struct NewAppCode<'a> {
    /// SHA-256 of the code.
    pub digest: &'a [u8],
    /// The app for which it is issued.
    pub app: Uuid,
    /// The redirect URI.
    pub redirect_uri: &'a str,
    /// The verifier's digest.
    pub challenge: &'a str,
    /// The user.
    pub user: Uuid,
    /// The browser's session on the central host.
    pub central_session: Uuid,
}

/// A code presented by an app, and the session that it is to open.
pub struct ShownAppCode<'a> {
    /// SHA-256 of the code.
    pub digest: &'a [u8],
    /// The app.
    pub app: Uuid,
    /// The app's workspace.
    pub workspace: Uuid,
    /// The redirect URI.
    pub redirect_uri: &'a str,
    /// The digest of the app's verifier.
    pub challenge: &'a str,
    /// SHA-256 of the new cookie.
    pub cookie_digest: &'a [u8],
}

/// A code presented without a pending sign-in.
pub struct StrayAppCode<'a> {
    /// SHA-256 of the code.
    pub digest: &'a [u8],
    /// The app.
    pub app: Uuid,
    /// SHA-256 of the state that came with the code.
    pub state_digest: &'a [u8],
    /// SHA-256 of the secret for the browser's sign-in, if it has one.
    pub binding_digest: Option<&'a [u8]>,
}

/// A session that a code opened.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct OpenedAppSession {
    /// Its id.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// The member.
    #[diesel(sql_type = SqlUuid)]
    pub user_id: Uuid,
    /// When it ends at the latest.
    #[diesel(sql_type = Timestamptz)]
    pub expires_at: DateTime<Utc>,
}

/// The result of redeeming a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedeemedCode {
    /// The code was valid, and is used up.
    Opened(OpenedAppSession),
    /// The code was redeemed before. The session that it opened has been ended.
    Replayed,
    /// The app has no such code, the code has expired, or the verifier does not match.
    Refused,
}

impl Changes {
    /// Stores a code. Returns `false`, and stores nothing, if the user has reached the limit.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn issue_app_code(&mut self, new: NewAppCode<'_>) -> Result<bool, StoreError> {
        let now = self.store.now();
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<BigInt, _>(lock_of(&format!("app codes of\n{}", new.user)))
            .execute(&mut *self.connection)
            .await?;
        let stored = diesel::sql_query(
            "INSERT INTO app_codes (digest, app_id, redirect_uri, challenge, user_id, central_session, created_at, expires_at)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8
             WHERE (SELECT count(*) FROM app_codes WHERE user_id = $5 AND created_at > $9) < $10",
        )
        .bind::<Bytea, _>(new.digest)
        .bind::<SqlUuid, _>(new.app)
        .bind::<Text, _>(new.redirect_uri)
        .bind::<Text, _>(new.challenge)
        .bind::<SqlUuid, _>(new.user)
        .bind::<SqlUuid, _>(new.central_session)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + CODE_LIFE)
        .bind::<Timestamptz, _>(now - SIGN_IN_LIFE)
        .bind::<BigInt, _>(CODES_PER_USER)
        .execute(&mut *self.connection)
        .await?;
        Ok(stored > 0)
    }

    /// Redeems a code: uses it up and opens its session in one statement. A second redemption ends the session
    /// that the code opened.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn redeem_app_code(&mut self, shown: &ShownAppCode<'_>) -> Result<RedeemedCode, StoreError> {
        let now = self.store.now();
        let sql = format!(
            "WITH redeemed AS (
                 UPDATE app_codes t SET used_at = $5, session_id = $7
                 WHERE t.digest = $1 AND t.app_id = $2 AND t.redirect_uri = $3 AND t.challenge = $4
                     AND t.used_at IS NULL AND t.expires_at > $5 AND {IS_MEMBER}
                 RETURNING t.app_id, t.user_id, t.central_session)
             INSERT INTO app_sessions (id, app_id, user_id, central_session, digest, created_at, used_at, rotated_at, expires_at)
             SELECT $7, app_id, user_id, central_session, $8, $5, $5, $5, $9 FROM redeemed
             RETURNING id, user_id, expires_at"
        );
        let opened = diesel::sql_query(sql)
            .bind::<Bytea, _>(shown.digest)
            .bind::<SqlUuid, _>(shown.app)
            .bind::<Text, _>(shown.redirect_uri)
            .bind::<Text, _>(shown.challenge)
            .bind::<Timestamptz, _>(now)
            .bind::<SqlUuid, _>(shown.workspace)
            .bind::<SqlUuid, _>(self.store.ids().uuid()?)
            .bind::<Bytea, _>(shown.cookie_digest)
            .bind::<Timestamptz, _>(now + SESSION_LIFE)
            .get_result(&mut *self.connection)
            .await
            .optional()?;
        if let Some(opened) = opened {
            return Ok(RedeemedCode::Opened(opened));
        }
        // Runs after the statement above: a concurrent redemption has committed by then, or failed.
        let replayed = diesel::sql_query(
            "WITH shown AS (SELECT session_id FROM app_codes WHERE digest = $1 AND app_id = $2 AND used_at IS NOT NULL),
             ended AS (UPDATE app_sessions t SET revoked_at = $3, revoked_reason = 'code_replayed' FROM shown
                 WHERE t.id = shown.session_id AND t.revoked_at IS NULL)
             SELECT FROM shown",
        )
        .bind::<Bytea, _>(shown.digest)
        .bind::<SqlUuid, _>(shown.app)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection)
        .await?;
        Ok(if replayed > 0 { RedeemedCode::Replayed } else { RedeemedCode::Refused })
    }
}

impl Store {
    /// Ends the session that a code opened, if the code was redeemed. Returns `false` if it was not.
    ///
    /// If the browser still has its sign-in cookie, it has not received the redemption's answer: its requests
    /// within [`CODE_OVERLAP`] were concurrent, and end nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_stray_app_code(&self, stray: &StrayAppCode<'_>) -> Result<bool, StoreError> {
        let now = self.now();
        let ended = diesel::sql_query(
            "WITH shown AS (SELECT session_id FROM app_codes WHERE digest = $1 AND app_id = $2 AND used_at IS NOT NULL
                 AND NOT (used_at > $4 AND EXISTS (SELECT FROM app_sign_ins
                     WHERE state_digest = $5 AND app_id = $2 AND binding_digest = $6))),
             ended AS (UPDATE app_sessions t SET revoked_at = $3, revoked_reason = 'code_replayed' FROM shown
                 WHERE t.id = shown.session_id AND t.revoked_at IS NULL)
             SELECT FROM shown",
        )
        .bind::<Bytea, _>(stray.digest)
        .bind::<SqlUuid, _>(stray.app)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now - CODE_OVERLAP)
        .bind::<Bytea, _>(stray.state_digest)
        .bind::<Nullable<Bytea>, _>(stray.binding_digest)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(ended > 0)
    }

    /// [`Changes::redeem_app_code`] in a separate transaction; also ends the browser's earlier session.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn redeem_app_code(
        &self,
        shown: &ShownAppCode<'_>,
        earlier_cookie: Option<&[u8]>,
    ) -> Result<RedeemedCode, StoreError> {
        self.change(async |changes| {
            let redeemed = changes.redeem_app_code(shown).await?;
            if let (RedeemedCode::Opened(_), Some(earlier)) = (&redeemed, earlier_cookie) {
                changes.end_app_session(shown.app, earlier, "signed_in_again").await?;
            }
            Ok(redeemed)
        })
        .await
    }
}
