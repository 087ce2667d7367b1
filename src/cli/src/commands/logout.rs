//! `callboard logout`: ends the sign-in.

use clap::Args;
use serde_json::json;

use super::whoami::service_token_id;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, block_on};
use crate::output::{CommandError, Output, complain, say};
use crate::profile::{self, ProfileLock};
use crate::terminal::Paint;

#[derive(Debug, Args)]
#[command(
    after_help = "A service token stays valid without the profile; `callboard token revoke` revokes one."
)]
pub(crate) struct Logout {
    /// End all your sign-ins, in browsers and terminals
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    options: ClientOptions,
}

impl Logout {
    /// Returns the outcome, and the output format for errors.
    pub(crate) fn run(self, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
        let options = self.options.or(outer);
        (options.output(), block_on(leave(&options, self.everywhere)))
    }
}

async fn leave(options: &ClientOptions, everywhere: bool) -> Result<(), CommandError> {
    let (endpoint, client) = options.endpoint_to_sign_in("logout")?;
    let (base, name) = (&endpoint.api_url, &endpoint.name);
    let held = (endpoint.profile.sign_in.is_some() || endpoint.profile.service_token.is_some())
        .then(ProfileLock::lock)
        .transpose()?;
    let current = profile::read_if_any(name)?;
    let done = match (&held, &current.sign_in, &current.service_token) {
        (Some(held), Some(sign_in), _) => {
            let draft = held.draft(name)?;
            let token = &sign_in.refresh_token;
            let ended =
                if everywhere { client.log_out_everywhere(token).await } else { client.log_out(token).await };
            ended.map_err(|error| {
                CommandError::from(
                    Complaint::from_client_error(error, base)
                        .hint("Nothing was changed: the sign-in is still active."),
                )
            })?;
            draft.keep_nothing()?;
            if everywhere {
                format!("Signed out everywhere at {base}.")
            } else {
                format!("Signed out at {base}.")
            }
        }
        (Some(held), None, Some(token)) => {
            held.draft(name)?.keep_nothing()?;
            let id = service_token_id(token);
            let revoke = format!("callboard token revoke {} --reason …", id.as_deref().unwrap_or("<id>"));
            complain(
                Paint::stderr().dim(format_args!("The token itself stays valid; to revoke it: {revoke}")),
            );
            format!("Removed the service token from the profile [{name}].")
        }
        _ => format!("The profile [{name}] has no sign-in."),
    };
    let record = json!({"api_url": base, "profile": name, "signed_in": false});
    options.output().print(&record, || say(done))
}
