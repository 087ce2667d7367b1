//! The only outbound HTTP client, and its egress guard.
//!
//! The client has two variants. [`Client::guarded`] is for addresses from graphs and users: it connects only to public
//! addresses, resolves each name once, pins the connection to the checked addresses and checks every redirect.
//! [`Client::operator`] is for addresses that the operator configured: it does not check addresses or follow redirects.
//! Both ignore proxy environment variables, and both bound heads, bodies and waiting times by [`Limits`].
//!
//! The client never decompresses: it requests uncompressed responses (`Accept-Encoding: identity`) and returns a
//! compressed body as received, so a small response cannot expand into a large one.
//!
//! Source: `docs/adr/0006-models.md`; OWASP ASVS 5.0, 1.3.6.

mod address;
mod client;
mod error;
mod guard;
mod limits;
mod pool;
mod redirect;
mod request;
mod resolve;
mod response;
mod retry_after;

pub use address::not_public;
pub use client::{Client, ClientError};
pub use error::{NetError, NetErrorKind};
pub use guard::{Egress, Guard, HostPort};
pub use limits::{Limits, Rate};
pub use request::Request;
pub use reqwest::header;
pub use reqwest::{Method, StatusCode};
pub use resolve::{Resolver, SystemResolver};
pub use response::Response;
pub use retry_after::retry_after;
pub use url::{Host, Url};
