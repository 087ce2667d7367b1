//! Keys for RS256 tokens: sets of public RSA keys, configured or fetched from an identity provider.
//!
//! Source: RFC 7517, RFC 7518 (6.3).

mod cache;
mod key;
mod key_set;
mod remote;

pub use cache::CachedKeys;
pub use key::RsaKey;
pub use key_set::{BadKeySet, KeySet};
pub use remote::{FetchFailed, KeySource, KeysUnavailable, MOST_BYTES, Remote};
