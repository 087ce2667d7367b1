//! `callboard token list`.

use clap::Args;
use wire::ServiceTokenRecord;

use crate::options::{ClientOptions, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::parts;
use crate::table::{self, minute};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only tokens with this status.
    #[arg(long, value_parser = ["active", "revoked", "expired"])]
    status: Option<String>,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl List {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let tokens = self.all(session).await?;
        if session.output == Output::Json {
            return say(pretty(&tokens)?);
        }
        if tokens.is_empty() {
            complain(match &self.status {
                Some(status) => format!("No {status} service tokens found."),
                None => "No service tokens found. `callboard token create` creates one.".to_owned(),
            });
            return Ok(());
        }
        let head = ["ID", "STATUS", "ISSUED", "EXPIRES", "WORKSPACES", "NAME", "SCOPES"];
        table::print(head, tokens.into_iter().map(row).collect())
    }

    async fn all(&self, session: &Session) -> Result<Vec<ServiceTokenRecord>, Failure> {
        let status = self.status.as_deref();
        parts::all(session, async |part| session.client.service_tokens(status, part).await).await
    }
}

fn row(token: ServiceTokenRecord) -> [String; 7] {
    [
        token.id,
        token.status,
        token.issued.get(..10).unwrap_or(&token.issued).to_owned(),
        token.expires.as_deref().map_or_else(|| "never".to_owned(), minute),
        if token.workspaces.is_empty() { "all".to_owned() } else { token.workspaces.join(",") },
        token.name.unwrap_or_else(|| "-".to_owned()),
        if token.scopes.is_empty() { "none".to_owned() } else { token.scopes.join(",") },
    ]
}
