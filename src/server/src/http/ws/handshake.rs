//! The WebSocket handshake, without authentication.
//!
//! Source: RFC 6455, section 4.2.

use actix_web::http::header::{
    HeaderMap, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use wire::ErrorCode;

use crate::http::error::ApiError;
use crate::http::guard::offered_protocols;

/// The subprotocol for clients that offer a token in one and need another to be chosen.
const PLAIN: &str = "callboard";
/// The characters in a key: 16 bytes in base64.
const KEY: usize = 24;

/// Returns the reason why a request is not a handshake, if any.
pub(super) fn check(request: &HttpRequest) -> Result<(), &'static str> {
    let headers = request.headers();
    let upgrade = headers.get_all(UPGRADE).filter_map(|line| line.to_str().ok());
    let mut upgrade = upgrade.flat_map(|line| line.split(',').map(str::trim));
    if !upgrade.any(|protocol| protocol.eq_ignore_ascii_case("websocket")) {
        return Err("This path is a websocket: the header `Upgrade: websocket` is missing.");
    }
    if !request.head().upgrade() {
        return Err("This path is a websocket: the header `Connection: Upgrade` is missing.");
    }
    if only(headers, &SEC_WEBSOCKET_VERSION) != Some(b"13") {
        return Err("This path is a websocket: the header must be `Sec-WebSocket-Version: 13`.");
    }
    let is_key = |key: &[u8]| key.len() == KEY && key.is_ascii() && key.ends_with(b"==");
    if !only(headers, &SEC_WEBSOCKET_KEY).is_some_and(is_key) {
        return Err("This path is a websocket: the header `Sec-WebSocket-Key` must be 16 bytes in base64.");
    }
    Ok(())
}

fn only<'a>(headers: &'a HeaderMap, name: &actix_web::http::header::HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name);
    values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
}

/// The response to a request that is not a handshake.
pub(super) fn refusal(problem: &str) -> HttpResponse {
    let mut response = ApiError::new(ErrorCode::SocketUpgradeRequired).with_message(problem).error_response();
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

/// Chooses a subprotocol, because a browser requires one of those it offers. If possible, the token is not sent back.
pub(super) fn choose_protocol(request: &HttpRequest, response: &mut HttpResponse) {
    let offered = || offered_protocols(request.headers());
    let bearer = || offered().find(|protocol| protocol.starts_with("bearer."));
    let chosen = offered().find(|protocol| *protocol == PLAIN).or_else(bearer);
    if let Some(value) = chosen.and_then(|chosen| HeaderValue::from_str(chosen).ok()) {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn handshake() -> TestRequest {
        TestRequest::get()
            .insert_header(("Upgrade", "WebSocket"))
            .insert_header(("Connection", "keep-alive, Upgrade"))
            .insert_header(("Sec-WebSocket-Version", "13"))
            .insert_header(("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="))
    }

    #[test]
    fn an_incomplete_handshake_is_rejected() {
        assert_eq!(check(&handshake().to_http_request()), Ok(()));
        for (name, value) in [
            ("Upgrade", "h2c"),
            ("Upgrade", "websockets"),
            ("Connection", "keep-alive"),
            ("Sec-WebSocket-Version", "8"),
            ("Sec-WebSocket-Version", "13, 8"),
            ("Sec-WebSocket-Key", ""),
            ("Sec-WebSocket-Key", "c2hvcnQ="),
        ] {
            let request = handshake().insert_header((name, value)).to_http_request();
            assert!(check(&request).is_err(), "{name}: {value}");
        }
        let twice = handshake().append_header(("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="));
        assert!(check(&twice.to_http_request()).is_err());
        assert!(check(&TestRequest::get().to_http_request()).is_err());
    }

    #[test]
    fn the_plain_subprotocol_is_chosen_before_one_with_a_token() {
        for (offered, chosen) in [
            ("bearer.t", Some("bearer.t")),
            ("bearer.t, callboard", Some("callboard")),
            ("callboard", Some("callboard")),
            ("other, bearer.t", Some("bearer.t")),
            ("other", None),
        ] {
            let request = handshake().insert_header(("Sec-WebSocket-Protocol", offered)).to_http_request();
            let mut response = HttpResponse::Ok().finish();
            choose_protocol(&request, &mut response);
            let value = response.headers().get(SEC_WEBSOCKET_PROTOCOL).map(|value| value.to_str().unwrap());
            assert_eq!(value, chosen, "{offered}");
        }
    }
}
