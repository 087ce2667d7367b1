//! Sign-in by e-mail: a link and a code, good once, for ten minutes, for the browser that asked.
//!
//! Pure: addresses, secrets, limits and what becomes of a challenge. What is stored of a secret is not enough to sign
//! in: a link and a browser's secret are random enough for SHA-256, a code is not and gets an HMAC.

mod address;
mod challenge;
mod letter;
mod limits;
mod return_to;
mod secrets;

pub use address::{AddressError, EmailAddress};
pub use challenge::{Challenge, Verdict};
pub use letter::Letter;
pub use limits::{
    CODES_PER_ADDRESS, LINKS_PER_ADDRESS, LINKS_PER_NETWORK, MailContent, MailLimit, PER_BROWSER,
    PER_BROWSER_AND_DAY, PER_CLIENT, PER_NETWORK, PER_NETWORK_AND_DAY, Sent, client_key,
};
pub use return_to::is_local;
pub use secrets::{Code, CodeKey, Token};

use chrono::TimeDelta;

/// How long a link and its code are good, and how long sending them is tried.
pub const CHALLENGE_LIFE: TimeDelta = TimeDelta::minutes(10);
/// Wrong codes after which a challenge is burnt.
pub const TRIES: i32 = 5;
/// How long an access token is good.
pub const ACCESS_LIFE: TimeDelta = TimeDelta::minutes(15);
/// How long a sign-in can be refreshed, however often it is: after a month the user signs in again.
pub const FAMILY_LIFE: TimeDelta = TimeDelta::days(30);
/// How long a browser's session outlives its last request.
pub const SESSION_IDLE: TimeDelta = TimeDelta::minutes(60);
/// How long a browser's session lives at most.
pub const SESSION_LIFE: TimeDelta = TimeDelta::hours(12);
