//! The one outbound HTTP client, and the guard in front of it.
//!
//! It has two faces. [`Client::guarded`] is for addresses that come from graphs and users: public ones only, each name
//! resolved once and the connection pinned to what was checked, redirects judged anew. [`Client::operator`] is for
//! addresses that the operator set: no judgement of addresses, and no redirects. Both ignore proxies of the
//! environment, and both bound heads, bodies and waiting by [`Limits`].
//!
//! Nothing is decompressed here: answers are asked for as they are (`Accept-Encoding: identity`), and what comes
//! compressed all the same is handed over as the bytes that came, so a small answer cannot become a large one.
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
