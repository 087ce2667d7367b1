//! Builds a [`Client`].

use std::net::IpAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use kernel::{Clock, Secret, SystemClock};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use secrecy::ExposeSecret as _;
use url::{Host, Url};

use crate::client::{Client, ClientParts, Exchange, Observer};
use crate::cookies::Cookies;
use crate::{ClientError, TransportFault};

/// The options of a [`Client`].
pub struct ClientBuilder {
    base: String,
    service_token: Option<Secret>,
    session_token: Option<Secret>,
    keep_cookies: bool,
    headers: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
    answer_limit: Duration,
    idle_limit: Duration,
    resume_limit: Duration,
    observer: Option<Observer>,
    completes_ids: bool,
}

impl ClientBuilder {
    pub(crate) fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            service_token: None,
            session_token: None,
            keep_cookies: true,
            headers: Vec::new(),
            clock: Arc::new(SystemClock::new()),
            answer_limit: Duration::from_secs(60),
            idle_limit: Duration::from_secs(35),
            resume_limit: Duration::from_secs(60),
            observer: None,
            completes_ids: false,
        }
    }

    /// Whether a unique id prefix in a path is completed to the id; off by default.
    #[must_use]
    pub fn complete_ids(mut self, completes: bool) -> Self {
        self.completes_ids = completes;
        self
    }

    /// The bearer token for all calls except chat calls.
    #[must_use]
    pub fn service_token(mut self, token: Secret) -> Self {
        self.service_token = Some(token);
        self
    }

    /// The bearer token for chat calls.
    #[must_use]
    pub fn session_token(mut self, token: Secret) -> Self {
        self.session_token = Some(token);
        self
    }

    /// Whether cookies are stored and sent back; on by default.
    #[must_use]
    pub fn keep_cookies(mut self, keep: bool) -> Self {
        self.keep_cookies = keep;
        self
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The timeout for a response, 60 s by default; for a stream, the timeout for its head.
    #[must_use]
    pub fn answer_limit(mut self, limit: Duration) -> Self {
        self.answer_limit = limit;
        self
    }

    /// Maximum silence on a stream, 35 s by default. The service sends a ping every 10 s.
    #[must_use]
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = limit;
        self
    }

    /// Maximum time that a [`crate::ResumingChat`] retries without a success, 60 s by default.
    #[must_use]
    pub fn resume_limit(mut self, limit: Duration) -> Self {
        self.resume_limit = limit;
        self
    }

    /// A function that sees every response before its caller does.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&Exchange<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// [`ClientError::Usage`] for an address, a header or a token that cannot be sent;
    /// [`ClientError::Transport`] when the machine's certificates cannot be read.
    pub fn build(self) -> Result<Client, ClientError> {
        let base = parse_base(&self.base)?;
        let http = self.http(&base)?;
        Ok(Client::from_parts(
            ClientParts {
                base,
                http,
                service_bearer: RwLock::new(self.service_token.as_ref().map(bearer).transpose()?),
                session_bearer: self.session_token.as_ref().map(bearer).transpose()?,
                clock: self.clock,
                answer_limit: self.answer_limit,
                idle_limit: self.idle_limit,
                resume_limit: self.resume_limit,
                observer: self.observer,
                completes_ids: self.completes_ids,
            },
            self.keep_cookies.then(Cookies::default),
        ))
    }

    fn http(&self, base: &Url) -> Result<reqwest::Client, ClientError> {
        // Fails if a provider is already installed, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed = (name.parse::<HeaderName>(), value.parse::<HeaderValue>());
            let (Ok(name), Ok(value)) = parsed else {
                return Err(ClientError::Usage(format!("`{name}` cannot be sent as a header")));
            };
            headers.append(name, value);
        }
        // A redirect would turn a POST into a GET, and send it to a server that the caller did not choose.
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("callboard-client/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10));
        if base.scheme() == "http" {
            // Reading the machine's certificates takes time, and fails without any.
            http = http.tls_certs_only([]);
        }
        if is_local(base) {
            http = http.no_proxy();
        }
        http.build().map_err(|error| ClientError::Transport {
            fault: TransportFault::Connect,
            source: Some(Box::new(error)),
        })
    }
}

pub(crate) fn parse_base(text: &str) -> Result<Url, ClientError> {
    let wrong = |why: &str| ClientError::Usage(format!("the service's address {why}"));
    let base = Url::parse(text.trim()).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(wrong("must begin with http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("must not hold a user name or password"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("must not hold a query or a fragment"));
    }
    Ok(base)
}

fn is_local(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

pub(crate) fn bearer(token: &Secret) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
        .map_err(|_| ClientError::Usage("the token cannot be sent as a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_address_is_rejected() {
        for bad in ["", "localhost:8000", "ftp://a", "http://u:p@a", "http://a/?q", "http://a/#f", "http://"]
        {
            assert!(matches!(ClientBuilder::new(bad).build(), Err(ClientError::Usage(_))), "{bad}");
        }
        for good in ["http://localhost:8000", "https://example.org/callboard/", " http://[::1]:1 "] {
            assert!(ClientBuilder::new(good).build().is_ok(), "{good}");
        }
    }

    #[test]
    fn invalid_headers_and_tokens_are_rejected_without_quoting_them() {
        let build = |token: &str| ClientBuilder::new("http://a").service_token(token.into()).build();
        let error = build("secret\n").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("the token cannot be sent as a header"));
        assert!(build("fine").is_ok());
        assert!(ClientBuilder::new("http://a").header("a b", "").build().is_err());
    }

    #[test]
    fn only_loopback_addresses_are_local() {
        let local = |text: &str| is_local(&Url::parse(text).unwrap());
        assert!(local("http://localhost") && local("http://127.0.0.1:1") && local("http://[::1]"));
        assert!(!local("http://example.org") && !local("http://10.0.0.1"));
    }
}
