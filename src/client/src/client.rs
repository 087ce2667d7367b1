//! [`Client`]: sends requests and reads complete responses.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use kernel::{Clock, Secret};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use url::Url;

use crate::builder::{bearer, parse_base};
use crate::cookies::Cookies;
use crate::{Answer, ClientBuilder, ClientError, TransportFault};

/// A service at one address, with one caller's credentials. Copies share connections and cookies.
#[derive(Clone)]
pub struct Client {
    parts: Arc<ClientParts>,
    cookies: Option<Cookies>,
}

/// The state that all visitors of one client share.
pub(crate) struct ClientParts {
    pub(crate) base: Url,
    pub(crate) http: reqwest::Client,
    pub(crate) service_bearer: RwLock<Option<HeaderValue>>,
    pub(crate) session_bearer: Option<HeaderValue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) answer_limit: Duration,
    pub(crate) idle_limit: Duration,
    pub(crate) resume_limit: Duration,
    pub(crate) observer: Option<Observer>,
    pub(crate) completes_ids: bool,
}

/// A callback that sees every response.
pub(crate) type Observer = Arc<dyn Fn(&Exchange<'_>) + Send + Sync>;

/// A response with its request's method and path.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request's method.
    pub method: &'a str,
    /// The request's path.
    pub path: &'a str,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The complete body; `None` for a streamed response.
    pub body: Option<&'a [u8]>,
}

/// The method of a response's request.
#[derive(Clone)]
struct RequestMethod(Method);

/// The token that a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bearer {
    Service,
    Session,
    None,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.parts.base.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client with the default options for the service at `base`.
    ///
    /// # Errors
    /// As [`ClientBuilder::build`].
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Self::builder(base).build()
    }

    /// A builder for a client that uses the service at `base`.
    #[must_use]
    pub fn builder(base: &str) -> ClientBuilder {
        ClientBuilder::new(base)
    }

    pub(crate) fn from_parts(parts: ClientParts, cookies: Option<Cookies>) -> Self {
        Self { parts: Arc::new(parts), cookies }
    }

    pub(crate) fn parts(&self) -> &ClientParts {
        &self.parts
    }

    /// The same client as another visitor: it shares the connections and starts without cookies.
    #[must_use]
    pub fn new_visitor(&self) -> Self {
        Self { parts: Arc::clone(&self.parts), cookies: self.cookies.as_ref().map(|_| Cookies::default()) }
    }

    /// The service's address.
    #[must_use]
    pub fn base(&self) -> &str {
        self.parts.base.as_str()
    }

    /// Whether an address names the same service, however it is written.
    #[must_use]
    pub fn is_at(&self, address: &str) -> bool {
        let plain = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
        parse_base(address).is_ok_and(|other| plain(&other) == plain(&self.parts.base))
    }

    /// Replaces the service token, also in all copies of this client.
    ///
    /// # Errors
    /// [`ClientError::Usage`] for a token that cannot be sent.
    pub fn set_service_token(&self, token: &Secret) -> Result<(), ClientError> {
        let bearer = bearer(token)?;
        *self.parts.service_bearer.write().unwrap_or_else(PoisonError::into_inner) = Some(bearer);
        Ok(())
    }

    /// A cookie's value as last set by the service.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.as_ref()?.get(name)
    }

    /// Sets a cookie by hand; without effect if cookies are disabled.
    pub fn set_cookie(&self, name: &str, value: &str) {
        if let Some(cookies) = &self.cookies {
            cookies.set(name, value);
        }
    }

    /// Removes all cookies.
    pub fn forget_cookies(&self) {
        if let Some(cookies) = &self.cookies {
            cookies.forget();
        }
    }

    /// Sends any request and returns any response. `path` begins with `/` and may contain a query.
    ///
    /// `headers` are added to the client's own headers; `authorization` and `cookie` replace them.
    ///
    /// # Errors
    /// [`ClientError::Usage`] for a request that cannot be sent; [`ClientError::Transport`] without a complete
    /// response.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, ClientError> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| ClientError::Usage(format!("`{method}` is not a method")))?;
        let mut own = HeaderMap::new();
        for (name, value) in headers {
            match (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                (Ok(name), Ok(value)) => {
                    own.append(name, value);
                }
                _ => return Err(ClientError::Usage(format!("`{name}` cannot be sent as a header"))),
            }
        }
        let body = body.into();
        let bearer = if own.contains_key(AUTHORIZATION) { Bearer::None } else { Bearer::Service };
        // `headers` replaces headers with the same name.
        let mut request = self.request(method, self.raw_url(path)?, bearer).headers(own);
        if !body.is_empty() {
            request = request.body(body);
        }
        self.answer(request).await
    }

    /// A request with the caller's token and cookies.
    pub(crate) fn request(&self, method: Method, url: Url, bearer: Bearer) -> RequestBuilder {
        let mut request = self.parts.http.request(method, url);
        let token = match bearer {
            Bearer::Service => {
                self.parts.service_bearer.read().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Bearer::Session => self.parts.session_bearer.clone(),
            Bearer::None => None,
        };
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(cookies) = self.cookies.as_ref().and_then(Cookies::header) {
            request = request.header(COOKIE, cookies);
        }
        request
    }

    /// Sends a request and reads the complete response.
    pub(crate) async fn answer(&self, request: RequestBuilder) -> Result<Answer, ClientError> {
        self.answer_after(request, Duration::ZERO).await
    }

    /// Like [`Self::answer`], when the request asks the service to wait before it responds.
    pub(crate) async fn answer_after(
        &self,
        request: RequestBuilder,
        wait: Duration,
    ) -> Result<Answer, ClientError> {
        let limit = self.parts.answer_limit.saturating_add(wait);
        self.within(limit, async { self.whole(self.head(request).await?).await }).await
    }

    /// Sends a request and waits for the response head; stores its cookies.
    pub(crate) async fn head(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let request = request.build()?;
        let method = RequestMethod(request.method().clone());
        let mut response = self.parts.http.execute(request).await?;
        response.extensions_mut().insert(method);
        if let Some(cookies) = &self.cookies {
            cookies.learn(response.headers());
        }
        Ok(response)
    }

    /// Reads a response to its end.
    pub(crate) async fn whole(&self, mut response: Response) -> Result<Answer, ClientError> {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let (path, asked) = (response.url().path().to_owned(), response.extensions_mut().remove());
        let body = response.bytes().await.map_err(|error| ClientError::cut(Box::new(error)))?;
        if let (Some(observer), Some(RequestMethod(method))) = (&self.parts.observer, &asked) {
            let (method, body) = (method.as_str(), Some(&*body));
            observer(&Exchange { method, path: &path, status, headers: &headers, body });
        }
        Ok(Answer { status, headers, body })
    }

    /// Passes the head of a streamed response to the observer.
    pub(crate) fn show_head(&self, response: &Response) {
        if let (Some(observer), Some(RequestMethod(method))) =
            (&self.parts.observer, response.extensions().get())
        {
            let (status, headers) = (response.status().as_u16(), response.headers());
            let path = response.url().path();
            observer(&Exchange { method: method.as_str(), path, status, headers, body: None });
        }
    }

    /// Applies the response timeout to a future.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        self.within(self.parts.answer_limit, work).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let outcome = kernel::timeout(&*self.parts.clock, limit, work).await;
        outcome.unwrap_or_else(|| Err(ClientError::fault(TransportFault::Timeout)))
    }

    /// The URL for a complete path.
    fn raw_url(&self, path: &str) -> Result<Url, ClientError> {
        if !path.starts_with('/') {
            return Err(ClientError::Usage(format!("the path `{path}` must begin with `/`")));
        }
        let base = self.parts.base.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}{path}"))
            .map_err(|error| ClientError::Usage(format!("the path `{path}` cannot be read: {error}")))
    }

    /// The URL for path segments with any content.
    pub(crate) fn url(&self, segments: &[&str]) -> Result<Url, ClientError> {
        // An empty segment would name another route, and dot segments are removed in transit.
        if let Some(bad) = segments.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(ClientError::Usage(format!("`{bad}` is not a valid name")));
        }
        let mut url = self.parts.base.clone();
        url.path_segments_mut()
            .map_err(|()| ClientError::Usage("the service's address has no path".to_owned()))?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// `GET /healthz`: whether the process is alive.
    ///
    /// # Errors
    /// [`ClientError::Transport`].
    pub async fn health(&self) -> Result<Answer, ClientError> {
        self.send("GET", "/healthz", &[], Bytes::new()).await
    }

    /// `GET /readyz`: whether the service accepts requests; the body names missing parts.
    ///
    /// # Errors
    /// [`ClientError::Transport`].
    pub async fn ready(&self) -> Result<Answer, ClientError> {
        self.send("GET", "/readyz", &[], Bytes::new()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_built_segment_by_segment() {
        let client = Client::new("http://localhost:8000/prefix/").unwrap();
        let url = |segments: &[&str]| client.url(segments).map(|url| url.to_string());
        assert_eq!(
            url(&["api", "a/b?c#d é"]).unwrap(),
            "http://localhost:8000/prefix/api/a%2Fb%3Fc%23d%20%C3%A9"
        );
        assert!(url(&["api", ".."]).is_err() && url(&["api", ""]).is_err());
        assert_eq!(client.raw_url("/api/x?y=1").unwrap().as_str(), "http://localhost:8000/prefix/api/x?y=1");
        assert!(client.raw_url("api").is_err());
        assert!(client.raw_url("@example.org/").is_err());
    }

    #[test]
    fn several_spellings_of_an_address_are_one_service() {
        let client = Client::new("http://localhost:80/a/").unwrap();
        assert!(client.is_at("http://LOCALHOST/a") && client.is_at(" http://localhost/a/ "));
        for other in ["http://localhost", "https://localhost/a", "http://localhost:8000/a", "localhost", ""] {
            assert!(!client.is_at(other), "{other}");
        }
    }

    #[test]
    fn a_new_visitor_has_no_cookies_and_a_clone_shares_them() {
        let client = Client::new("http://localhost").unwrap();
        client.set_cookie("callboard_visitor", "1");
        assert_eq!(client.clone().cookie("callboard_visitor").as_deref(), Some("1"));
        assert_eq!(client.new_visitor().cookie("callboard_visitor"), None);
        let without = Client::builder("http://localhost").keep_cookies(false).build().unwrap();
        without.set_cookie("a", "1");
        assert_eq!(without.cookie("a"), None);
    }

    #[test]
    fn nothing_secret_is_printed() {
        let client =
            Client::builder("http://localhost").service_token("canary".to_owned().into()).build().unwrap();
        client.set_cookie("a", "canary");
        assert!(!format!("{client:?}").contains("canary"));
    }
}
