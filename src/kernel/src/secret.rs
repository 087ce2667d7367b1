//! Values that must never be printed.

/// A text that cannot be printed, compared by accident or serialized. Read it with `expose_secret`.
pub type Secret = secrecy::SecretString;

/// Masks a secret: shows only whether it is set.
#[must_use]
pub fn mask(value: &str) -> &'static str {
    if value.is_empty() { "" } else { "********" }
}
