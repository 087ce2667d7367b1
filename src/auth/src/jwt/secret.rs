//! Secrets of HS256 tokens.

use jsonwebtoken::{DecodingKey, EncodingKey};
use kernel::Secret;
use secrecy::ExposeSecret as _;

/// A secret that signs and checks HS256 tokens. Never empty; cannot be printed, and is wiped when it goes.
#[derive(Clone)]
pub struct HmacSecret {
    checks: DecodingKey,
    pub(super) signs: EncodingKey,
}

impl HmacSecret {
    /// The bytes of a configured text; `None` when it is empty, which means that it is not set.
    #[must_use]
    pub fn of_text(secret: &Secret) -> Option<Self> {
        Self::of_bytes(secret.expose_secret().as_bytes())
    }

    /// These bytes; `None` when there are none.
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
