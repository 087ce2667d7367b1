//! The vault: checks that there are keys to seal secrets.

use config::Config;

use super::report::Finding;

const VAULT: &str = "vault";

pub(super) fn judge(config: &Config) -> Finding {
    match &config.vault.keys {
        Some(keys) => Finding::ok(VAULT, format!("new secrets are encrypted with the key {}", keys.active)),
        None if config.database.dsn.is_none() => Finding::ok(
            VAULT,
            "its key is a file in the data folder, so a backup of the folder contains both",
        ),
        None => Finding::warning(
            VAULT,
            "no key is configured: with an external database the service creates no key file, so credential requests return 503",
            "set SERVICE_VAULT_KEYS to {\"active\": \"1\", \"keys\": {\"1\": \"<base64 of 32 random bytes>\"}}, the same on \
             every instance; `openssl rand -base64 32` generates a key",
        ),
    }
}
