//! `callboard credential …` and `callboard vault …`: secrets that graphs reference as `[[name]]`.

mod change;
mod list;
mod vault;

use clap::Subcommand;
use kernel::Secret;
use secrecy::ExposeSecret;
use wire::CredentialRecord;

use crate::options::{ClientOptions, Session, in_workspace, with_session};
use crate::output::{Failure, Output};
use crate::parts;
use crate::terminal::harmless;

/// Manage credentials. A credential is identified by its name or its id. Secrets are never arguments, because other users
/// of the machine can see those.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// List the credentials of the workspace, newest first, without their secrets.
    List(list::List),
    /// Create a credential with a secret from standard input or a prompt.
    Create(change::Create),
    /// Replace the secret of a credential. Workflows use the new secret from their next call.
    Rotate(change::Rotate),
    /// Delete a credential permanently. Workflows that use it will fail.
    Delete(change::Delete),
}

/// Manage the vault as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum VaultCommand {
    /// Encrypt all secrets with the active key of SERVICE_VAULT_KEYS, so that older keys can be removed.
    Rotate(vault::Rotate),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: CredentialCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    match command {
        CredentialCommand::List(command) => in_workspace!(command, outer),
        CredentialCommand::Create(command) => in_workspace!(command, outer),
        CredentialCommand::Rotate(command) => in_workspace!(command, outer),
        CredentialCommand::Delete(command) => in_workspace!(command, outer),
    }
}

/// Like [`run`], for the vault.
pub(crate) fn run_vault(command: VaultCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    match command {
        VaultCommand::Rotate(command) => with_session!(command, outer),
    }
}

/// The source of a secret.
#[derive(Debug, clap::Args)]
pub(crate) struct From {
    /// Read the secret from this environment variable.
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
}

impl From {
    /// Reads the secret without its trailing line break.
    pub(crate) fn read(&self) -> Result<Secret, Failure> {
        let text = match &self.from_env {
            Some(name) => std::env::var(name)
                .map_err(|_| {
                    Failure::usage(format!("the environment variable {} is not set", harmless(name)))
                })?
                .into(),
            None => super::login::hidden("Secret: ")?,
        };
        let secret = text.expose_secret().trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            let message = "no secret given; send it on standard input, or name a variable with --from-env";
            return Err(Failure::usage(message));
        }
        Ok(secret.to_owned().into())
    }
}

/// Finds a credential by name, id, or unique id prefix.
async fn found(session: &Session, name: &str) -> Result<CredentialRecord, Failure> {
    let all = parts::all(session, async |part| session.client.credentials(part).await).await?;
    let near = wire::nearest(name, all.iter().map(|known| known.name.as_str())).map(str::to_owned);
    let mut beginning = all.iter().filter(|known| known.id.starts_with(name));
    let only = beginning.next().filter(|_| beginning.next().is_none()).cloned();
    let found = all.into_iter().find(|known| known.name == name || known.id == name);
    found.or(only.filter(|_| !name.is_empty())).ok_or_else(|| {
        let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        Failure::from(format!("credential '{}' not found in this workspace{near}", harmless(name)))
    })
}
