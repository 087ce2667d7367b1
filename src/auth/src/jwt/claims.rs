//! What an access token says, once it is believed.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::instant;
use super::scopes::union;

/// Scopes that a token may carry.
const MOST_SCOPES: usize = 100;
/// Characters of a subject, an id, a session.
const MOST_CHARACTERS: usize = 255;
/// `type`, `typ` or `token_use` of access tokens that do not say whose they are.
const PLAIN: [&str; 6] = ["access", "access_token", "bearer", "jwt", "at+jwt", "application/at+jwt"];

/// What an access token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Whom it speaks for (`sub`), never empty.
    pub subject: String,
    /// Its id (`jti`).
    pub token_id: Option<String>,
    /// Who made it (`iss`).
    pub issuer: Option<String>,
    /// Whom it was made for (`aud`).
    pub audience: Vec<String>,
    /// When it was made (`iat`).
    pub issued_at: Option<DateTime<Utc>>,
    /// When it ends (`exp`).
    pub expires_at: DateTime<Utc>,
    /// What its subject is.
    pub kind: TokenKind,
    /// Its scopes, sorted, each once; at most 100. None of them need be known.
    pub scopes: Vec<String>,
    /// Where it may be used.
    pub workspaces: Workspaces,
    /// The sign-in it belongs to (`sid`). Issuers elsewhere have sign-ins too, so look at [`Claims::signed_by`] before
    /// taking it for one of ours.
    pub session: Option<String>,
    /// Whose key signed it.
    pub signed_by: SignedBy,
}

/// What a token's subject is (`type`, `typ` or `token_use`); a user where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A person.
    User,
    /// A program that acts for itself.
    Service,
    /// A program that acts for others.
    Client,
}

/// The workspaces of a token.
///
/// A token without any claim about workspaces is not limited to some. One with such a claim is limited to what it says,
/// also when that is an empty list or text: it opens none. An issuer that makes tokens from a list of memberships then
/// does not open everything to a user whose last membership was taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspaces {
    /// Nothing is said.
    Unrestricted,
    /// These ids or slugs, sorted, each once. They need not exist.
    Only(Vec<String>),
}

/// Whose key signed a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedBy {
    /// The configured secret.
    Secret,
    /// The service's own generated secret.
    FirstParty,
    /// A key of a key set.
    KeySet,
}

/// A claim is missing or is not what it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadClaims;

/// Claims whose form is right, and the two times that are only looked at once.
pub(super) struct Read {
    pub(super) claims: Claims,
    pub(super) not_before: Option<DateTime<Utc>>,
}

/// Reads every claim that means something here. Each must be of its type when it is there, needed or not.
pub(super) fn read(members: &Map<String, Value>, signed_by: SignedBy) -> Result<Read, BadClaims> {
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
    Ok(Read { claims, not_before: date(members, "nbf")? })
}

/// The subject, of a token whose signature is good, whatever else is wrong with it.
pub(super) fn subject(members: &Map<String, Value>) -> Result<String, BadClaims> {
    text(members, "sub")?.ok_or(BadClaims)
}

fn list(set: BTreeSet<String>) -> Vec<String> {
    set.into_iter().collect()
}

/// A text that a table can keep.
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

/// `aud`: one text or several.
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

/// Names of other kinds of tokens (`id`, `refresh`) are refused, and so are two names that say different things.
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
