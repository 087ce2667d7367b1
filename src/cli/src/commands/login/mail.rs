//! Sign-in by mail: the address, the code, the tokens.

use chrono::SecondsFormat;
use client::{Client, ClientError};
use serde_json::json;
use wire::{SignInStarted, SignedIn, StartSignIn, VerifyCode};

use super::{ask, keep, told_where, warn_of_environment};
use crate::complaint::Complaint;
use crate::options::Place;
use crate::output::{Failure, Output, complain, pretty, say};
use crate::profile::Held;
use crate::sign_in;
use crate::terminal::harmless;

/// So many codes the service looks at.
const TRIES: u32 = 5;

pub(super) async fn sign_in(
    place: &Place,
    client: &Client,
    email: Option<&str>,
    code_stdin: bool,
    output: Output,
) -> Result<(), Failure> {
    if !code_stdin && !ask::can_ask() {
        let told = "nobody can be asked for the code here; `callboard login <EMAIL> --code-stdin` reads it";
        return Err(Failure::usage(told));
    }
    // Before a mail is sent for nothing.
    Held::lock()?.draft(&place.name)?;
    let email = match email {
        Some(email) => email.to_owned(),
        None => ask::line("Mail address: ")?,
    };
    let failed = |error| Failure::from(Complaint::of(error, &place.api_url));
    let start = StartSignIn { email: email.clone(), return_to: None };
    let started = client.start_sign_in(&start).await.map_err(failed)?;
    if output == Output::Human {
        complain(format_args!(
            "If {} may sign in at {}, a mail with a code is on its way; the code is good for 10 minutes.",
            harmless(&email),
            place.api_url
        ));
    }
    let signed_in =
        show_code(client, started, &email, code_stdin).await.map_err(|failure| match failure {
            Shown::Refused(error) => failed(error),
            Shown::Left(failure) => failure,
        })?;
    let user = signed_in.user.clone();
    let fresh = sign_in::kept(signed_in, sign_in::now());
    let path = match keep(place, client, |draft| draft.keep_sign_in(&place.api_url, &fresh)).await {
        Ok(path) => path,
        Err(failure) => {
            // It would go on without anybody who has it.
            let _ = client.log_out(&fresh.refresh_token).await;
            return Err(failure);
        }
    };
    warn_of_environment(place);
    if output == Output::Json {
        let expires = fresh.access_expires.to_rfc3339_opts(SecondsFormat::Secs, true);
        let told = json!({
            "api_url": place.api_url, "profile": place.name, "user": user, "access_expires": expires,
        });
        return say(pretty(&told)?);
    }
    let who = user.email.as_deref().unwrap_or(&user.id);
    say(format_args!("Signed in at {} as {}.", place.api_url, harmless(who)))?;
    told_where(place, &path);
    Ok(())
}

enum Shown {
    Refused(ClientError),
    Left(Failure),
}

/// Shows the code; one that was mistyped is asked for again.
async fn show_code(
    client: &Client,
    started: SignInStarted,
    email: &str,
    code_stdin: bool,
) -> Result<SignedIn, Shown> {
    let mut shown =
        VerifyCode { challenge: Some(started.challenge), email: email.to_owned(), code: String::new() };
    let mut tries = 1;
    loop {
        shown.code = if code_stdin {
            let code = ask::first_line().map_err(Shown::Left)?.filter(|code| !code.is_empty());
            code.ok_or_else(|| Shown::Left(Failure::usage("there is no code on standard input")))?
        } else {
            ask::line("Code: ").map_err(Shown::Left)?
        };
        match client.verify_code(&shown).await {
            Ok(signed_in) => return Ok(signed_in),
            Err(error) if error.code() == Some("auth.code_invalid") && !code_stdin && tries < TRIES => {
                complain("This is not the code of the newest mail, or it is too old. Ctrl-C leaves.");
            }
            Err(error) => return Err(Shown::Refused(error)),
        }
        tries += 1;
    }
}
