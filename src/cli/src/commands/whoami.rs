//! `callboard whoami`: shows the caller's identity and permissions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use client::{Client, ClientError, Part};
use kernel::Secret;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;
use wire::{Me, ServiceTokenRecord, WorkspaceRole};

use super::token::lines;
use crate::complaint::{Complaint, SIGN_IN_HINT};
use crate::options::{ClientOptions, PresentedCredential, ServiceSession, TokenOrigin};
use crate::output::{CommandError, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct Whoami {
    #[command(flatten)]
    pub(crate) options: ClientOptions,
}

/// The identity that belongs to the sent token, as far as the service reveals it.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Identity {
    /// A signed-in user.
    User(Me),
    /// A service token. Its permissions are known only to callers that may view tokens.
    ServiceToken { id: String, token: Option<ServiceTokenRecord> },
    /// A user of another issuer, with the token's claims.
    Jwt { claims: Map<String, Value> },
    /// The bootstrap token: any other token that the service accepts.
    Bootstrap,
}

impl Whoami {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let rejected = |told: String| Complaint::failed(told).coded("client.nobody").refused();
        let PresentedCredential::Token { token, from } = &session.sent else {
            let told = format!("not signed in at {} with the profile [{}]", session.base(), session.profile);
            return Err(rejected(told).hint(SIGN_IN_HINT).into());
        };
        let identity = session.received(Identity::for_token(&session.client, token).await)?;
        let from = match from {
            TokenOrigin::Flag => "--service-token".to_owned(),
            TokenOrigin::Environment => "SERVICE_SERVICE_TOKEN".to_owned(),
            TokenOrigin::Profile => format!("service token of the profile [{}]", session.profile),
            TokenOrigin::SignIn => format!("sign-in of the profile [{}]", session.profile),
        };
        let Some(identity) = identity else {
            return Err(rejected(format!("{} does not accept the token ({from})", session.base())).into());
        };
        let record = json!({"api_url": session.base(), "from": from, "identity": identity});
        session.output.print(&record, || {
            say(Paint::stdout().bold(harmless(&identity.title())))?;
            let mut told = vec![("service", session.base().to_owned()), ("from", from)];
            told.extend(identity.rights());
            told.into_iter()
                .try_for_each(|(label, text)| say(format_args!("{label:<10} {}", harmless(&text))))
        })
    }
}

impl Identity {
    /// Identifies the caller with at most one request, which cannot count as a failed attempt with a valid token.
    /// Returns `None` if the service does not know the token.
    pub(crate) async fn for_token(client: &Client, token: &Secret) -> Result<Option<Self>, ClientError> {
        if let Some(id) = service_token_id(token) {
            return match client.service_token(&id).await {
                Ok(record) => Ok(Some(Self::ServiceToken { id, token: Some(record) })),
                Err(error) if is_scope(&error) => Ok(Some(Self::ServiceToken { id, token: None })),
                Err(error) if error.status() == Some(404) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let claims = claims(token);
        if claims.as_ref().is_some_and(|claims| claims.contains_key("sid")) {
            return client.me().await.map(|me| Some(Self::User(me)));
        }
        // A caller without the scope is authenticated all the same.
        match client.service_tokens(None, &Part { limit: Some(1), cursor: None }).await {
            Err(error) if !is_scope(&error) => Err(error),
            _ => Ok(Some(claims.map_or(Self::Bootstrap, |claims| Self::Jwt { claims }))),
        }
    }

    /// The identity in a few words.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::User(me) => me.user.email.clone().unwrap_or_else(|| me.user.id.clone()),
            Self::ServiceToken { id, token } => {
                match token.as_ref().and_then(|token| token.name.as_deref()) {
                    Some(name) => format!("service token {id} \"{name}\""),
                    None => format!("service token {id}"),
                }
            }
            Self::Jwt { claims } => format!("JWT of {}", claims.get("sub").map(text).unwrap_or_default()),
            Self::Bootstrap => "bootstrap token".to_owned(),
        }
    }

    fn rights(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::User(me) if me.workspaces.is_empty() => {
                vec![("workspaces", "none: may only use chats that require a login".to_owned())]
            }
            Self::User(me) => me.workspaces.iter().map(|place| ("workspace", role(place))).collect(),
            Self::ServiceToken { token: Some(token), .. } => lines(token),
            Self::ServiceToken { token: None, .. } => {
                vec![(
                    "scopes",
                    "unknown: a token can read its own record only with admin:tokens:read".to_owned(),
                )]
            }
            Self::Jwt { claims } => {
                let said = |(label, name)| Some((label, text(claims.get(name)?)));
                let told = [("issuer", "iss"), ("scopes", "scope"), ("scopes", "scopes"), ("role", "role")];
                told.into_iter().filter_map(said).collect()
            }
            Self::Bootstrap => {
                let told = "those of SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES (default: all)";
                vec![("scopes", told.to_owned())]
            }
        }
    }
}

/// A workspace and the permissions of its role.
fn role(place: &WorkspaceRole) -> String {
    let allows = match place.role.as_str() {
        "viewer" => "reads",
        "editor" => "reads, writes and runs workflows, writes the vault",
        "admin" => "as an editor; also publishes, manages apps, members and tokens",
        "owner" => "as an admin; also deletes the workspace",
        _ => "",
    };
    format!("{} ({}) {allows}", place.slug, place.role).trim_end().to_owned()
}

/// The id in a service token's secret; the id is not secret.
pub(crate) fn service_token_id(token: &Secret) -> Option<String> {
    let id = token.expose_secret().strip_prefix("svc_")?.split('_').next()?;
    Uuid::try_parse(id).ok().map(|id| id.to_string())
}

/// The claims of a JWT, unverified; the service verifies them.
fn claims(token: &Secret) -> Option<Map<String, Value>> {
    let mut parts = token.expose_secret().split('.');
    let (_, payload, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn is_scope(error: &ClientError) -> bool {
    matches!(error.code(), Some("auth.missing_scope" | "auth.workspace_forbidden"))
}
