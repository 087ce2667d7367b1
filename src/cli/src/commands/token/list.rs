//! `callboard token list`.

use clap::Args;
use wire::ServiceTokenRecord;

use crate::options::{ClientOptions, ServiceSession};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, minute};

#[derive(Debug, Args)]
pub(crate) struct ListTokens {
    /// Only tokens with this status.
    #[arg(long, value_parser = ["active", "revoked", "expired"])]
    status: Option<String>,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl ListTokens {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let tokens = self.all(session).await?;
        table::print_list(
            session.output,
            tokens,
            match &self.status {
                Some(status) => format!("No {status} service tokens found."),
                None => "No service tokens found. `callboard token create` creates one.".to_owned(),
            },
            ["ID", "STATUS", "ISSUED", "EXPIRES", "WORKSPACES", "NAME", "SCOPES"],
            row,
        )
    }

    async fn all(&self, session: &ServiceSession) -> Result<Vec<ServiceTokenRecord>, CommandError> {
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
