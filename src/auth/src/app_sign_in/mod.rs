//! Sign-in to hosted apps: from the host of an app to the central host and back, with an authorization code.
//!
//! Pure: what the browser takes along, what is kept until it returns, which requests for a code are good, where a user
//! continues. The service redeems the code itself, so that pages of apps receive no token, no code and no verifier.
//!
//! Source: RFC 6749, 7636, 9207, 9700, and BCP 212 for browser-based applications.

mod request;
mod return_to;
mod start;

pub use request::{CodeRequest, NAMES, RequestProblem};
pub use return_to::return_to;
pub use start::{BadVerifier, SignInStart, open_verifier};

use chrono::TimeDelta;

/// How long a user may take on the central host.
pub const SIGN_IN_LIFE: TimeDelta = TimeDelta::minutes(10);
/// How many sign-ins to an app a client may have under way that long.
pub const SIGN_INS_OF_CLIENT_AND_APP: i64 = 100;
/// The same to all apps together.
pub const SIGN_INS_OF_CLIENT: i64 = 1_000;
/// How long a code is good.
pub const CODE_LIFE: TimeDelta = TimeDelta::seconds(60);
/// How long after the redemption of a code requests of the same browser with it count as sent at the same moment.
pub const CODE_OVERLAP: TimeDelta = TimeDelta::seconds(2);
/// How many codes a user may receive within [`SIGN_IN_LIFE`].
pub const CODES_PER_USER: i64 = 100;
/// How long a session outlives its last request.
pub const SESSION_IDLE: TimeDelta = TimeDelta::minutes(60);
/// How long a session lives at most.
pub const SESSION_LIFE: TimeDelta = TimeDelta::hours(12);
/// How old the cookie of a session becomes.
pub const ROTATED_EVERY: TimeDelta = TimeDelta::minutes(15);
/// How long the cookie before is good: requests may be under way with it.
pub const OVERLAP: TimeDelta = TimeDelta::seconds(30);

/// Where the central host sends a browser back to, on the host of an app.
pub const CALLBACK: &str = "/__service/auth/callback";
/// Where the central host issues codes, after its base.
pub const AUTHORIZE: &str = "/authorize";
