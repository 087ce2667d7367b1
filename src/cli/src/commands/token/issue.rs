//! `callboard token create` and `callboard token rotate`: what hands a secret out.

use clap::Args;
use wire::{CreateServiceToken, IssuedServiceToken, RotateServiceToken};

use super::show::named;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::table::second;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
#[command(after_help = "In a script: TOKEN=$(callboard token create --scope workflows:read)\n\
                  docs/ACCESS.md lists the scopes. Nobody makes a token with a scope that they lack.")]
pub(crate) struct Create {
    /// A label for people; need not be unique.
    #[arg(long)]
    name: Option<String>,
    /// What it may do, such as `workflows:execute`; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Slug or id of a workspace that it is good for; may be given several times. Without any it is good for all.
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
    /// Seconds for which the secret before stays good beside the new one.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    overlap: i64,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

fn seconds(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "write seconds, such as 86400 for a day".to_owned())
}

impl Create {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let wanted = CreateServiceToken {
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            workspaces: self.workspaces.clone(),
            expires_in: self.expires_in,
        };
        let made = session.client.create_service_token(&wanted).await;
        let made = made.map_err(|error| self.refused(session.complaint(error)))?;
        if session.output == Output::Human {
            complain(format_args!("Made the service token {}.", named(&made.token)));
            if made.token.scopes.is_empty() {
                let told = "It has no scope, so it may do nothing: --scope gives one, and none can be added.";
                complain(Paint::stderr().warning(told));
            }
        }
        hand_out(session, &made)
    }

    /// Good for all workspaces is more than those have who belong to some.
    fn refused(&self, complaint: Complaint) -> Failure {
        let everywhere = self.workspaces.is_empty();
        match complaint.code() {
            Some("auth.workspace_forbidden") if everywhere => {
                complaint.hint("Your own reach is not all workspaces, so a token's must be said: name it with --workspace.").into()
            }
            _ => complaint.into(),
        }
    }
}

impl Rotate {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let wanted = RotateServiceToken { overlap_seconds: self.overlap };
        let rotated = session.client.rotate_service_token(&self.id, &wanted).await;
        let rotated = rotated.map_err(|error| session.failed(error))?;
        if session.output == Output::Human {
            let before = match self.overlap {
                0 => "the one before is refused from now on".to_owned(),
                seconds => format!("the one before is good for another {seconds} s"),
            };
            complain(format_args!("The service token {} has a new secret; {before}.", named(&rotated.token)));
        }
        hand_out(session, &rotated)
    }
}

/// The secret alone goes to standard output, so that a script may take it.
fn hand_out(session: &Session, issued: &IssuedServiceToken) -> Result<(), Failure> {
    if session.output == Output::Json {
        return say(pretty(issued)?);
    }
    let until = match &issued.token.expires {
        Some(at) => format!("It expires at {}.", second(at)),
        None => "It does not expire.".to_owned(),
    };
    complain(format_args!("{} Its secret is shown this once:", harmless(&until)));
    say(&issued.secret)
}
