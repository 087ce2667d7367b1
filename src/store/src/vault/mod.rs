//! Sealed credentials, and the signing keys of the service.

pub(crate) mod credentials;
mod keys;

pub use credentials::*;
