//! `callboard token show`.

use clap::Args;
use wire::ServiceTokenRecord;

use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, pretty, say};
use crate::table::{minute, second};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct ShowToken {
    /// Id of the token.
    id: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl ShowToken {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let token = session.received(session.client.service_token(&self.id).await)?;
        if session.output == Output::Json {
            return say(pretty(&token)?);
        }
        say(Paint::stdout().bold(named(&token)))?;
        for (label, value) in lines(&token) {
            say(format_args!("{label:<10} {}", harmless(&value)))?;
        }
        Ok(())
    }
}

/// A record's fields, each with a label.
pub(in crate::commands) fn lines(token: &ServiceTokenRecord) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("status", token.status.clone()),
        ("scopes", or(&token.scopes.join(", "), "none")),
        ("workspaces", or(&token.workspaces.join(", "), "all")),
        ("issued", format!("{} by {}", second(&token.issued), token.created_by)),
        ("expires", token.expires.as_deref().map_or_else(|| "never".to_owned(), second)),
        ("last used", token.last_used.as_deref().map_or_else(|| "never".to_owned(), minute)),
    ];
    if let Some(at) = &token.revoked {
        let why = token.revoked_reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(("revoked", format!("{}{why}", second(at))));
    }
    lines
}

/// A token's id, and its name if it has one.
pub(super) fn named(token: &ServiceTokenRecord) -> String {
    match &token.name {
        Some(name) => harmless(&format!("{} \"{name}\"", token.id)).into_owned(),
        None => harmless(&token.id).into_owned(),
    }
}

fn or(text: &str, instead: &str) -> String {
    if text.is_empty() { instead } else { text }.to_owned()
}
