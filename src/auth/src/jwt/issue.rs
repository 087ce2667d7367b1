//! Issues our own tokens.

use jsonwebtoken::{Algorithm, Header, encode};
use serde::Serialize;

use super::{HmacSecret, provider};

/// `typ` of access tokens (RFC 9068).
pub const TYPE_ACCESS: &str = "at+jwt";

/// A token could not be issued: its claims are not valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token's claims cannot be written")]
pub struct IssueError;

/// Signs HS256 tokens of one type.
#[derive(Clone)]
pub struct Signer {
    secret: HmacSecret,
    header: Header,
}

impl Signer {
    /// Signs tokens with `typ` and an optional `kid` in the header.
    #[must_use]
    pub fn new(secret: HmacSecret, typ: &str, kid: Option<&str>) -> Self {
        let mut header = Header::new(Algorithm::HS256);
        header.typ = Some(typ.to_owned());
        header.kid = kid.map(str::to_owned);
        Self { secret, header }
    }

    /// Signs a token with these claims. Times among them are whole seconds since 1970.
    ///
    /// # Errors
    /// [`IssueError`] when the claims cannot be written as JSON.
    pub fn sign<C: Serialize>(&self, claims: &C) -> Result<String, IssueError> {
        provider::install();
        encode(&self.header, claims, &self.secret.signs).map_err(|_| IssueError)
    }
}
