//! `callboard demo --practice`: the workflows of `examples/` with sample data, against simulated services in this
//! process.

mod mail;
mod services;
mod setup;

use config::{Config, Source};
use serde_json::json;

pub(super) use setup::{ready, tell};

use crate::output::CommandError;

/// The simulated services, which run until the process ends.
pub(super) struct Practice {
    /// `http://127.0.0.1:port`.
    pub(super) services: String,
    mail: std::net::SocketAddr,
}

impl Practice {
    /// Starts the simulated services.
    pub(super) async fn start() -> Result<Self, CommandError> {
        let failed = |what: &str, error: std::io::Error| format!("{what} cannot start: {error}");
        let services = services::start().map_err(|error| failed("The simulated services", error))?;
        let mail = mail::start().await.map_err(|error| failed("The simulated mail server", error))?;
        Ok(Self { services: format!("http://{services}"), mail })
    }

    /// A configuration that uses the simulated services.
    pub(super) fn config(&self, source: Source) -> Result<Config, CommandError> {
        let address = self.services.trim_start_matches("http://");
        let source = source
            .with("SERVICE_EGRESS_ALLOW", json!([address]).to_string())
            .with("SERVICE_SMTP_URL", format!("smtp://{}", self.mail))
            .with("SERVICE_MAIL_FROM", "Callboard <demo@example.com>".to_owned())
            // The folder has its own key.
            .with("SERVICE_VAULT_KEYS", String::new());
        Config::load(&source).map_err(|problems| CommandError::from(crate::commands::told(&problems)))
    }
}
