//! `callboard token revoke`.

use clap::Args;

use super::show::named;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, say};

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
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let revoked = session.received(session.client.revoke_service_token(&self.id, &self.reason).await)?;
        session.output.print(&revoked, || say(format_args!("Revoked service token {}.", named(&revoked))))
    }
}
