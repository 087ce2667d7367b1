//! Security headers for all alias responses.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_DNS_PREFETCH_CONTROL, X_FRAME_OPTIONS,
};
use actix_web::middleware::Next;
use bundle::FILE_POLICY;

use super::session;
use crate::http::guard;

const PERMISSIONS: &str = "browsing-topics=(), bluetooth=(), camera=(), cross-origin-isolated=(), display-capture=(), \
                           geolocation=(), hid=(), microphone=(), midi=(), payment=(), \
                           publickey-credentials-get=(), serial=(), usb=()";

/// One year, for the apps domain and all its subdomains.
const TRANSPORT: &str = "max-age=31536000; includeSubDomains";

/// Headers that every response has; handlers may set other values.
pub(in crate::http) fn defaults() -> [(HeaderName, &'static str); 9] {
    let name = HeaderName::from_static;
    [
        // App pages have their own policy.
        (CONTENT_SECURITY_POLICY, FILE_POLICY),
        (REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (name("permissions-policy"), PERMISSIONS),
        (name("cross-origin-opener-policy"), "same-origin"),
        (name("cross-origin-resource-policy"), "same-origin"),
        (name("origin-agent-cluster"), "?1"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_DNS_PREFETCH_CONTROL, "off"),
        (CACHE_CONTROL, "private, no-store"),
    ]
}

/// Marks a response with a document that other origins may frame; its policy lists the origins.
pub(super) struct InFrames;

pub(super) async fn middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let over_https =
        guard::of_service(&request).is_some_and(|app| app.is_asked_over_https(request.request()));
    let mut response = next.call(request).await?;
    let asked = response.request().clone();
    let in_frames = response.response().extensions().contains::<InFrames>();
    let headers = response.headers_mut();
    session::set_next_cookie(&asked, headers);
    set(headers, over_https);
    if in_frames {
        headers.remove(X_FRAME_OPTIONS);
    }
    Ok(response)
}

/// Sets the headers that a response lacks.
pub(in crate::http) fn set(headers: &mut HeaderMap, over_https: bool) {
    for (name, value) in defaults() {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if over_https {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(TRANSPORT));
    }
}
