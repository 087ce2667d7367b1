//! Outbound requests.

use bytes::Bytes;
use kernel::Secret;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use crate::NetError;

/// Headers that belong to the connection; callers cannot set them.
const CONNECTION: [&str; 12] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// A request. Its address is checked when it is sent.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    /// Creates a request without headers and body.
    #[must_use]
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// Whether a header belongs to the connection (`Host`, `Content-Length`, `Transfer-Encoding` and the like) and is
    /// omitted from requests.
    #[must_use]
    pub fn is_of_connection(name: &str) -> bool {
        CONNECTION.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Adds a header. Ignores headers that belong to the connection (`Host`, `Content-Length`, `Transfer-Encoding` and
    /// the like).
    ///
    /// # Errors
    /// [`crate::NetErrorKind::Refused`] if the name or the value is not allowed in a header; the message omits the
    /// value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, NetError> {
        let bad = |what: &str| NetError::refused(format!("the {what} of a header is not valid"));
        let name = HeaderName::try_from(name).map_err(|_| bad("name"))?;
        let value = HeaderValue::try_from(value).map_err(|_| bad("value"))?;
        if !CONNECTION.contains(&name.as_str()) {
            self.headers.append(name, value);
        }
        Ok(self)
    }

    /// Sends a secret as `Authorization: Bearer`.
    ///
    /// # Errors
    /// [`crate::NetErrorKind::Refused`] if the secret is not allowed in a header; the message omits it.
    pub fn bearer(mut self, secret: &Secret) -> Result<Self, NetError> {
        let value = HeaderValue::try_from(format!("Bearer {}", secret.expose_secret()));
        let mut value = value.map_err(|_| NetError::refused("the key is not allowed in a header"))?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(self)
    }

    /// Sends a secret in the header `name`.
    ///
    /// # Errors
    /// [`crate::NetErrorKind::Refused`] if the secret is not allowed in a header; the message omits it.
    pub fn secret(mut self, name: &str, secret: &Secret) -> Result<Self, NetError> {
        let name =
            HeaderName::try_from(name).map_err(|_| NetError::refused("the name of a header is not valid"))?;
        let value = HeaderValue::try_from(secret.expose_secret());
        let mut value = value.map_err(|_| NetError::refused("the key is not allowed in a header"))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sends already encoded credentials as `Authorization: Basic`.
    ///
    /// # Errors
    /// [`crate::NetErrorKind::Refused`] if the credentials are not allowed in a header; the message omits them.
    pub fn basic(mut self, credentials: &Secret) -> Result<Self, NetError> {
        let value = HeaderValue::try_from(format!("Basic {}", credentials.expose_secret()));
        let mut value =
            value.map_err(|_| NetError::refused("the credentials are not allowed in a header"))?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(self)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}
