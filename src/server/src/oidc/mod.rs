//! HTTP access to the configured OpenID provider.
//!
//! The service contacts the provider only when a user signs in, so it starts and runs without it.

mod discovery;
mod provider;

pub(crate) use discovery::ReadyProvider;
pub(crate) use provider::{NotKnown, Provider};

use std::time::Duration;

use net::Limits;

/// Timeout for a complete response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum response bytes.
const MOST_BYTES: u64 = 256 * 1024;

fn limits() -> Limits {
    Limits {
        head: PATIENCE,
        total: Some(PATIENCE),
        idle: PATIENCE,
        rate: None,
        body_bytes: MOST_BYTES,
        redirects: 0,
        same_origin: true,
        ..Limits::default()
    }
}
