//! Sign-in by mail: the address, the code, the tokens.

use client::{Client, ClientError};
use wire::{SignInStarted, SignedIn, StartSignIn, VerifyCode};

use super::{ask, finish};
use crate::complaint::Complaint;
use crate::options::ServiceEndpoint;
use crate::output::{CommandError, Output, complain};
use crate::profile::ProfileLock;
use crate::terminal::harmless;

/// Codes that the service checks per sign-in.
const TRIES: u32 = 5;

pub(super) async fn sign_in(
    endpoint: &ServiceEndpoint,
    client: &Client,
    email: Option<&str>,
    code_stdin: bool,
    output: Output,
) -> Result<(), CommandError> {
    if !code_stdin && !ask::can_ask() {
        let told =
            "cannot prompt for the code without a terminal; `callboard login <EMAIL> --code-stdin` reads it";
        return Err(CommandError::usage(told));
    }
    // Fails before a useless mail is sent.
    ProfileLock::lock()?.draft(&endpoint.name)?;
    let email = match email {
        Some(email) => email.to_owned(),
        None => ask::line("Email address: ")?,
    };
    let failed = |error| CommandError::from(Complaint::from_client_error(error, &endpoint.api_url));
    let start = StartSignIn { email: email.clone(), return_to: None };
    let started = client.start_sign_in(&start).await.map_err(failed)?;
    if output == Output::Human {
        complain(format_args!(
            "If {} may sign in at {}, an email with a code is on its way, valid for 10 minutes. At most five are sent within 15 minutes.",
            harmless(&email),
            endpoint.api_url
        ));
    }
    let signed_in =
        show_code(client, started, &email, code_stdin).await.map_err(|failure| match failure {
            CodeError::Refused(error) => failed(error),
            CodeError::Left(failure) => failure,
        })?;
    finish(endpoint, client, signed_in, output).await
}

enum CodeError {
    Refused(ClientError),
    Left(CommandError),
}

/// Submits the code; asks again after a typo.
async fn show_code(
    client: &Client,
    started: SignInStarted,
    email: &str,
    code_stdin: bool,
) -> Result<SignedIn, CodeError> {
    let mut shown =
        VerifyCode { challenge: Some(started.challenge), email: email.to_owned(), code: String::new() };
    let mut tries = 1;
    loop {
        shown.code = if code_stdin {
            let code = ask::first_line().map_err(CodeError::Left)?.filter(|code| !code.is_empty());
            code.ok_or_else(|| CodeError::Left(CommandError::usage("no code on standard input")))?
        } else {
            ask::line("Code: ").map_err(CodeError::Left)?
        };
        match client.verify_code(&shown).await {
            Ok(signed_in) => return Ok(signed_in),
            Err(error) if error.code() == Some("auth.code_invalid") && !code_stdin && tries < TRIES => {
                complain("This is not the code of the newest email, or it has expired. Ctrl-C exits.");
            }
            Err(error) => return Err(CodeError::Refused(error)),
        }
        tries += 1;
    }
}
