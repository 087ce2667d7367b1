//! Determines the name under which a request reaches the service, and the base URL for links.

use actix_web::HttpRequest;
use actix_web::dev::RequestHead;
use actix_web::http::header::HeaderMap;
use actix_web::http::{Version, header};
use auth::host::{OwnNames, RequestHost};
use wire::ErrorCode;

use super::error::{ApiError, ApiResult};
use super::{App, guard};

/// Headers that show that a proxy forwarded a request.
const FORWARDED: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Checks that a request names exactly one readable host, and the same host in its target.
///
/// # Errors
/// 400 `request.invalid_host`.
pub(super) fn check_host(head: &RequestHead) -> ApiResult<()> {
    let host = match only(&head.headers, header::HOST.as_str()) {
        SingleHeader::Missing if head.version <= Version::HTTP_10 => return Ok(()),
        SingleHeader::One(text) => RequestHost::parse(text),
        SingleHeader::Missing | SingleHeader::Unreadable => None,
    };
    let in_target = head.uri.authority().map(|authority| RequestHost::parse(authority.as_str()));
    match host {
        Some(host) if in_target.is_none_or(|target| target.as_ref() == Some(&host)) => Ok(()),
        _ => Err(ApiError::new(ErrorCode::InvalidHost)),
    }
}

enum SingleHeader<'a> {
    Missing,
    One(&'a str),
    Unreadable,
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> SingleHeader<'a> {
    let mut values = headers.get_all(name);
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => SingleHeader::Missing,
        (Some(Ok(text)), None) => SingleHeader::One(text),
        _ => SingleHeader::Unreadable,
    }
}

/// The requested host; `None` for HTTP/1.0 without one.
fn host_of(request: &HttpRequest) -> Option<RequestHost> {
    match only(request.headers(), header::HOST.as_str()) {
        SingleHeader::One(text) => RequestHost::parse(text),
        SingleHeader::Missing | SingleHeader::Unreadable => None,
    }
}

impl App {
    fn own_names(&self) -> OwnNames<'_> {
        let http = &self.config().http;
        OwnNames {
            public: http.public_base_url.as_ref().and_then(|base| base.url().host_str()),
            apps: &self.config().apps.domain,
            listener: self.address(),
        }
    }

    /// Whether the request uses one of the service's own names. HTTP/1.0 has no `Host`, but no browser uses HTTP/1.0.
    pub(super) fn is_asked_by_name(&self, request: &HttpRequest) -> bool {
        host_of(request).is_none_or(|host| self.own_names().include(&host, guard::peer(request)))
    }

    /// The requested scheme, host and port. A trusted proxy decides the scheme.
    fn asked_origin(&self, request: &HttpRequest) -> String {
        let scheme = if self.is_asked_over_https(request) { "https" } else { "http" };
        match host_of(request) {
            Some(host) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{}", self.address()),
        }
    }

    /// Whether the request came over TLS, to this port or to a trusted proxy.
    pub(super) fn is_asked_over_https(&self, request: &HttpRequest) -> bool {
        let says = || matches!(only(request.headers(), "x-forwarded-proto"), SingleHeader::One("https"));
        self.tls().is_some() || (self.is_behind_trusted_proxy(request) && says())
    }

    /// Whether [`Self::public_base`] uses https.
    pub(super) fn is_public_over_https(&self, request: &HttpRequest) -> bool {
        match &self.config().http.public_base_url {
            Some(base) => base.as_str().starts_with("https://"),
            None => self.is_asked_over_https(request),
        }
    }

    fn is_behind_trusted_proxy(&self, request: &HttpRequest) -> bool {
        let peer = guard::peer(request).to_canonical();
        self.config().http.trusted_proxies.iter().any(|network| network.contains(&peer))
    }

    /// The base URL for share links in responses. Without a configured base it comes from the request, since only the
    /// caller sees it.
    pub(super) fn public_base(&self, request: &HttpRequest) -> String {
        match &self.config().http.public_base_url {
            Some(base) => base.as_str().to_owned(),
            None => self.asked_origin(request),
        }
    }

    /// The URL of the app with this alias, with the scheme and port of [`Self::public_base`].
    pub(super) fn url_of_alias(&self, request: &HttpRequest, alias: &str) -> String {
        url_of_alias(&self.public_base(request), alias, &self.config().apps.domain)
    }

    /// Whether this origin is our own for the request's browser. A service with a local base URL also accepts its
    /// loopback names, each for requests under that name.
    pub(super) fn is_own_origin(&self, request: &HttpRequest, origin: &str) -> bool {
        let is_asked = || self.is_asked_by_name(request) && origin == self.asked_origin(request);
        match &self.config().http.public_base_url {
            None => is_asked(),
            Some(base) if origin == base.origin() => true,
            Some(base) => {
                let base = base.url().host_str().and_then(RequestHost::parse);
                let hosts = [base, host_of(request)];
                hosts.iter().all(|host| host.as_ref().is_some_and(RequestHost::is_loopback)) && is_asked()
            }
        }
    }

    /// The base URL for links that leave the service, such as in emails or to an identity provider; `None` without one.
    /// A caller must not choose the target of a link that another person receives, so request headers count only for
    /// local requests.
    pub(super) fn link_base(&self, request: &HttpRequest) -> Option<String> {
        if let Some(base) = &self.config().http.public_base_url {
            return Some(base.as_str().to_owned());
        }
        let forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
        let host = host_of(request)?;
        let local = self.own_names().is_local(&host, guard::peer(request), forwarded);
        local.then(|| self.asked_origin(request))
    }

    /// The service's name in emails with links below `base`.
    pub(super) fn name_in_mail(base: Option<&str>) -> &str {
        base.and_then(|base| base.split_once("://")).map_or("Callboard", |(_, host)| host)
    }

    /// Whether a browser accepts `Secure` cookies from this response: over https, or on this machine.
    pub(super) fn keeps_cookies(&self, request: &HttpRequest) -> bool {
        let is_local = |host: &RequestHost| host.is_loopback() || host.is_within("localhost");
        self.is_public_over_https(request) || host_of(request).as_ref().is_none_or(is_local)
    }
}

fn url_of_alias(base: &str, alias: &str, domain: &str) -> String {
    let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
    let authority = rest.split('/').next().unwrap_or_default();
    match RequestHost::parse(authority).and_then(|host| host.port()) {
        Some(port) => format!("{scheme}://{alias}.{domain}:{port}"),
        None => format!("{scheme}://{alias}.{domain}"),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn verdict(version: Version, target: &str, hosts: &[&str]) -> bool {
        let mut request = TestRequest::with_uri(target).version(version);
        for host in hosts {
            request = request.append_header((header::HOST, *host));
        }
        check_host(request.to_srv_request().head()).is_ok()
    }

    #[test]
    fn an_alias_has_the_scheme_and_the_port_of_the_base() {
        for (base, url) in [
            ("http://127.0.0.1:8000", "http://a.apps.test:8000"),
            ("https://desk.example.org", "https://a.apps.test"),
            ("https://desk.example.org:8443/base", "https://a.apps.test:8443"),
            ("http://[::1]:80", "http://a.apps.test:80"),
        ] {
            assert_eq!(url_of_alias(base, "a", "apps.test"), url);
        }
    }

    #[test]
    fn a_request_has_exactly_one_valid_host() {
        let http = Version::HTTP_11;
        assert!(verdict(http, "/", &["localhost:8000"]));
        assert!(verdict(http, "http://LOCALHOST/", &["localhost"]));
        let refused: [&[&str]; 6] =
            [&[], &[""], &["a", "a"], &["a", "b"], &["evil.test/x?.localhost"], &["a b"]];
        for hosts in refused {
            assert!(!verdict(http, "/", hosts), "{hosts:?}");
        }
        assert!(!verdict(http, "http://evil.test/", &["localhost"]), "the target differs");
        assert!(!verdict(http, "http://user@localhost/", &["localhost"]));
        assert!(verdict(Version::HTTP_10, "/", &[]));
        assert!(!verdict(Version::HTTP_10, "/", &["a/b"]));
    }
}
