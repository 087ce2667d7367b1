//! Sealed credentials, and the service's signing keys.

pub(crate) mod credentials;
mod keys;

pub use credentials::*;
