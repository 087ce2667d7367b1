//! `callboard token revoke`.

use clap::Args;

use super::show::named;
use crate::options::{ClientOptions, Session};
use crate::output::{Failure, Output, pretty, say};

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Id of the token.
    id: String,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Revoke {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let revoked = session.client.revoke_service_token(&self.id, &self.reason).await;
        let revoked = revoked.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return say(pretty(&revoked)?);
        }
        say(format_args!("Revoked service token {}.", named(&revoked)))
    }
}
