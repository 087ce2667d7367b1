//! `callboard credential create`, `rotate` and `delete`.

use clap::Args;
use secrecy::ExposeSecret;
use wire::{CreateCredential, CredentialRecord, UpdateCredential};

use super::{From, found};
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
#[command(
    after_help = "In a script: printf %s \"$KEY\" | callboard credential create stripe --provider stripe\n\
                  A graph refers to it as [[stripe]] in nodes that call other services, for example in the headers of an http_request."
)]
pub(crate) struct CreateCredentialArgs {
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
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Name or id of the credential.
    credential: String,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteCredential {
    /// Name or id of the credential.
    credential: String,
    /// Confirm; the secret cannot be restored.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl CreateCredentialArgs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let new = CreateCredential {
            name: self.name.clone(),
            secret: self.from.read()?.expose_secret().to_owned(),
            provider: self.provider.clone(),
            description: self.description.clone(),
        };
        let made = session.received(session.client.create_credential(&new).await)?;
        told(session, &made, "Created credential")
    }
}

impl Rotate {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let known = found(session, &self.credential).await?;
        let secret = Some(self.from.read()?.expose_secret().to_owned());
        let change = UpdateCredential { secret, ..UpdateCredential::default() };
        let changed = session.received(session.client.change_credential(&known.id, &change).await)?;
        told(session, &changed, "Updated credential")
    }
}

impl DeleteCredential {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let known = found(session, &self.credential).await?;
        let name = harmless(&known.name).into_owned();
        if !self.yes {
            return Err(CommandError::usage(format!(
                "this deletes the secret of {name} permanently, and workflows that use it will fail; confirm with --yes"
            )));
        }
        session.received(session.client.delete_credential(&known.id).await)?;
        session.output.say(format_args!("Deleted credential {name}."))
    }
}

fn told(session: &ServiceSession, credential: &CredentialRecord, what: &str) -> Result<(), CommandError> {
    let (name, preview) = (harmless(&credential.name), harmless(&credential.preview));
    session
        .output
        .print(credential, || say(format_args!("{what} {name} ({preview}). Use [[{name}]] in graphs.")))
}
