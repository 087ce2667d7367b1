//! The credential of a WebSocket handshake, where a browser cannot set its own headers.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, SEC_WEBSOCKET_PROTOCOL};
use url::form_urlencoded;

use super::credential::{self, Credential};

/// Prefix of a subprotocol that carries a token.
const BEARER: &str = "bearer.";

/// Reads the credential from the first source that has one: `Authorization`, the query, the subprotocols.
pub(super) fn read(request: &HttpRequest) -> Credential<'_> {
    read_from(request.headers(), request.query_string())
}

fn read_from<'a>(headers: &'a HeaderMap, query: &'a str) -> Credential<'a> {
    let header = credential::read(headers);
    let parameters = form_urlencoded::parse(query.as_bytes());
    let parameters = parameters.filter(|(name, _)| name == "token" || name == "access_token");
    let in_query = the_only(parameters.map(|(_, token)| token).filter(|token| !token.is_empty()));
    match (header, in_query) {
        // Two different tokens in the query are rejected even if the header is valid.
        (_, Credential::Unreadable) => Credential::Unreadable,
        (Credential::None, Credential::None) => {
            let offered = offered_protocols(headers).filter_map(|protocol| protocol.strip_prefix(BEARER));
            the_only(offered.filter(|token| !token.is_empty()).map(Cow::from))
        }
        (Credential::None, in_query) => in_query,
        (header, _) => header,
    }
}

/// Returns the only token. Repeated tokens are accepted if they are equal.
fn the_only<'a>(mut tokens: impl Iterator<Item = Cow<'a, str>>) -> Credential<'a> {
    let Some(first) = tokens.next() else { return Credential::None };
    if tokens.all(|token| token == first) { Credential::Bearer(first) } else { Credential::Unreadable }
}

/// The subprotocols offered by the client, in its order.
pub(in crate::http) fn offered_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',').map(str::trim)).filter(|protocol| !protocol.is_empty())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    fn shown(header: Option<&'static str>, query: &str, protocols: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.append(AUTHORIZATION, HeaderValue::from_static(header));
        }
        for line in protocols {
            headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(line));
        }
        match read_from(&headers, query) {
            Credential::Bearer(token) => token.into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_first_source_with_a_credential_is_used() {
        assert_eq!(shown(Some("Bearer h"), "token=t", &["bearer.p"]), "h");
        assert_eq!(shown(None, "token=t", &["bearer.p"]), "t");
        assert_eq!(shown(None, "access_token=a&x=1", &["bearer.p"]), "a");
        assert_eq!(shown(None, "x=1", &["callboard, bearer.p"]), "p");
        assert_eq!(shown(None, "", &["callboard", "bearer.a.b.c"]), "a.b.c");
        assert_eq!(
            shown(Some("Bearer "), "token=&access_token=a%2Bb", &[]),
            "a+b",
            "an empty token is ignored"
        );
        for nothing in ["", "token=", "token=&access_token=", "Token=t"] {
            assert_eq!(shown(None, nothing, &["callboard", "bearer.", "Bearer.x"]), "None", "{nothing}");
        }
        assert_eq!(shown(Some("Basic x"), "token=t", &[]), "OtherScheme", "the header is there");
    }

    #[test]
    fn conflicting_credentials_are_unreadable() {
        for query in ["token=a&access_token=b", "token=a&token=b", "access_token=a&token=a&token=b"] {
            assert_eq!(shown(None, query, &[]), "Unreadable", "{query}");
            assert_eq!(shown(Some("Bearer a"), query, &[]), "Unreadable", "{query}");
        }
        assert_eq!(shown(None, "token=a&access_token=a", &[]), "a");
        assert_eq!(shown(None, "", &["bearer.a, bearer.b"]), "Unreadable");
        assert_eq!(shown(None, "", &["bearer.a", "bearer.a"]), "a");
    }
}
