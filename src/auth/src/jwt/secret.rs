//! Secrets for HS256 tokens.

use jsonwebtoken::{DecodingKey, EncodingKey};
use kernel::Secret;
use secrecy::ExposeSecret as _;

/// A secret that signs and verifies HS256 tokens. Never empty; cannot be printed, and is wiped when dropped.
#[derive(Clone)]
pub struct HmacSecret {
    checks: DecodingKey,
    pub(super) signs: EncodingKey,
}

impl HmacSecret {
    /// The bytes of a configured text; `None` if it is empty, which means unset.
    #[must_use]
    pub fn of_text(secret: &Secret) -> Option<Self> {
        Self::of_bytes(secret.expose_secret().as_bytes())
    }

    /// Creates a secret from these bytes; `None` if empty.
    #[must_use]
    pub fn of_bytes(secret: &[u8]) -> Option<Self> {
        (!secret.is_empty()).then(|| Self {
            checks: DecodingKey::from_secret(secret),
            signs: EncodingKey::from_secret(secret),
        })
    }

    pub(crate) const fn checks(&self) -> &DecodingKey {
        &self.checks
    }
}
