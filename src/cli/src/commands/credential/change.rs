//! `callboard credential create`, `rotate` and `delete`.

use clap::Args;
use secrecy::ExposeSecret;
use wire::{CreateCredential, CredentialRecord, UpdateCredential};

use super::{From, found};
use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, pretty, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
#[command(
    after_help = "In a script: printf %s \"$KEY\" | callboard credential create stripe --provider stripe\n\
                  A graph refers to it as [[stripe]] in nodes that call other services, for example in the headers of an http_request."
)]
pub(crate) struct Create {
    /// Name for use in graphs: a letter, then letters, digits, spaces, `_`, `.` and `-`.
    name: String,
    /// Provider that the secret is for, such as stripe.
    #[arg(long)]
    provider: Option<String>,
    /// Description of the credential.
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Name or id of the credential.
    credential: String,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Name or id of the credential.
    credential: String,
    /// Confirm; the secret cannot be restored.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Create {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let new = CreateCredential {
            name: self.name.clone(),
            secret: self.from.read()?.expose_secret().to_owned(),
            provider: self.provider.clone(),
            description: self.description.clone(),
        };
        let made = session.client.create_credential(&new).await.map_err(|error| session.failed(error))?;
        told(session, &made, "Created credential")
    }
}

impl Rotate {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let known = found(session, &self.credential).await?;
        let secret = Some(self.from.read()?.expose_secret().to_owned());
        let change = UpdateCredential { secret, ..UpdateCredential::default() };
        let changed = session.client.change_credential(&known.id, &change).await;
        let changed = changed.map_err(|error| session.failed(error))?;
        told(session, &changed, "Updated credential")
    }
}

impl Delete {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let known = found(session, &self.credential).await?;
        let name = harmless(&known.name).into_owned();
        if !self.yes {
            return Err(Failure::usage(format!(
                "this deletes the secret of {name} permanently, and workflows that use it will fail; confirm with --yes"
            )));
        }
        session.client.delete_credential(&known.id).await.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return Ok(());
        }
        say(format_args!("Deleted credential {name}."))
    }
}

fn told(session: &Session, credential: &CredentialRecord, what: &str) -> Result<(), Failure> {
    if session.output == Output::Json {
        return say(pretty(credential)?);
    }
    let name = harmless(&credential.name);
    say(format_args!("{what} {name} ({}). Use [[{name}]] in graphs.", harmless(&credential.preview)))
}
