//! `callboard credential …` and `callboard vault …`: secrets that graphs reference as `[[name]]`.

mod change;
mod list;
mod vault;

use clap::Subcommand;
use kernel::Secret;
use secrecy::ExposeSecret;
use wire::CredentialRecord;

use crate::options::{ClientOptions, ServiceSession, with_session};
use crate::output::{CommandError, Output};
use crate::parts;
use crate::terminal::harmless;

/// Manage credentials. A credential is identified by its name or its id. Secrets are never arguments, because other users
/// of the machine can see those.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// List the credentials of the workspace, newest first, without their secrets.
    List(list::ListCredentials),
    /// Create a credential with a secret from standard input or a prompt.
    Create(change::CreateCredentialArgs),
    /// Replace the secret of a credential. Workflows use the new secret from their next call.
    Rotate(change::Rotate),
    /// Delete a credential permanently. Workflows that use it will fail.
    Delete(change::DeleteCredential),
}

/// Manage the vault as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum VaultCommand {
    /// Encrypt all secrets with the active key of SERVICE_VAULT_KEYS, so that older keys can be removed.
    Rotate(vault::Rotate),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: CredentialCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        CredentialCommand::List(command) => with_session!(command, outer),
        CredentialCommand::Create(command) => with_session!(command, outer),
        CredentialCommand::Rotate(command) => with_session!(command, outer),
        CredentialCommand::Delete(command) => with_session!(command, outer),
    }
}

/// Like [`run`], for the vault.
pub(crate) fn run_vault(command: VaultCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
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
    pub(crate) fn read(&self) -> Result<Secret, CommandError> {
        let text = match &self.from_env {
            Some(name) => std::env::var(name)
                .map_err(|_| {
                    CommandError::usage(format!("the environment variable {} is not set", harmless(name)))
                })?
                .into(),
            None => super::login::hidden("Secret: ")?,
        };
        let secret = text.expose_secret().trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            let message = "no secret given; send it on standard input, or name a variable with --from-env";
            return Err(CommandError::usage(message));
        }
        Ok(secret.to_owned().into())
    }
}

/// Finds a credential by name, id, or unique id prefix.
async fn found(session: &ServiceSession, name: &str) -> Result<CredentialRecord, CommandError> {
    let all = parts::all(session, async |part| session.client.credentials(part).await).await?;
    let near = wire::nearest(name, all.iter().map(|known| known.name.as_str())).map(str::to_owned);
    let mut beginning = all.iter().filter(|known| known.id.starts_with(name));
    let only = beginning.next().filter(|_| beginning.next().is_none()).cloned();
    let found = all.into_iter().find(|known| known.name == name || known.id == name);
    found.or(only.filter(|_| !name.is_empty())).ok_or_else(|| {
        let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        CommandError::from(format!("credential '{}' not found in this workspace{near}", harmless(name)))
    })
}
