//! Sign-in by an OpenID provider: authorization code with PKCE.
//!
//! Pure: what a provider says of itself, what is asked of it and kept until the user comes back, and which identity
//! token is believed.
//!
//! Source: OpenID Connect Core 1.0 (3.1) and Discovery 1.0, RFC 6749, 7636, 9207 and 9700.

mod id_token;
mod metadata;
mod request;
mod token_answer;

pub use id_token::{IdTokenRules, Identity, Judged, NoIdentity};
pub use metadata::{BadMetadata, ClientAuth, Metadata};
pub use request::{Asked, Kept};
pub use token_answer::{BadTokenAnswer, Tokens, basic_credentials, error_of, known_error};

use chrono::TimeDelta;

/// How long a user may take at the provider.
pub const ASKED_LIFE: TimeDelta = TimeDelta::minutes(10);
/// How many a client may have under way that long.
pub const ASKED_PER_CLIENT: i64 = 100;
