//! Sign-in by e-mail: a link and a code, valid once, for ten minutes, for the requesting browser.
//!
//! Pure: addresses, secrets, limits and challenge outcomes. The stored form of a secret is not enough to sign in: links
//! and browser secrets are random enough for SHA-256; a code is not and gets an HMAC.

mod address;
mod challenge;
mod letter;
mod limits;
mod return_to;
mod secrets;

pub use address::{AddressError, EmailAddress};
pub use challenge::{Challenge, CodeVerdict};
pub use letter::Letter;
pub use limits::{
    CODES_PER_ADDRESS, LINKS_PER_ADDRESS, LINKS_PER_NETWORK, MailContent, MailLimit, PER_BROWSER,
    PER_BROWSER_AND_DAY, PER_CLIENT, PER_NETWORK, PER_NETWORK_AND_DAY, Sent, client_key,
};
pub use return_to::is_local;
pub use secrets::{Code, CodeKey, Token};

use chrono::TimeDelta;

/// Lifetime of a link and its code; delivery is also retried until then.
pub const CHALLENGE_LIFE: TimeDelta = TimeDelta::minutes(10);
/// Wrong codes after which a challenge is burnt.
pub const TRIES: i32 = 5;
/// Access token lifetime.
pub const ACCESS_LIFE: TimeDelta = TimeDelta::minutes(15);
/// Maximum time in which a sign-in can be refreshed: after a month the user signs in again.
pub const FAMILY_LIFE: TimeDelta = TimeDelta::days(30);
/// Browser session idle timeout, from the last request.
pub const SESSION_IDLE: TimeDelta = TimeDelta::minutes(60);
/// Maximum browser session lifetime.
pub const SESSION_LIFE: TimeDelta = TimeDelta::hours(12);
