//! `callboard login`: signs in to a service.

mod ask;
mod browser;
mod mail;

pub(super) use self::ask::hidden;
use std::path::Path;

use chrono::SecondsFormat;
use clap::Args;
use client::Client;
use kernel::Secret;
use serde_json::json;
use wire::SignedIn;

use super::whoami::Identity;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, ServiceEndpoint, block_on};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::profile::{self, ProfileLock};
use crate::sign_in;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
#[command(
    after_help = "Sends an email with a six-digit code and prompts for it. The tokens are kept in the profile file, \
                  which\nonly you can read, and commands renew them; `callboard logout` ends the sign-in."
)]
pub(crate) struct Login {
    /// Email address to sign in with; prompted for unless given.
    email: Option<String>,
    /// Read the code from standard input instead of a prompt.
    #[arg(long, requires = "email")]
    code_stdin: bool,
    /// Sign in with a code from the service's page /login, for example after a sign-in with a provider. Prompted for, or
    /// read from standard input.
    #[arg(long, conflicts_with_all = ["email", "code_stdin", "token"])]
    browser: bool,
    /// Store a service token instead, read from standard input, because other users can see arguments.
    #[arg(long, conflicts_with_all = ["email", "code_stdin"])]
    token: bool,
    #[command(flatten)]
    options: ClientOptions,
}

impl Login {
    /// Returns the outcome, and the output format for errors.
    pub(crate) fn run(self, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
        let options = self.options.clone().or(outer);
        let work = || {
            let (endpoint, client) = options.endpoint_to_sign_in("login")?;
            if self.token {
                return block_on(keep_token(&endpoint, &client, options.output()));
            }
            if endpoint.profile.service_token.is_some() {
                let name = &endpoint.name;
                return Err(CommandError::usage(format!(
                    "the profile [{name}] has a service token; `callboard logout` removes it, --profile selects another profile"
                )));
            }
            if self.browser {
                return block_on(browser::sign_in(&endpoint, &client, options.output()));
            }
            block_on(mail::sign_in(
                &endpoint,
                &client,
                self.email.as_deref(),
                self.code_stdin,
                options.output(),
            ))
        };
        (options.output(), work())
    }
}

/// Stores a service token that the service accepts.
async fn keep_token(endpoint: &ServiceEndpoint, client: &Client, output: Output) -> Result<(), CommandError> {
    ProfileLock::lock()?.draft(&endpoint.name)?;
    let token = ask::secret("Service token (hidden): ")?;
    let failed = |error| CommandError::from(Complaint::from_client_error(error, &endpoint.api_url));
    let sender = Client::builder(&endpoint.api_url).keep_cookies(false).service_token(token.clone());
    let identity = Identity::for_token(&sender.build().map_err(failed)?, &token).await.map_err(failed)?;
    let Some(identity) = identity else {
        let told = format!("{} does not accept this token.", endpoint.api_url);
        return Err(Complaint::failed(told).coded("client.unknown_token").refused().into());
    };
    let path = keep(endpoint, client, |draft| draft.keep_token(&endpoint.api_url, &token)).await?;
    warn_of_environment(endpoint);
    if output == Output::Json {
        return say(pretty(
            &json!({"api_url": endpoint.api_url, "profile": endpoint.name, "identity": identity}),
        )?);
    }
    say(format_args!("Stored a token for {}: {}.", endpoint.api_url, harmless(&identity.title())))?;
    told_where(endpoint, &path);
    Ok(())
}

/// Stores a new sign-in and prints its user.
async fn finish(
    endpoint: &ServiceEndpoint,
    client: &Client,
    signed_in: SignedIn,
    output: Output,
) -> Result<(), CommandError> {
    let user = signed_in.user.clone();
    let fresh = sign_in::kept(signed_in, sign_in::now());
    let path = match keep(endpoint, client, |draft| draft.keep_sign_in(&endpoint.api_url, &fresh)).await {
        Ok(path) => path,
        Err(failure) => {
            // Otherwise the sign-in would remain active without an owner.
            let _ = client.log_out(&fresh.refresh_token).await;
            return Err(failure);
        }
    };
    warn_of_environment(endpoint);
    if output == Output::Json {
        let expires = fresh.access_expires.to_rfc3339_opts(SecondsFormat::Secs, true);
        let told = json!({
            "api_url": endpoint.api_url, "profile": endpoint.name, "user": user, "access_expires": expires,
        });
        return say(pretty(&told)?);
    }
    let who = user.email.as_deref().unwrap_or(&user.id);
    say(format_args!("Signed in at {} as {}.", endpoint.api_url, harmless(who)))?;
    told_where(endpoint, &path);
    Ok(())
}

/// Writes the profile; ends the sign-in that it contained.
async fn keep(
    endpoint: &ServiceEndpoint,
    client: &Client,
    write: impl FnOnce(profile::Draft) -> Result<(), CommandError>,
) -> Result<std::path::PathBuf, CommandError> {
    let held = ProfileLock::lock()?;
    let before = profile::read_if_any(&endpoint.name)?.sign_in;
    write(held.draft(&endpoint.name)?)?;
    if let Some(before) = before {
        // The old sign-in is not stored anymore, and expires even if this fails.
        let _ = client.log_out(&before.refresh_token).await;
    }
    Ok(held.path().to_owned())
}

fn told_where(endpoint: &ServiceEndpoint, path: &Path) {
    let told = match endpoint.name.as_str() {
        profile::DEFAULT => format!("Stored in {}.", path.display()),
        name => format!("Stored in {}; --profile {name} uses it.", path.display()),
    };
    complain(Paint::stderr().dim(told));
}

/// While the environment contains a token, commands do not send the stored one.
fn warn_of_environment(endpoint: &ServiceEndpoint) {
    if endpoint.environment.is_some() {
        let told = "SERVICE_SERVICE_TOKEN is set: commands send that token instead of the stored one.";
        complain(Paint::stderr().warning(told));
    }
}

/// Parses a token; an unusable text is a usage error.
fn token_of(text: &str) -> Result<Secret, CommandError> {
    let token = text.trim();
    if token.is_empty() {
        return Err(CommandError::usage("standard input is empty"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CommandError::usage(
            "standard input is not a token or code: it contains white space or characters that are not allowed",
        ));
    }
    Ok(token.to_owned().into())
}
