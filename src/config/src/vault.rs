//! The keys that seal stored secrets.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretBox};
use serde::Deserialize;

use crate::problem::Invalid;
use crate::reader::{RejectedValue, VariableReader};

/// The vault.
#[derive(Debug, Clone)]
pub struct Vault {
    /// `SERVICE_VAULT_KEYS`.
    pub keys: Option<VaultKeys>,
}

/// Sealing keys by id.
#[derive(Debug, Clone)]
pub struct VaultKeys {
    /// The id of the key that seals new values; always one of `keys`.
    pub active: String,
    /// All keys; the older ones still open the values that they sealed.
    pub keys: BTreeMap<String, VaultKey>,
}

/// 256 bits that cannot be printed and are wiped when dropped.
#[derive(Debug)]
pub struct VaultKey(SecretBox<[u8; 32]>);

impl VaultKey {
    /// The bytes.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose_secret()
    }
}

impl Clone for VaultKey {
    fn clone(&self) -> Self {
        Self(SecretBox::new(Box::new(*self.expose())))
    }
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Vault, RejectedValue> {
    Ok(Vault { keys: reader.optional("SERVICE_VAULT_KEYS", vault_keys)? })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    active: String,
    keys: BTreeMap<String, String>,
}

/// A problem may contain an id, unless it could be a misplaced key.
fn vault_keys(text: &str) -> Result<VaultKeys, Invalid> {
    const INSTEAD: &str = r#"write JSON {"active": id, "keys": {id: base64 of 32 random bytes}}"#;
    let given: Given = serde_json::from_str(text).map_err(|_| {
        Invalid::new("is not JSON with only a string `active` and an object `keys` of strings", INSTEAD)
    })?;
    if !given.keys.contains_key(&given.active) {
        let wrong = format!("names {} as active, which is not among its keys", named(&given.active));
        return Err(Invalid::new(wrong, INSTEAD));
    }
    let mut keys = BTreeMap::new();
    for (id, key) in given.keys {
        if id.is_empty() || id.len() > 64 || id.chars().any(char::is_control) {
            return Err(Invalid::new("has a key whose id is empty, too long or not one line", INSTEAD));
        }
        let Some(key) = decode(&key) else {
            return Err(Invalid::new(
                format!("has no base64 of exactly 32 bytes for {}", named(&id)),
                INSTEAD,
            ));
        };
        keys.insert(id, key);
    }
    Ok(VaultKeys { active: given.active, keys })
}

fn named(id: &str) -> String {
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if plain && (1..=20).contains(&id.len()) { format!("key `{id}`") } else { "a key".to_owned() }
}

/// Accepts either alphabet, with or without padding: a tool's choice says nothing about the key.
fn decode(text: &str) -> Option<VaultKey> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = [alphabet::STANDARD, alphabet::URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text.trim()).ok())?;
    let bytes: [u8; 32] = bytes.try_into().ok()?;
    Some(VaultKey(SecretBox::new(Box::new(bytes))))
}
