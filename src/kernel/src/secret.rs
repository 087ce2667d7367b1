//! Values that must never be printed.

/// A text that cannot be printed, compared by accident or serialised. Read it with `expose_secret`.
pub type Secret = secrecy::SecretString;

/// What may be shown of a secret: nothing but that it is set.
#[must_use]
pub fn mask(value: &str) -> &'static str {
    if value.is_empty() { "" } else { "********" }
}
