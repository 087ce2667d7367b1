//! A key set in its JSON form.

use serde_json::{Map, Value};

use super::RsaKey;
use crate::jwt::json;

/// Maximum entries in a set, usable or not.
const MOST_KEYS: usize = 100;

/// A text is not a key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeySet {
    /// Not JSON, or duplicate names.
    #[error("it is not a JSON object")]
    NotJson,
    /// No list of objects under `keys`.
    #[error("it has no list of keys")]
    NoKeys,
    /// More than 100.
    #[error("it has more than {MOST_KEYS} keys")]
    TooMany,
}

/// The keys of a set that can verify RS256 signatures.
///
/// Other entries are left out, as providers keep several kinds in one set: another `kty`, `use` or `alg`, a modulus
/// outside 2048 to 8192 bits, a private part. Entries that share an id, whatever their kind, are all left out: the id
/// would be ambiguous.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<RsaKey>,
}

impl KeySet {
    /// Parses `{"keys": [...]}`.
    ///
    /// # Errors
    /// [`BadKeySet`], without any of the text.
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
        Ok(Self { keys: entries.iter().copied().filter_map(RsaKey::from_entry).filter(is_alone).collect() })
    }

    /// Number of usable keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is usable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key with this id.
    pub(super) fn named(&self, id: &str) -> Option<&RsaKey> {
        self.keys.iter().find(|key| key.id.as_deref() == Some(id))
    }

    /// The keys in set order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RsaKey> {
        self.keys.iter()
    }
}
