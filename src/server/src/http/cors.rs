//! Cross-origin access, exactly as `SERVICE_CORS_ALLOW_ORIGINS` lists it: no patterns, no reflection.
//!
//! CORS only decides which responses a browser lets a page read. Cookie-authenticated writes have their own origin
//! check, [`is_foreign`]; unauthenticated writes have [`is_denied`].

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError};
use config::AllowOrigins;
use wire::ErrorCode;

use super::error::ApiError;
use super::{App, guard};

/// Maximum seconds that a browser may cache a preflight.
const MAX_AGE: &str = "600";
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, HEAD";
const EXPOSED: &str = "X-Chat-Stream-Id, X-Request-Id, X-Next-Cursor, Retry-After, Idempotency-Replayed";

/// The rights of a page by its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OriginRights {
    /// No `Origin` header: not a browser, or our own page.
    NotAsked,
    /// A listed origin, with cookies.
    Listed(HeaderValue),
    /// Any origin, without cookies.
    Anyone,
    /// An origin that is not listed.
    Denied,
}

fn judge(allowed: &AllowOrigins, headers: &HeaderMap) -> OriginRights {
    let mut origins = headers.get_all(header::ORIGIN);
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return if headers.contains_key(header::ORIGIN) {
            OriginRights::Denied
        } else {
            OriginRights::NotAsked
        };
    };
    match allowed {
        AllowOrigins::Any => OriginRights::Anyone,
        AllowOrigins::List(list) if list.iter().any(|listed| listed.as_bytes() == origin.as_bytes()) => {
            OriginRights::Listed(origin.clone())
        }
        AllowOrigins::List(_) => OriginRights::Denied,
    }
}

/// Whether the request comes from a page that is neither ours nor listed.
pub(super) fn is_foreign(app: &App, request: &HttpRequest) -> bool {
    match judge(&app.config().http.allow_origins, request.headers()) {
        OriginRights::NotAsked | OriginRights::Listed(_) => false,
        OriginRights::Anyone | OriginRights::Denied => !is_ours(app, request),
    }
}

/// Whether the request comes from another site's page, listed or not. Listed pages may use the API with their own
/// token, but must not gain rights through our cookies.
pub(super) fn is_not_ours(app: &App, request: &HttpRequest) -> bool {
    // Browsers also send this header for navigations and for requests without `Origin`.
    let site = request.headers().get("sec-fetch-site");
    let elsewhere = site.is_some_and(|site| site != "same-origin" && site != "none");
    elsewhere || (request.headers().contains_key(header::ORIGIN) && !is_ours(app, request))
}

/// Whether an unauthenticated request comes from a page that is neither ours nor allowed by the CORS setting.
pub(super) fn is_denied(app: &App, request: &HttpRequest) -> bool {
    let verdict = judge(&app.config().http.allow_origins, request.headers());
    verdict == OriginRights::Denied && !is_ours(app, request)
}

fn is_ours(app: &App, request: &HttpRequest) -> bool {
    let mut origins = request.headers().get_all(header::ORIGIN).map(|origin| origin.to_str().ok());
    let (origin, other) = (origins.next().flatten(), origins.next());
    other.is_none() && origin.is_some_and(|origin| app.is_own_origin(request, origin))
}

pub(super) async fn middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let verdict = match guard::of_service(&request) {
        Some(app) => judge(&app.config().http.allow_origins, request.headers()),
        None => OriginRights::Denied,
    };
    let preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if preflight {
        let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        request.into_response(answer_preflight(&verdict, asked)).map_into_right_body()
    } else {
        next.call(request).await?.map_into_left_body()
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    match verdict {
        OriginRights::Listed(origin) => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
        OriginRights::Anyone => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
        OriginRights::NotAsked | OriginRights::Denied => {}
    }
    Ok(response)
}

fn answer_preflight(verdict: &OriginRights, asked: Option<HeaderValue>) -> HttpResponse {
    if !matches!(verdict, OriginRights::Listed(_) | OriginRights::Anyone) {
        return ApiError::new(ErrorCode::OriginMismatch).error_response();
    }
    let mut response = HttpResponse::NoContent();
    response.insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS));
    response.insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE));
    if let Some(asked) = asked {
        response.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, asked));
    }
    response
        .insert_header((header::VARY, HeaderName::from_static("access-control-request-headers").as_str()));
    response.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origins: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn only_the_exact_origin_is_listed() {
        let allowed = AllowOrigins::List(vec!["https://app.example.org".to_owned()]);
        assert!(matches!(judge(&allowed, &headers(&["https://app.example.org"])), OriginRights::Listed(_)));
        assert_eq!(judge(&allowed, &headers(&[])), OriginRights::NotAsked);
        for other in [
            "https://app.example.org.evil.com",
            "https://evil-app.example.org",
            "https://sub.app.example.org",
            "https://app.example.org:444",
            "http://app.example.org",
            "https://APP.example.org",
            "https://app.example.org/",
            "null",
            "",
        ] {
            assert_eq!(judge(&allowed, &headers(&[other])), OriginRights::Denied, "{other}");
        }
        let twice = ["https://app.example.org", "https://app.example.org"];
        assert_eq!(judge(&allowed, &headers(&twice)), OriginRights::Denied);
        assert_eq!(judge(&AllowOrigins::Any, &headers(&["https://anything.example"])), OriginRights::Anyone);
    }
}
