//! A set of keys as it is written.

use serde_json::{Map, Value};

use super::RsaKey;
use crate::jwt::json;

/// Entries of a set, ours or not.
const MOST_KEYS: usize = 100;

/// A text is no key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeySet {
    /// Not JSON, or names stand twice.
    #[error("it is not a JSON object")]
    NotJson,
    /// No list of objects under `keys`.
    #[error("it has no list of keys")]
    NoKeys,
    /// More than 100.
    #[error("it has more than {MOST_KEYS} keys")]
    TooMany,
}

/// Those keys of a set that can check RS256 signatures.
///
/// Entries for something else are left out, as providers keep several kinds in one set: another `kty`, `use` or `alg`, a
/// modulus outside of 2048 to 8192 bits, a private part. Of entries with one id, whatever their kind, none is used: it
/// could not be told which is meant.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<RsaKey>,
}

impl KeySet {
    /// Reads `{"keys": [...]}`.
    ///
    /// # Errors
    /// [`BadKeySet`], without anything of the text.
    pub fn parse(json: &[u8]) -> Result<Self, BadKeySet> {
        let set = json::object(json).ok_or(BadKeySet::NotJson)?;
        let Some(Value::Array(entries)) = set.get("keys") else { return Err(BadKeySet::NoKeys) };
        if entries.len() > MOST_KEYS {
            return Err(BadKeySet::TooMany);
        }
        let entries: Option<Vec<&Map<String, Value>>> = entries.iter().map(Value::as_object).collect();
        let entries = entries.ok_or(BadKeySet::NoKeys)?;
        let is_alone = |key: &RsaKey| {
            let Some(id) = &key.id else { return true };
            entries.iter().filter(|entry| entry.get("kid").and_then(Value::as_str) == Some(id)).count() == 1
        };
        Ok(Self { keys: entries.iter().copied().filter_map(RsaKey::of).filter(is_alone).collect() })
    }

    /// How many keys can be used.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none can be used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key with this id.
    pub(super) fn named(&self, id: &str) -> Option<&RsaKey> {
        self.keys.iter().find(|key| key.id.as_deref() == Some(id))
    }

    /// The keys in the order of the set.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RsaKey> {
        self.keys.iter()
    }
}
