//! `callboard vault rotate`.

use clap::Args;

use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, pretty, say};

#[derive(Debug, Args)]
#[command(
    after_help = "1. Add a key to SERVICE_VAULT_KEYS and make it the active one, on every instance; restart them.\n\
                  2. callboard vault rotate\n\
                  3. Remove the old key, and restart. Runs continue meanwhile."
)]
pub(crate) struct Rotate {
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Rotate {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let mut rewrapped = 0_u64;
        loop {
            let part = session.received(session.client.rotate_vault().await)?;
            rewrapped = rewrapped.saturating_add(part.rewrapped);
            if part.remaining > 0 && part.rewrapped > 0 {
                continue;
            }
            if part.remaining > 0 {
                let left = part.remaining;
                return Err(CommandError::from(format!(
                    "{left} secrets changed meanwhile; run the command again"
                )));
            }
            if session.output == Output::Json {
                return say(pretty(&wire::VaultRotation { rewrapped, ..part })?);
            }
            return say(format_args!(
                "Everything is encrypted with the key {} now; {rewrapped} secrets and keys were re-encrypted.",
                crate::terminal::harmless(&part.active)
            ));
        }
    }
}
