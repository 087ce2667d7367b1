//! Sign-ins: opens and ends sessions, and writes their audit entries.
//!
//! A caller who signs in has no principal yet, so an audit entry names the user.

use std::net::IpAddr;

use auth::principal::Actor;
use auth::sign_in::CHALLENGE_LIFE;
use store::{
    AuditEntry, AuditOutcome, AuditTarget, Changes, Joined, LinkUse, NewIdentity, NewSession, OpenedSession,
    Refreshed, Revoked, ShownCode, StoreError,
};
use uuid::Uuid;
use wire::AuditAction;

/// The client of a sign-in.
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// The id of the request, if there is one.
    pub request_id: Option<String>,
}

impl Client {
    fn entry(&self, action: AuditAction, user: Uuid, session: Uuid) -> AuditEntry {
        AuditEntry {
            actor: Actor { kind: "user", id: Some(user.to_string()) },
            action,
            target: Some(AuditTarget { kind: "session", id: session.to_string() }),
            workspace: None,
            outcome: AuditOutcome::Success,
            reason: None,
            address: Some(self.address.to_string()),
            request_id: self.request_id.clone(),
        }
    }
}

/// A session to open.
pub struct Opening<'a> {
    /// The client.
    pub client: Client,
    /// Address whose first sign-in makes its user the owner of the workspace `default`.
    pub owner_email: Option<&'a str>,
    /// Whether only members may sign in.
    pub members_only: bool,
    /// SHA-256 of the first refresh token.
    pub refresh_digest: Vec<u8>,
    /// SHA-256 of the browser's cookie, if it gets one.
    pub cookie_digest: Option<Vec<u8>>,
    /// SHA-256 of the cookie that the browser had before; its session ends.
    pub old_cookie: Option<Vec<u8>>,
    /// The client's `User-Agent`.
    pub user_agent: Option<&'a str>,
}

/// Opens the session of a user who proved an address; `None` if the address may not sign in. A user from a provider has
/// the identity there, and gets only a cookie.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn open(
    changes: &mut Changes,
    opening: &Opening<'_>,
    email: &str,
    identity: Option<NewIdentity<'_>>,
) -> Result<Option<OpenedSession>, StoreError> {
    let new = NewSession {
        email,
        identity,
        owner_email: opening.owner_email,
        members_only: opening.members_only,
        refresh_digest: identity.is_none().then(|| opening.refresh_digest.clone()),
        cookie_digest: opening.cookie_digest.clone(),
        user_agent: opening.user_agent,
    };
    let Some(opened) = changes.open_session(new).await? else { return Ok(None) };
    let entry = |action| opening.client.entry(action, opened.user.id, opened.id);
    let by = identity.map_or("by mail".to_owned(), |identity| format!("by {}", identity.issuer));
    let signed_in = AuditEntry { reason: Some(by.clone()), ..entry(AuditAction::AuthSignedIn) };
    changes.audit(&signed_in).await?;
    let target = || Some(AuditTarget { kind: "user", id: opened.user.id.to_string() });
    if opened.linked {
        let linked = entry(AuditAction::AuthIdentityLinked);
        changes.audit(&AuditEntry { target: target(), reason: Some(by), ..linked }).await?;
    }
    for Joined { workspace, role } in &opened.joined {
        let (reason, workspace) = (Some(format!("as {role}")), Some(*workspace));
        let joined = entry(AuditAction::MemberJoined);
        changes.audit(&AuditEntry { target: target(), reason, workspace, ..joined }).await?;
    }
    if let Some(old) = &opening.old_cookie {
        changes.revoke_browser_session(old, "signed_in_again").await?;
    }
    Ok(Some(opened))
}

/// Uses up a mailed code and opens the session; `None` if the code is wrong, expired or used, or its address may not
/// sign in.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn by_code(
    changes: &mut Changes,
    shown: ShownCode<'_>,
    opening: &Opening<'_>,
) -> Result<Option<OpenedSession>, StoreError> {
    let Some(proven) = changes.use_code(shown).await? else { return Ok(None) };
    open(changes, opening, &proven.email, None).await
}

/// Uses up a mailed link and opens the session.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn by_link(
    changes: &mut Changes,
    link: &[u8],
    binding: Option<&[u8]>,
    opening: &Opening<'_>,
) -> Result<(LinkUse, Option<OpenedSession>), StoreError> {
    let link_use = changes.use_link(link, binding).await?;
    let opened = match &link_use {
        LinkUse::Good(proven) => open(changes, opening, &proven.email, None).await?,
        LinkUse::OtherBrowser | LinkUse::Over => None,
    };
    Ok((link_use, opened))
}

/// Replaces a refresh token. A token that is reused, or refreshed too often, ends its session.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn refresh(
    changes: &mut Changes,
    client: &Client,
    shown: &[u8],
    fresh: &[u8],
) -> Result<Refreshed, StoreError> {
    let refreshed = changes.refresh(shown, fresh).await?;
    let ended = match refreshed {
        Refreshed::Reused(revoked) => Some((AuditAction::AuthRefreshReused, revoked)),
        Refreshed::TooOften(revoked) => Some((AuditAction::AuthRefreshedTooOften, revoked)),
        Refreshed::Good { .. } | Refreshed::Unknown => None,
    };
    if let Some((action, Revoked { session, user })) = ended {
        let entry = client.entry(action, user, session);
        changes.audit(&AuditEntry { outcome: AuditOutcome::Denied, ..entry }).await?;
    }
    Ok(refreshed)
}

/// Opens a terminal session, whose first refresh token is the code with this digest.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn open_terminal(
    changes: &mut Changes,
    client: &Client,
    user: Uuid,
    code: Vec<u8>,
) -> Result<(), StoreError> {
    let session = changes.open_terminal_session(user, code, CHALLENGE_LIFE).await?;
    changes.audit(&client.entry(AuditAction::AuthTerminalCode, user, session)).await
}

/// Ends a user's session, even if it has ended already; `false` if it is not theirs.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn end(
    changes: &mut Changes,
    client: &Client,
    user: Uuid,
    session: Uuid,
) -> Result<bool, StoreError> {
    if changes.session_user(session).await? != Some(user) {
        return Ok(false);
    }
    if changes.revoke_session(session, "ended_by_user").await?.is_some() {
        changes.audit(&client.entry(AuditAction::AuthSessionEnded, user, session)).await?;
    }
    Ok(true)
}

/// Ends all sessions of a user.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn end_all(changes: &mut Changes, client: &Client, user: Uuid) -> Result<(), StoreError> {
    for session in changes.revoke_sessions_of(user, "signed_out_everywhere").await? {
        changes.audit(&client.entry(AuditAction::AuthSessionEnded, user, session)).await?;
    }
    Ok(())
}

/// Ends the caller's session and the session of a refresh token, unless they have ended.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn sign_out(
    changes: &mut Changes,
    client: &Client,
    own: Option<Uuid>,
    refresh: Option<&[u8]>,
) -> Result<(), StoreError> {
    let of_refresh = match refresh {
        Some(refresh) => changes.session_of_refresh(refresh).await?,
        None => None,
    };
    for session in [own, of_refresh].into_iter().flatten() {
        if let Some(user) = changes.revoke_session(session, "signed_out").await? {
            changes.audit(&client.entry(AuditAction::AuthSignedOut, user, session)).await?;
        }
    }
    Ok(())
}
