//! The OpenID provider that the configuration names, as far as it is asked anything over HTTP.
//!
//! The service asks it nothing before a user signs in: it starts and continues without the provider.

mod discovery;
mod provider;

pub(crate) use discovery::Known;
pub(crate) use provider::{NotKnown, Provider};

use std::time::Duration;

use net::Limits;

/// How long the provider may take to answer, with everything.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its longest answer.
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
