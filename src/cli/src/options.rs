//! Options that all client commands share, and the service that they select.

use std::convert::Infallible;
use std::sync::Arc;

use clap::Args;
use client::{Client, ClientError};
use config::Source;
use kernel::{Ids, Secret, SystemClock, SystemRandom};
use tokio::runtime::Runtime;

use crate::complaint::Complaint;
use crate::output::{CommandError, Output};
use crate::profile::{self, Profile, SignIn};
use crate::sign_in;

/// The default service address.
const DEFAULT_API_URL: &str = "http://localhost:8000";

/// Help heading for these options. Each option names it, because a group heading would also apply to options that a
/// command declares later.
pub(crate) const HELP_HEADING: &str = "Options of every client command";

/// Accepted before or after the command; the latter wins.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ClientOptions {
    /// Profile: table of ~/.config/callboard/config.toml with address and token (default: `default`, if it exists).
    #[arg(long, help_heading = HELP_HEADING, value_name = "NAME")]
    profile: Option<String>,
    /// Address of the service (default: SERVICE_API_URL, the profile's, or http://localhost:8000).
    #[arg(long, help_heading = HELP_HEADING, value_name = "URL")]
    api_url: Option<String>,
    /// Token to send (default: SERVICE_SERVICE_TOKEN or the profile's). Other users of the machine can see arguments.
    #[arg(long, help_heading = HELP_HEADING, value_name = "TOKEN", value_parser = secret)]
    service_token: Option<Secret>,
    /// Output format: human (default) or json.
    #[arg(long, help_heading = HELP_HEADING, value_enum, value_name = "FORM", hide_possible_values = true)]
    output: Option<Output>,
    /// Print JSON: the same as `--output json`.
    #[arg(long, help_heading = HELP_HEADING, conflicts_with = "output")]
    json: bool,
}

/// The output format of a command without a service.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Form {
    /// Output format: human (default) or json.
    #[arg(long, value_enum, value_name = "FORM", hide_possible_values = true)]
    output: Option<Output>,
    /// Print JSON: the same as `--output json`.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl Form {
    /// The chosen format, or else the format given before the command.
    pub(crate) fn or(&self, outer: &ClientOptions) -> Output {
        chosen(self.json, self.output).or(outer.form()).unwrap_or_default()
    }
}

fn chosen(json: bool, output: Option<Output>) -> Option<Output> {
    if json { Some(Output::Json) } else { output }
}

/// Options of a client command that works in a workspace.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WorkspaceOptions {
    /// Slug of the workspace (default: the profile's `workspace`). Required only if you belong to several.
    #[arg(long, value_name = "SLUG", help_heading = HELP_HEADING)]
    workspace: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

impl WorkspaceOptions {
    /// These options; unset ones are taken from before the command.
    #[must_use]
    pub(crate) fn or(self, outer: ClientOptions) -> Self {
        Self { workspace: self.workspace, client: self.client.or(outer) }
    }

    /// Like [`Self::or`], if the outer command works in a workspace, too.
    #[must_use]
    pub(crate) fn or_workspace(self, outer: Self) -> Self {
        Self { workspace: self.workspace.or(outer.workspace), client: self.client.or(outer.client) }
    }

    pub(crate) fn output(&self) -> Output {
        self.client.output()
    }

    /// Opens the service, with the workspace from flag or profile.
    pub(crate) fn session(&self) -> Result<ServiceSession, CommandError> {
        self.client.open(|profile| self.workspace.clone().or_else(|| profile.workspace.clone()))
    }
}

fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(text.to_owned().into())
}

/// A connection to a service, and the means to report its errors.
pub(crate) struct ServiceSession {
    pub(crate) client: Client,
    pub(crate) output: Output,
    pub(crate) sent: PresentedCredential,
    /// The sign-in whose access token is sent.
    pub(crate) sign_in: Option<SignIn>,
    /// The profile's name.
    pub(crate) profile: String,
}

impl ClientOptions {
    /// These options; unset ones are taken from before the command.
    #[must_use]
    pub(crate) fn or(self, outer: Self) -> Self {
        let output = self.form().or(outer.form());
        Self {
            profile: self.profile.or(outer.profile),
            api_url: self.api_url.or(outer.api_url),
            service_token: self.service_token.or(outer.service_token),
            output,
            json: false,
        }
    }

    fn form(&self) -> Option<Output> {
        chosen(self.json, self.output)
    }

    pub(crate) fn output(&self) -> Output {
        self.form().unwrap_or_default()
    }

    /// Checks that a command without a service has no client options, because an option without effect is a mistake.
    pub(crate) fn without_service(&self, command: &str) -> Result<(), CommandError> {
        let given = [
            ("--profile", self.profile.is_some()),
            ("--api-url", self.api_url.is_some()),
            ("--service-token", self.service_token.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(CommandError::usage(format!(
                "{name} has no effect: `callboard {command}` does not call a service"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that a command with a single output format has no output option.
    pub(crate) fn without_output(&self, command: &str) -> Result<(), CommandError> {
        self.without_service(command)?;
        let given = if self.json { "--json" } else { "--output" };
        match self.form() {
            Some(_) => Err(CommandError::usage(format!(
                "{given} has no effect on `callboard {command}`, which has only one output format"
            ))),
            None => Ok(()),
        }
    }

    /// Opens the service from flag, environment, profile or default.
    pub(crate) fn session(&self) -> Result<ServiceSession, CommandError> {
        self.open(|_| None)
    }

    fn open(
        &self,
        workspace: impl FnOnce(&Profile) -> Option<String>,
    ) -> Result<ServiceSession, CommandError> {
        let endpoint = self.endpoint(profile::read(self.profile.as_deref())?)?;
        let workspace = workspace(&endpoint.profile);
        let builder = || {
            // Continuing a thread needs only its id, and a new cookie would create another visitor.
            let builder = Client::builder(&endpoint.api_url).keep_cookies(false).complete_ids(true);
            match &workspace {
                Some(slug) => builder.header("x-workspace", slug),
                None => builder,
            }
        };
        let failed = |error| CommandError::from(Complaint::from_client_error(error, &endpoint.api_url));
        let anonymous = builder().build().map_err(failed)?;
        let (sent, sign_in) = endpoint.sent(&anonymous)?;
        let client = match &sent {
            PresentedCredential::Nothing => anonymous,
            PresentedCredential::Token { token, .. } => {
                builder().service_token(token.clone()).build().map_err(failed)?
            }
        };
        Ok(ServiceSession { client, output: self.output(), sent, sign_in, profile: endpoint.name })
    }

    /// The service for a command that changes the sign-in. The profile may not exist yet.
    pub(crate) fn endpoint_to_sign_in(
        &self,
        command: &str,
    ) -> Result<(ServiceEndpoint, Client), CommandError> {
        if self.service_token.is_some() {
            let told = format!("--service-token has no effect on `callboard {command}`");
            return Err(CommandError::usage(told));
        }
        let name = self.profile.as_deref().unwrap_or(profile::DEFAULT);
        let endpoint = self.endpoint(profile::read_if_any(name)?)?;
        let client = Client::builder(&endpoint.api_url).keep_cookies(false).build();
        let client = client
            .map_err(|error| CommandError::from(Complaint::from_client_error(error, &endpoint.api_url)))?;
        match &endpoint.profile.api_url {
            Some(other) if !client.is_at(other) => Err(CommandError::usage(format!(
                "the profile [{name}] is for {other}, not for {}; choose another one with --profile",
                endpoint.api_url
            ))),
            _ => Ok((endpoint, client)),
        }
    }

    fn endpoint(&self, profile: Profile) -> Result<ServiceEndpoint, CommandError> {
        let environment = config::Client::load(&Source::from_environment())
            .map_err(|problems| CommandError::usage(crate::commands::told(&problems)))?;
        let api_url = self.api_url.clone();
        let api_url = api_url.or_else(|| environment.api_url.map(|url| url.as_str().to_owned()));
        let api_url = api_url.or_else(|| profile.api_url.clone());
        Ok(ServiceEndpoint {
            api_url: api_url.unwrap_or_else(|| DEFAULT_API_URL.to_owned()),
            name: self.profile.clone().unwrap_or_else(|| profile::DEFAULT.to_owned()),
            flag: self.service_token.clone(),
            environment: environment.service_token,
            profile,
        })
    }
}

/// An address, and the credentials that may be sent there.
pub(crate) struct ServiceEndpoint {
    pub(crate) api_url: String,
    /// The profile's name.
    pub(crate) name: String,
    flag: Option<Secret>,
    pub(crate) environment: Option<Secret>,
    pub(crate) profile: Profile,
}

/// The credentials that a command sends.
pub(crate) enum PresentedCredential {
    Nothing,
    Token { token: Secret, from: TokenOrigin },
}

/// The source of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    Flag,
    Environment,
    Profile,
    SignIn,
}

impl ServiceEndpoint {
    fn sent(&self, anonymous: &Client) -> Result<(PresentedCredential, Option<SignIn>), CommandError> {
        // A profile's token must not be sent to another service.
        let own = self.profile.api_url.as_deref();
        let kept = self.profile.service_token.clone().filter(|_| own.is_none_or(|own| anonymous.is_at(own)));
        let given = [
            (&self.flag, TokenOrigin::Flag),
            (&self.environment, TokenOrigin::Environment),
            (&kept, TokenOrigin::Profile),
        ];
        if let Some((token, from)) = given.into_iter().find_map(|(token, from)| Some((token.clone()?, from)))
        {
            return Ok((PresentedCredential::Token { token, from }, None));
        }
        match &self.profile.sign_in {
            Some(sign_in) if own.is_some_and(|own| anonymous.is_at(own)) => {
                let sign_in = block_on(sign_in::good(anonymous, &self.name, sign_in))?;
                let token = sign_in.access_token.clone();
                Ok((PresentedCredential::Token { token, from: TokenOrigin::SignIn }, Some(sign_in)))
            }
            _ => Ok((PresentedCredential::Nothing, None)),
        }
    }
}

impl ServiceSession {
    /// Creates a session without credentials.
    pub(crate) fn anonymous(client: Client, output: Output) -> Self {
        Self {
            client,
            output,
            sent: PresentedCredential::Nothing,
            sign_in: None,
            profile: profile::DEFAULT.to_owned(),
        }
    }

    /// Returns a response, or converts its error.
    pub(crate) fn received<T>(&self, response: Result<T, ClientError>) -> Result<T, CommandError> {
        response.map_err(|error| self.failed(error))
    }

    /// Converts a client error to a command error.
    pub(crate) fn failed(&self, error: ClientError) -> CommandError {
        self.complaint(error).into()
    }

    pub(crate) fn complaint(&self, error: ClientError) -> Complaint {
        Complaint::from_client_error(error, self.client.base())
    }

    /// The service's address without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        self.client.base().trim_end_matches('/')
    }
}

/// Runs a command with a session; returns the outcome, and the output format for errors. The command's options take
/// precedence over those of the outer command.
macro_rules! with_session {
    ($command:expr, $outer:expr) => {
        $crate::options::with_session!($command, $command.options, $outer)
    };
    ($command:expr, $options:expr, $outer:expr) => {{
        let options = $options.clone().or($outer);
        let outcome = options.session().and_then(|session| $crate::options::block_on($command.run(&session)));
        (options.output(), outcome)
    }};
}

/// Like `with_session`, for a command that may outlast its access token.
macro_rules! with_renewing_session {
    ($command:expr, $options:expr, $outer:expr) => {{
        let options = $options.clone().or($outer);
        let outcome = options.session().and_then(|session| {
            let work = $command.run(&session);
            $crate::options::block_on($crate::sign_in::renewing(&session, work))
        });
        (options.output(), outcome)
    }};
}

pub(crate) use {with_renewing_session, with_session};

/// A unique idempotency key.
pub(crate) fn new_key() -> Result<String, CommandError> {
    let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    ids.uuid().map(|id| id.to_string()).map_err(|error| CommandError::from(error.to_string()))
}

/// The runtime for client commands.
pub(crate) fn runtime() -> Result<Runtime, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandError::from(format!("cannot start: {error}")))
}

/// Runs a client command's future.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    runtime()?.block_on(work)
}
