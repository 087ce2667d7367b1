//! Signed tokens (JWT): accepts access tokens and issues our own.
//!
//! `jsonwebtoken` only checks signatures; its other checks are far too lenient. `token` and `header` check a token
//! before its signature; `verify` and `claims` check its claims.
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
pub use verify::{AccessRules, AccessTokens, FirstParty, Refusal, RejectedToken};

pub(crate) use claims::{audience, date, text};
pub(crate) use header::Purpose;
pub(crate) use instant::{LEEWAY, instant, seconds};
pub(crate) use signature::verified;
pub(crate) use token::Token;
