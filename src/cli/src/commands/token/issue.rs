//! `callboard token create` and `callboard token rotate`: the commands that issue secrets.

use clap::Args;
use wire::{AccessChange, CreateServiceToken, IssuedServiceToken, RotateServiceToken};

use super::show::named;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::table::second;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
#[command(after_help = "In a script: TOKEN=$(callboard token create --scope workflows:read)\n\
                  docs/ACCESS.md lists the scopes. A token cannot have a scope that its creator lacks.\n\
                  The first token of a service without credentials turns authentication on. A token with every scope is then created \
                  first, and its secret is printed on standard error.")]
pub(crate) struct CreateTokenArgs {
    /// A label for people; need not be unique.
    #[arg(long)]
    name: Option<String>,
    /// A scope of the token, such as `workflows:execute`; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Slug or id of a workspace that it is valid for; may be given several times (default: all workspaces).
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    workspaces: Vec<String>,
    /// Seconds until it expires, such as 86400 for a day; without it, never.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    expires_in: Option<i64>,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Id of the token.
    id: String,
    /// Seconds for which the previous secret stays valid.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    overlap: i64,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

fn seconds(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "write seconds, such as 86400 for a day".to_owned())
}

impl CreateTokenArgs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = CreateServiceToken {
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            workspaces: self.workspaces.clone(),
            expires_in: self.expires_in,
        };
        let made = session.client.create_service_token(&wanted).await;
        let made = made.map_err(|error| self.refused(session.complaint(error)))?;
        if session.output == Output::Json {
            return say(pretty(&made)?);
        }
        if let Some(change) = &made.access_change {
            explain(change);
        }
        complain(format_args!("Created service token {}.", named(&made.issued.token)));
        if made.issued.token.scopes.is_empty() {
            let told = "It has no scopes, so it has no permissions, and scopes cannot be added later: create one with --scope.";
            complain(Paint::stderr().warning(told));
        }
        hand_out(session, &made.issued)
    }

    /// Members of some workspaces may not issue tokens for all workspaces.
    fn refused(&self, complaint: Complaint) -> CommandError {
        let everywhere = self.workspaces.is_empty();
        match complaint.code() {
            Some("auth.workspace_forbidden") if everywhere => {
                complaint.hint("Your access does not include all workspaces: choose the token's workspaces with --workspace.").into()
            }
            _ => complaint.into(),
        }
    }
}

impl Rotate {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = RotateServiceToken { overlap_seconds: self.overlap };
        let rotated = session.received(session.client.rotate_service_token(&self.id, &wanted).await)?;
        if session.output == Output::Human {
            let before = match self.overlap {
                0 => "the previous one is no longer valid".to_owned(),
                seconds => format!("the previous one stays valid for {seconds} s"),
            };
            complain(format_args!("Rotated service token {}; {before}.", named(&rotated.token)));
        }
        hand_out(session, &rotated)
    }
}

/// Reports that authentication is now required, and prints the secret that keeps the user's access.
fn explain(change: &AccessChange) {
    complain(Paint::stderr().warning(&change.message));
    if let Some(admin) = &change.admin_token {
        let name = named(&admin.token);
        complain(format_args!(
            "First created service token {name} with every scope. Store its secret, it is shown only once:"
        ));
        complain(harmless(&admin.secret));
    }
}

/// Only the secret goes to standard output, so that a script can read it.
fn hand_out(session: &ServiceSession, issued: &IssuedServiceToken) -> Result<(), CommandError> {
    if session.output == Output::Json {
        return say(pretty(issued)?);
    }
    let until = match &issued.token.expires {
        Some(at) => format!("It expires at {}.", second(at)),
        None => "It does not expire.".to_owned(),
    };
    complain(format_args!("{} The secret is shown only once:", harmless(&until)));
    say(&issued.secret)
}
