//! The claims of a verified access token.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::instant;
use super::scopes::union;

/// Maximum scopes per token.
const MOST_SCOPES: usize = 100;
/// Maximum characters of a subject, an id or a session.
const MOST_CHARACTERS: usize = 255;
/// `type`, `typ` or `token_use` of access tokens that do not name the subject's kind.
const PLAIN: [&str; 6] = ["access", "access_token", "bearer", "jwt", "at+jwt", "application/at+jwt"];

/// An access token's claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The subject (`sub`), never empty.
    pub subject: String,
    /// The token's id (`jti`).
    pub token_id: Option<String>,
    /// The issuer (`iss`).
    pub issuer: Option<String>,
    /// The audience (`aud`).
    pub audience: Vec<String>,
    /// The time of issue (`iat`).
    pub issued_at: Option<DateTime<Utc>>,
    /// The expiry (`exp`).
    pub expires_at: DateTime<Utc>,
    /// The subject's kind.
    pub kind: TokenKind,
    /// Sorted, unique scopes; at most 100. Unknown scopes are allowed.
    pub scopes: Vec<String>,
    /// The workspaces in which the token is valid.
    pub workspaces: Workspaces,
    /// The token's sign-in (`sid`). Other issuers have sign-ins too, so check [`Claims::signed_by`] before treating it
    /// as ours.
    pub session: Option<String>,
    /// The owner of the signing key.
    pub signed_by: SignedBy,
}

/// The kind of a token's subject (`type`, `typ` or `token_use`); a user by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A person.
    User,
    /// A program that acts for itself.
    Service,
    /// A program that acts for others.
    Client,
}

/// A token's workspaces.
///
/// A token without any workspace claim is unrestricted. A token with such a claim is limited to its values; an empty
/// list or text opens no workspace. So an issuer that derives tokens from memberships does not open everything to a
/// user who lost their last membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspaces {
    /// The token has no workspace claim.
    Unrestricted,
    /// Only these ids or slugs, sorted and unique. They need not exist.
    Only(Vec<String>),
}

/// The owner of the key that signed a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedBy {
    /// The configured secret.
    Secret,
    /// The service's own generated secret.
    FirstParty,
    /// A key of a key set.
    KeySet,
}

/// A claim is missing or invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadClaims;

/// Well-formed claims, and a time that is needed only for verification.
pub(super) struct ParsedClaims {
    pub(super) claims: Claims,
    pub(super) not_before: Option<DateTime<Utc>>,
}

/// Parses every claim that the service knows. A claim that is present must have its type, even if it is not needed.
pub(super) fn read(members: &Map<String, Value>, signed_by: SignedBy) -> Result<ParsedClaims, BadClaims> {
    let scopes = union(members, &["scope", "scopes", "scp"], "scopes").map_err(|_| BadClaims)?;
    let scopes = scopes.unwrap_or_default();
    if scopes.len() > MOST_SCOPES {
        return Err(BadClaims);
    }
    let names = ["workspace_ids", "workspaces", "workspace_id", "workspace"];
    let workspaces = union(members, &names, "workspace_ids").map_err(|_| BadClaims)?;
    let claims = Claims {
        subject: subject(members)?,
        token_id: text(members, "jti")?,
        issuer: text(members, "iss")?,
        audience: audience(members)?,
        issued_at: date(members, "iat")?,
        expires_at: date(members, "exp")?.ok_or(BadClaims)?,
        kind: kind(members)?,
        scopes: list(scopes),
        workspaces: workspaces.map_or(Workspaces::Unrestricted, |only| Workspaces::Only(list(only))),
        session: text(members, "sid")?,
        signed_by,
    };
    Ok(ParsedClaims { claims, not_before: date(members, "nbf")? })
}

/// The subject of a token with a valid signature, even if the token is otherwise invalid.
pub(super) fn subject(members: &Map<String, Value>) -> Result<String, BadClaims> {
    text(members, "sub")?.ok_or(BadClaims)
}

fn list(set: BTreeSet<String>) -> Vec<String> {
    set.into_iter().collect()
}

/// A text that a database column can store.
pub(crate) fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, BadClaims> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if fits(text) => Ok(Some(text.clone())),
        Some(_) => Err(BadClaims),
    }
}

fn fits(text: &str) -> bool {
    (1..=MOST_CHARACTERS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// A point in time.
pub(crate) fn date(members: &Map<String, Value>, name: &str) -> Result<Option<DateTime<Utc>>, BadClaims> {
    members.get(name).map(|value| instant(value).ok_or(BadClaims)).transpose()
}

/// `aud`: one text or a list.
pub(crate) fn audience(members: &Map<String, Value>) -> Result<Vec<String>, BadClaims> {
    match members.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(several)) => {
            several.iter().map(|item| item.as_str().map(str::to_owned).ok_or(BadClaims)).collect()
        }
        Some(_) => Err(BadClaims),
    }
}

/// Rejects other token kinds (`id`, `refresh`) and contradicting names.
fn kind(members: &Map<String, Value>) -> Result<TokenKind, BadClaims> {
    let mut said = None;
    for value in ["type", "typ", "token_use"].iter().filter_map(|name| members.get(*name)) {
        let name = value.as_str().ok_or(BadClaims)?.to_ascii_lowercase();
        let kind = match name.as_str() {
            "user" => TokenKind::User,
            "service" => TokenKind::Service,
            "client" => TokenKind::Client,
            name if PLAIN.contains(&name) => continue,
            _ => return Err(BadClaims),
        };
        if *said.get_or_insert(kind) != kind {
            return Err(BadClaims);
        }
    }
    Ok(said.unwrap_or(TokenKind::User))
}
