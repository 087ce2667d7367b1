//! The client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, timeout};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue};
use url::{Host, Url};

use crate::pool::ConnectionPool;
use crate::{Guard, Limits, NetError, NetErrorKind, Request, Response, redirect};

/// The client could not be built; only a broken build of its libraries causes this.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the HTTP client cannot be made: {0}")]
pub struct ClientError(pub(crate) String);

/// An HTTP client. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    parts: Arc<ClientState>,
}

struct ClientState {
    face: Face,
    clock: Arc<dyn Clock>,
}

enum Face {
    Guarded { guard: Arc<Guard>, pool: Box<ConnectionPool> },
    Operator { http: reqwest::Client },
}

impl Client {
    /// Creates a client for addresses from graphs and users.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn guarded(guard: Arc<Guard>, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let face = Face::Guarded { guard, pool: Box::new(ConnectionPool::new()?) };
        Ok(Self { parts: Arc::new(ClientState { face, clock }) })
    }

    /// Creates a client for addresses that the operator configured.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn operator(clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let face = Face::Operator { http: ConnectionPool::new()?.open()? };
        Ok(Self { parts: Arc::new(ClientState { face, clock }) })
    }

    /// Creates a client for an operator's service at this address: names are not resolved. A port in a request's URL
    /// takes precedence.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn operator_at(address: SocketAddr, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let face = Face::Operator { http: ConnectionPool::new()?.pinned("", vec![address])? };
        Ok(Self { parts: Arc::new(ClientState { face, clock }) })
    }

    /// Returns the permitted addresses of a host and port, for protocols other than HTTP. The caller must connect only
    /// to these.
    ///
    /// # Errors
    /// [`NetErrorKind::Refused`] and [`NetErrorKind::Unreachable`], as for [`Guard::open`].
    pub async fn addresses(&self, host: &Host<String>, port: u16) -> Result<Vec<SocketAddr>, NetError> {
        match &self.parts.face {
            Face::Guarded { guard, .. } => guard.open(host, port).await,
            Face::Operator { .. } => Err(NetError::refused("this client has no guard")),
        }
    }

    /// Sends a request and waits for the response head. Dropping the future or the response closes the connection.
    ///
    /// # Errors
    /// [`NetError`]. An error status is a response, not an error.
    pub async fn send(&self, request: Request, limits: &Limits) -> Result<Response, NetError> {
        let clock = &self.parts.clock;
        let started = clock.monotonic();
        let mut request = request;
        let mut url = web(&request.url)?;
        let mut hops = 0_u8;
        loop {
            let passed = clock.monotonic().saturating_sub(started);
            let left =
                limits.total.map_or(limits.head, |total| total.saturating_sub(passed).min(limits.head));
            let place = place(&url);
            let answer = timeout(&**clock, left, self.hop(&request, &url, &place)).await;
            let answer = answer.unwrap_or_else(|| Err(too_slow(&place, left)))?;
            let follows = matches!(self.parts.face, Face::Guarded { .. });
            let to = if follows { redirect::target(answer.status(), answer.headers(), &url)? } else { None };
            let Some(to) = to else {
                return Response::new(answer, url, place, limits, started, Arc::clone(clock));
            };
            if limits.same_origin && !redirect::keeps_request(answer.status(), &url, &to) {
                return Err(NetError::refused(format!(
                    "{place} redirects to {}; use that address if you trust it",
                    shown(&to)
                )));
            }
            if hops >= limits.redirects {
                return Err(NetError::refused(format!(
                    "{place} redirects more than {} times",
                    limits.redirects
                )));
            }
            hops = hops.saturating_add(1);
            request = redirect::next(request, answer.status(), &url, &to);
            url = web(to.as_str())?;
        }
    }

    async fn hop(&self, request: &Request, url: &Url, place: &str) -> Result<reqwest::Response, NetError> {
        let http = match &self.parts.face {
            Face::Operator { http } => http.clone(),
            Face::Guarded { guard, pool } => {
                if !url.username().is_empty() || url.password().is_some() {
                    return Err(NetError::refused(format!(
                        "{place}: the address contains a user or a password"
                    )));
                }
                let addresses = guard.open_url(url).await?;
                let pinned = pool.pinned(url.host_str().unwrap_or_default(), addresses);
                pinned.map_err(|error| NetError::new(NetErrorKind::Broken, error.to_string()))?
            }
        };
        let mut headers = request.headers.clone();
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let mut url = url.clone();
        if headers.contains_key(AUTHORIZATION) {
            // Otherwise the library also sends the URL's user.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let sending = http.request(request.method.clone(), url).headers(headers).body(request.body.clone());
        sending.send().await.map_err(|error| NetError::from_reqwest(error, place))
    }
}

/// Parses an http or https URL with a host and removes its fragment.
fn web(text: &str) -> Result<Url, NetError> {
    let mut url = Url::parse(text).map_err(|error| NetError::refused(format!("no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NetError::refused(format!("'{}:' is neither http nor https", url.scheme())));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The host and port of a URL, safe to show in messages.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The URL without user, password and query, which may be secret.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn too_slow(place: &str, limit: Duration) -> NetError {
    NetError::new(NetErrorKind::TimedOut, format!("{place} did not answer within {} s", limit.as_secs_f32()))
}
