//! Sign-in with an OpenID provider: authorization code with PKCE.
//!
//! Pure: the provider's metadata, the request to it, the state kept until the user returns, and the verification of the
//! identity token.
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

/// Maximum time for a user at the provider.
pub const ASKED_LIFE: TimeDelta = TimeDelta::minutes(10);
/// Maximum pending sign-ins per client within [`ASKED_LIFE`].
pub const ASKED_PER_CLIENT: i64 = 100;
