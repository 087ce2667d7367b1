//! The options of every client command, and the service that they lead to.

use std::convert::Infallible;
use std::sync::Arc;

use clap::Args;
use client::{Client, ClientError};
use config::Source;
use kernel::{Ids, Secret, SystemClock, SystemRandom};
use tokio::runtime::Runtime;

use crate::complaint::Complaint;
use crate::output::{Failure, Output};
use crate::profile;

/// Where the service is that nobody named.
const DEFAULT_API_URL: &str = "http://localhost:8000";

/// May stand before or behind the command; what stands behind wins.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every client command")]
pub(crate) struct ClientOptions {
    /// Table of ~/.config/callboard/config.toml that names address and token; `default` where it has one.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Address of the service; else SERVICE_API_URL, else the profile's, else http://localhost:8000.
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// Token to send; else SERVICE_SERVICE_TOKEN, else the profile's. Other users of a machine can see a flag.
    #[arg(long, value_name = "TOKEN", value_parser = secret)]
    service_token: Option<Secret>,
    /// How to print: human (unless given) or json.
    #[arg(long, value_enum, value_name = "FORM", hide_possible_values = true)]
    pub(crate) output: Option<Output>,
}

fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(text.to_owned().into())
}

/// A service, and how to tell the user of it.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) output: Output,
}

impl ClientOptions {
    /// These, and what stood before the command where these say nothing.
    #[must_use]
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            profile: self.profile.or(outer.profile),
            api_url: self.api_url.or(outer.api_url),
            service_token: self.service_token.or(outer.service_token),
            output: self.output.or(outer.output),
        }
    }

    pub(crate) fn output(&self) -> Output {
        self.output.unwrap_or_default()
    }

    /// For a command that talks to no service: an option without effect is a mistake.
    pub(crate) fn without_service(&self, command: &str) -> Result<(), Failure> {
        let given = [
            ("--profile", self.profile.is_some()),
            ("--api-url", self.api_url.is_some()),
            ("--service-token", self.service_token.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Failure::usage(format!(
                "{name} has no effect: `callboard {command}` talks to no service"
            ))),
            None => Ok(()),
        }
    }

    /// For a command that prints in one form only.
    pub(crate) fn without_output(&self, command: &str) -> Result<(), Failure> {
        self.without_service(command)?;
        match self.output {
            Some(_) => Err(Failure::usage(format!("--output has no effect on `callboard {command}`"))),
            None => Ok(()),
        }
    }

    /// The service: flag, environment, profile, default.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        let environment = config::Client::load(&Source::from_env())
            .map_err(|problems| Failure::usage(crate::commands::told(&problems)))?;
        let profile = profile::read(self.profile.as_deref())?;
        let api_url = self.api_url.clone();
        let api_url = api_url.or_else(|| environment.api_url.map(|url| url.as_str().to_owned()));
        let api_url = api_url.or(profile.api_url).unwrap_or_else(|| DEFAULT_API_URL.to_owned());
        let token = self.service_token.clone().or(environment.service_token).or(profile.service_token);
        // A thread's id is enough to go on with it, and a new cookie would make another visitor of us.
        let mut builder = Client::builder(&api_url).keep_cookies(false);
        if let Some(token) = token {
            builder = builder.service_token(token);
        }
        let client = builder.build().map_err(|error| Failure::from(Complaint::of(error, &api_url)))?;
        Ok(Session { client, output: self.output() })
    }
}

impl Session {
    /// What to tell the user of a failed call.
    pub(crate) fn failed(&self, error: ClientError) -> Failure {
        self.complaint(error).into()
    }

    pub(crate) fn complaint(&self, error: ClientError) -> Complaint {
        Complaint::of(error, self.client.base())
    }

    /// The service's address without a slash at the end.
    pub(crate) fn base(&self) -> &str {
        self.client.base().trim_end_matches('/')
    }
}

/// A key that no other request has.
pub(crate) fn new_key() -> Result<String, Failure> {
    let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    ids.uuid().map(|id| id.to_string()).map_err(|error| Failure::from(error.to_string()))
}

/// What client commands run on.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::from(format!("cannot start: {error}")))
}

/// Does the work of a client command.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime()?.block_on(work)
}
