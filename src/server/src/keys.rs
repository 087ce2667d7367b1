//! The vault's key ring: configured, or a file next to the embedded database.

use auth::keyring::{KeyRing, KeyringError};
use config::Config;
use kernel::{Random, RandomError};
use secrecy::ExposeSecret;
use store::data_dir::{DataDir, DataDirError};
use store::{Store, StoreError};

/// The key ring cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error(transparent)]
    Ring(#[from] KeyringError),
    #[error(transparent)]
    File(#[from] DataDirError),
}

/// Loads the key ring. `None` with an external database and no configured keys: generated keys are then stored
/// unsealed.
pub(crate) fn ring(
    config: &Config,
    data_dir: &DataDir,
    random: &dyn Random,
) -> Result<Option<KeyRing>, KeysError> {
    if let Some(keys) = &config.vault.keys {
        let pairs = keys.keys.iter().map(|(id, key)| (id.as_str(), key.expose()));
        return Ok(Some(KeyRing::new(&keys.active, pairs)?));
    }
    if config.database.dsn.is_some() {
        return Ok(None);
    }
    let file = data_dir.vault_key_file(|| {
        let mut key = [0_u8; 32];
        random.fill(&mut key)?;
        Ok::<_, RandomError>(key)
    })?;
    Ok(Some(KeyRing::parse(file.expose_secret())?))
}

/// A ring with one generated key.
pub(crate) async fn generated(
    store: &Store,
    name: &str,
    ring: Option<&KeyRing>,
) -> Result<KeyRing, StoreError> {
    let key = store.service_key(name, ring).await?;
    let key: &[u8; 32] = key
        .as_slice()
        .try_into()
        .map_err(|_| StoreError::Corrupt(format!("the service key \"{name}\" is not 32 bytes long")))?;
    Ok(KeyRing::new(name, [(name, key)])?)
}
