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
                  A graph then says [[stripe]] where a node calls others: in the headers of an http_request, say."
)]
pub(crate) struct Create {
    /// How graphs name it: a letter, then letters, digits, blanks, `_`, `.` and `-`.
    name: String,
    /// Whom it is for, such as stripe.
    #[arg(long)]
    provider: Option<String>,
    /// For people.
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
    /// Do it: nothing brings the secret back.
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
                "this deletes the secret of {name} for good, and workflows that name it fail; say --yes to do it"
            )));
        }
        session.client.delete_credential(&known.id).await.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return Ok(());
        }
        say(format_args!("The credential {name} is gone."))
    }
}

fn told(session: &Session, credential: &CredentialRecord, what: &str) -> Result<(), Failure> {
    if session.output == Output::Json {
        return say(pretty(credential)?);
    }
    let name = harmless(&credential.name);
    say(format_args!("{what} {name} ({}). Graphs name it [[{name}]].", harmless(&credential.preview)))
}
