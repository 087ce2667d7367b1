//! Examples of signing in.

use anyhow::Result;
use wire::{
    Me, Refresh, SessionRecord, SignInStarted, SignedIn, StartSignIn, UserRecord, VerifyCode, WorkspaceRole,
};

use super::block;

const EMAIL: &str = "ada@example.org";
const CHALLENGE: &str = "fWCY-PT7Hl9v_gjGzcd8MqqIe…";
const REFRESH: &str = "9nq3vJ0yS2W1m7ZlT4xkQbUe…";

pub(super) fn start() -> Result<String> {
    block(&StartSignIn { email: EMAIL.to_owned(), return_to: Some("/chat/0198c2e7-…".to_owned()) })
}

pub(super) fn started() -> Result<String> {
    block(&SignInStarted { challenge: CHALLENGE.to_owned() })
}

pub(super) fn verify() -> Result<String> {
    let challenge = Some(CHALLENGE.to_owned());
    block(&VerifyCode { challenge, email: EMAIL.to_owned(), code: "012345".to_owned() })
}

pub(super) fn signed_in() -> Result<String> {
    block(&SignedIn {
        access_token: "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9…".to_owned(),
        refresh_token: REFRESH.to_owned(),
        token_type: "bearer".to_owned(),
        expires_in: 900,
        user: user(),
        return_to: None,
    })
}

pub(super) fn refresh() -> Result<String> {
    block(&Refresh { refresh_token: REFRESH.to_owned() })
}

pub(super) fn me() -> Result<String> {
    let role = |slug: &str, role: &str| WorkspaceRole {
        id: "0198c2e7-1a2b-7…".to_owned(),
        slug: slug.to_owned(),
        role: role.to_owned(),
    };
    let session = SessionRecord {
        id: "01930c5e-0000-7000-8000-0000000000aa".to_owned(),
        kind: "browser".to_owned(),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64)".to_owned()),
        created_at: "2026-11-22T09:00:00.000000Z".to_owned(),
        last_used_at: "2026-11-22T10:12:00.000000Z".to_owned(),
        expires_at: "2026-12-22T09:00:00.000000Z".to_owned(),
        current: true,
    };
    block(&Me { user: user(), workspaces: vec![role("default", "editor")], sessions: vec![session] })
}

fn user() -> UserRecord {
    UserRecord { id: "0198c2e7-0b1c-7…".to_owned(), email: Some(EMAIL.to_owned()), name: None }
}
