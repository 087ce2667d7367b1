//! Signed tokens (JWT): what is accepted as an access token, and how tokens of our own are made.
//!
//! `jsonwebtoken` checks signatures and nothing else; its other checks let pass far too much. What a token must be like
//! before its signature is looked at stands in `token` and `header`, what its claims must say in `verify` and `claims`.
//!
//! Source: RFC 7515, 7519, 8725 and 9068.

mod claims;
mod header;
mod instant;
mod issue;
pub(crate) mod json;
pub mod jwks;
mod provider;
mod scopes;
mod secret;
mod signature;
mod token;
mod verify;

pub use claims::{Claims, SignedBy, TokenKind, Workspaces};
pub use header::Algorithm;
pub use issue::{IssueError, Signer, TYPE_ACCESS};
pub use secret::HmacSecret;
pub use verify::{AccessRules, AccessTokens, FirstParty, Refusal, Refused};

pub(crate) use claims::{audience, date, text};
pub(crate) use header::Purpose;
pub(crate) use instant::{LEEWAY, instant, seconds};
pub(crate) use signature::verified;
pub(crate) use token::Token;
