//! `callboard demo --practice`: the workflows of `examples/` with sample data, against simulated services of this process.

mod mail;
mod services;
mod setup;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::{Config, Source};
use kernel::{Random as _, SystemRandom};
use serde_json::json;

pub(super) use setup::{ready, tell};

use crate::output::Failure;

/// The simulated services, which run until the process ends.
pub(super) struct Practice {
    /// `http://127.0.0.1:port`.
    pub(super) services: String,
    mail: std::net::SocketAddr,
}

impl Practice {
    /// Starts the simulated services.
    pub(super) async fn start() -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| format!("{what} cannot start: {error}");
        let services = services::start().map_err(|error| failed("The simulated services", error))?;
        let mail = mail::start().await.map_err(|error| failed("The simulated mail server", error))?;
        Ok(Self { services: format!("http://{services}"), mail })
    }

    /// The configuration that reaches them: mail goes to the simulated server, and the vault has a key of its own in `folder`,
    /// unless the environment names one.
    pub(super) fn config(&self, source: Source, folder: &Path) -> Result<Config, Failure> {
        let address = self.services.trim_start_matches("http://");
        let mut source = source
            .with("SERVICE_EGRESS_ALLOW", json!([address]).to_string())
            .with("SERVICE_SMTP_URL", format!("smtp://{}", self.mail))
            .with("SERVICE_MAIL_FROM", "Callboard <demo@example.com>".to_owned());
        if source.get("SERVICE_VAULT_KEYS").is_none() {
            let key = vault_key(folder).map_err(|error| format!("The vault has no key: {error}"))?;
            let keys = json!({"active": "practice", "keys": {"practice": key}});
            source = source.with("SERVICE_VAULT_KEYS", keys.to_string());
        }
        Config::load(&source).map_err(|problems| Failure::from(crate::commands::told(&problems)))
    }
}

/// The key of the last demo in this folder, or a new one.
fn vault_key(folder: &Path) -> Result<String, std::io::Error> {
    let path = folder.join("vault-key");
    std::fs::create_dir_all(folder)?;
    let mut key = String::new();
    match OpenOptions::new().read(true).open(&path) {
        Ok(mut file) => _ = file.read_to_string(&mut key)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            SystemRandom::new().fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
            key = STANDARD.encode(bytes);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(key.as_bytes())?;
        }
        Err(error) => return Err(error),
    }
    Ok(key.trim().to_owned())
}
