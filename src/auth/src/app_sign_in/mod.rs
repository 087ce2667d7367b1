//! Sign-in to hosted apps: from an app's host to the central host and back, with an authorization code.
//!
//! Pure: the browser's request, the state kept until it returns, the validity of code requests, and the path on which a
//! user continues. The service redeems the code itself, so app pages receive no token, no code and no verifier.
//!
//! Source: RFC 6749, 7636, 9207, 9700, and BCP 212 for browser-based applications.

mod request;
mod return_to;
mod start;

pub use request::{CodeRequest, NAMES, RequestProblem};
pub use return_to::return_to;
pub use start::{BadVerifier, SignInStart, open_verifier};

use chrono::TimeDelta;

/// Maximum time for a user on the central host.
pub const SIGN_IN_LIFE: TimeDelta = TimeDelta::minutes(10);
/// Maximum pending sign-ins per client and app within [`SIGN_IN_LIFE`].
pub const SIGN_INS_OF_CLIENT_AND_APP: i64 = 100;
/// Maximum pending sign-ins per client, all apps together, within [`SIGN_IN_LIFE`].
pub const SIGN_INS_OF_CLIENT: i64 = 1_000;
/// Authorization code lifetime.
pub const CODE_LIFE: TimeDelta = TimeDelta::seconds(60);
/// Period after a code's redemption in which the same browser's requests with it count as simultaneous.
pub const CODE_OVERLAP: TimeDelta = TimeDelta::seconds(2);
/// Maximum codes per user within [`SIGN_IN_LIFE`].
pub const CODES_PER_USER: i64 = 100;
/// Session idle timeout, from the last request.
pub const SESSION_IDLE: TimeDelta = TimeDelta::minutes(60);
/// Maximum session lifetime.
pub const SESSION_LIFE: TimeDelta = TimeDelta::hours(12);
/// Maximum session cookie age before rotation.
pub const ROTATED_EVERY: TimeDelta = TimeDelta::minutes(15);
/// Period in which the previous cookie stays valid, for requests already under way.
pub const OVERLAP: TimeDelta = TimeDelta::seconds(30);

/// Path on an app's host to which the central host returns a browser.
pub const CALLBACK: &str = "/__service/auth/callback";
/// Path below the central host's base that issues codes.
pub const AUTHORIZE: &str = "/authorize";
