//! Handles every request and response: request id, host check, and content types that browsers must not guess.
//!
//! A request refused here may be for an app host, because the host itself may be unreadable. The response therefore has
//! the headers of app responses, which are also right on the central host. Strict-Transport-Security is absent because
//! it would bind every host below the central one.

use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::http::header::{HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use actix_web::middleware::Next;
use actix_web::{Error, ResponseError};
use tracing::Instrument;

use super::answered::{ReportedBody, ResponseEnd};
use super::interim::Expectation;
use super::{alias, guard, origin, refused, request_id, surplus};

/// Maximum time that a request waits for one SQL statement before it is answered with 503.
pub(super) const STATEMENT_LIMIT: Duration = Duration::from_secs(10);

pub(super) async fn middleware(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<ReportedBody>, Error> {
    let end = ResponseEnd::new(&request);
    let made = guard::of_service(&request).and_then(|app| app.ids().uuid().ok());
    let id = made.map(|id| id.simple().to_string()).unwrap_or_default();
    // The path without its query: a query may carry a token.
    let path = without_secret(request.path());
    let span = tracing::info_span!("request", id = %id, method = %request.method(), path);
    let header = HeaderValue::from_str(&id);
    let checked = span.in_scope(|| refused::check(&request).and_then(|()| surplus::check(&request)));
    let mut response = match checked.and_then(|()| origin::check_host(request.head())) {
        Ok(()) => {
            let expectation = Expectation::for_request(&mut request);
            let answering = next.call(request).instrument(span.clone());
            let answered =
                request_id::with(id, store::with_statement_limit(STATEMENT_LIMIT, answering)).await;
            expectation.end();
            answered?.map_into_boxed_body()
        }
        Err(refused) => {
            let mut response = request.into_response(refused.error_response());
            alias::set_headers(response.headers_mut(), false);
            response
        }
    };
    if refused::is_last(response.request()) || surplus::is_surplus(response.request()) {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    let headers = response.headers_mut();
    if let Ok(header) = header {
        headers.insert(HeaderName::from_static("x-request-id"), header);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
    Ok(response.map_body(|_, body| end.follows(body)))
}

/// Header lines with the same defaults, without a request id, for responses sent before a request is parsed.
pub(crate) fn header_lines() -> String {
    let lines = alias::default_headers().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("{}{X_CONTENT_TYPE_OPTIONS}: nosniff\r\n", lines.concat())
}

/// The number of segments before the secret in `/api/auth/magic/{token}`.
const FIXED_SEGMENTS: usize = 3;

/// Returns the loggable part of a path: the end of a sign-in link is a secret.
fn without_secret(path: &str) -> &str {
    // The router decodes the path; a well-meaning client never encodes the fixed segments.
    let fixed = path.match_indices('/').nth(FIXED_SEGMENTS).map_or(path.len(), |(at, _)| at);
    let path = match path.find('%').filter(|at| *at < fixed) {
        Some(at) => path.get(..at).unwrap_or_default(),
        None => path,
    };
    // Letters and slashes may be mistyped, so only the start of such a path is logged.
    let clean = path.to_ascii_lowercase();
    match clean.find("/magic") {
        Some(at) if clean.contains("auth") => path.get(..at).unwrap_or_default(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_a_link_is_not_logged() {
        for path in
            ["/api/auth/magic/abc", "/API/Auth/Magic/abc", "//api/auth//magic/abc", "/api/auth/magic/"]
        {
            assert!(!without_secret(path).contains("abc") && without_secret(path).len() > 8, "{path}");
        }
        assert_eq!(without_secret("/api/auth/%6dagic/abc"), "/api/auth/");
        assert_eq!(without_secret("/%61pi/auth/magic/abc"), "/");
        assert_eq!(without_secret("/api/workflows/magic"), "/api/workflows/magic");
        assert_eq!(without_secret("/api/runs/1/inputs/a%20b"), "/api/runs/1/inputs/a%20b");
        assert_eq!(without_secret("/api/auth/me"), "/api/auth/me");
    }
}
