//! The vault key ring (`SERVICE_VAULT_KEYS`), which seals with AES-256-GCM.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::{Random, RandomError};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::Deserialize;

/// A failure to seal or open a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// Not `{"active": id, "keys": {id: base64 of 32 bytes}}`.
    #[error("the vault keys are not valid: {0}")]
    Invalid(String),
    /// The key that sealed the value is missing.
    #[error("the vault key \"{0}\" is missing; add it to SERVICE_VAULT_KEYS again")]
    Missing(String),
    /// The value was changed, or belongs to another context.
    #[error("an encrypted value cannot be decrypted: it was changed or moved")]
    Tampered,
    /// No random bytes.
    #[error("no random bytes for sealing")]
    Random,
}

impl From<RandomError> for KeyringError {
    fn from(_: RandomError) -> Self {
        Self::Random
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    active: String,
    keys: BTreeMap<String, String>,
}

/// Keys by id; one seals, all open.
pub struct KeyRing {
    active: String,
    keys: BTreeMap<String, LessSafeKey>,
}

impl KeyRing {
    /// Parses the ring's JSON.
    ///
    /// # Errors
    /// [`KeyringError::Invalid`]; its text contains no key bytes.
    pub fn parse(json: &str) -> Result<Self, KeyringError> {
        let invalid = |text: String| KeyringError::Invalid(text);
        // serde's own message might contain a key.
        let text: Text = serde_json::from_str(json)
            .map_err(|error| invalid(format!("line {} column {}", error.line(), error.column())))?;
        let mut keys = BTreeMap::new();
        for (id, encoded) in text.keys {
            let bytes =
                STANDARD.decode(encoded).map_err(|_| invalid(format!("key \"{id}\" is not base64")))?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes)
                .map_err(|_| invalid(format!("key \"{id}\" is not 32 bytes long")))?;
            keys.insert(id, LessSafeKey::new(key));
        }
        if !keys.contains_key(&text.active) {
            return Err(invalid(format!("the active key \"{}\" is not among the keys", text.active)));
        }
        Ok(Self { active: text.active, keys })
    }

    /// Creates a ring from these keys.
    ///
    /// # Errors
    /// [`KeyringError::Invalid`] when the active key is not among them.
    pub fn new<'a>(
        active: &str,
        keys: impl IntoIterator<Item = (&'a str, &'a [u8; 32])>,
    ) -> Result<Self, KeyringError> {
        let invalid = || KeyringError::Invalid(format!("the active key \"{active}\" is not among the keys"));
        let mut ring = BTreeMap::new();
        for (id, bytes) in keys {
            let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| invalid())?;
            ring.insert(id.to_owned(), LessSafeKey::new(key));
        }
        let active = ring.contains_key(active).then(|| active.to_owned()).ok_or_else(invalid)?;
        Ok(Self { active, keys: ring })
    }

    /// Id of the sealing key.
    #[must_use]
    pub fn active(&self) -> &str {
        &self.active
    }

    /// Whether the ring has the key with this id.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.keys.contains_key(id)
    }

    /// Seals `plain` and binds it to `context`. The result is nonce, ciphertext, tag.
    ///
    /// # Errors
    /// [`KeyringError::Random`] if the random source fails.
    pub fn seal(&self, context: &str, plain: &[u8], random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        let key = self.keys.get(&self.active).ok_or_else(|| KeyringError::Missing(self.active.clone()))?;
        let mut nonce = [0_u8; NONCE_LEN];
        random.fill(&mut nonce)?;
        let mut sealed = plain.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context.as_bytes()),
            &mut sealed,
        )
        .map_err(|_| KeyringError::Tampered)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens a value that key `id` sealed for the same context.
    ///
    /// # Errors
    /// [`KeyringError::Missing`] names the absent key; [`KeyringError::Tampered`] for anything that does not open.
    pub fn open(&self, id: &str, context: &str, sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let key = self.keys.get(id).ok_or_else(|| KeyringError::Missing(id.to_owned()))?;
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN).ok_or(KeyringError::Tampered)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| KeyringError::Tampered)?;
        let mut bytes = rest.to_vec();
        let plain = key
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut bytes)
            .map_err(|_| KeyringError::Tampered)?;
        Ok(plain.to_vec())
    }

    /// [`KeyRing::open`] for an optional ring.
    ///
    /// # Errors
    /// As [`KeyRing::open`]; without a ring every key is missing.
    pub fn open_with(
        ring: Option<&Self>,
        id: &str,
        context: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, KeyringError> {
        ring.ok_or_else(|| KeyringError::Missing(id.to_owned()))?.open(id, context, sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::SeededRandom;

    fn ring(active: &str, ids: &[(&str, u8)]) -> KeyRing {
        let keys: BTreeMap<_, _> = ids.iter().map(|(id, byte)| (id, STANDARD.encode([*byte; 32]))).collect();
        KeyRing::parse(&serde_json::json!({"active": active, "keys": keys}).to_string()).unwrap()
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_context() {
        let (ring, random) = (ring("b", &[("a", 1), ("b", 2)]), SeededRandom::new(1));
        let sealed = ring.seal("here", b"plain", &random).unwrap();
        assert_eq!(ring.open("b", "here", &sealed).unwrap(), b"plain");
        assert_eq!(ring.open("b", "there", &sealed), Err(KeyringError::Tampered));
        assert_eq!(ring.open("a", "here", &sealed), Err(KeyringError::Tampered));
        assert_eq!(ring.open("c", "here", &sealed), Err(KeyringError::Missing("c".into())));
        for position in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[position] ^= 1;
            assert_eq!(ring.open("b", "here", &flipped), Err(KeyringError::Tampered), "byte {position}");
            assert_eq!(ring.open("b", "here", &sealed[..position]), Err(KeyringError::Tampered));
        }
    }

    #[test]
    fn an_older_key_still_opens_after_the_active_one_changed() {
        let random = SeededRandom::new(2);
        let sealed = ring("a", &[("a", 1)]).seal("x", b"plain", &random).unwrap();
        assert_eq!(ring("b", &[("a", 1), ("b", 2)]).open("a", "x", &sealed).unwrap(), b"plain");
        assert_eq!(
            ring("b", &[("b", 2)]).open("a", "x", &sealed).unwrap_err().to_string(),
            "the vault key \"a\" is missing; add it to SERVICE_VAULT_KEYS again"
        );
    }

    #[test]
    fn invalid_rings_are_rejected_without_showing_a_key() {
        for bad in [
            "",
            "{}",
            r#"{"active":"a","keys":{}}"#,
            r#"{"active":"a","keys":{"a":"c2VjcmV0"}}"#,
            r#"{"active":"a","keys":{"a":"c2Vj cmV0"}}"#,
            r#"{"active":"a","keys":{"a":1}}"#,
            r#"{"active":"a","keys":{},"c2VjcmV0":1}"#,
        ] {
            let Err(error) = KeyRing::parse(bad) else { panic!("{bad} was accepted") };
            assert!(!error.to_string().contains("c2Vj"), "{error}");
        }
    }
}
