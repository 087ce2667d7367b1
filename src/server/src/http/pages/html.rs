//! A page as an answer: filled, and with what the browser is to know about it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use minijinja::{Environment, Value};
use wire::ErrorCode;

use super::assets;
use crate::http::error::{ApiError, ApiResult};

/// Nothing but our own files, no frame around it, and no text becomes code or markup.
fn policy(images: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Who may have one of our pages in a frame.
pub(super) enum Around<'a> {
    /// Pages of these origins.
    Origins(&'a [String]),
    /// Every page.
    Anyone,
}

/// What no page of ours asks for.
const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), payment=(), usb=()";
/// Fills a template of `src/server/pages`; what it is filled with is escaped.
pub(super) fn page(status: StatusCode, name: &str, filling: Value) -> ApiResult<HttpResponse> {
    let missing = || ApiError::new(ErrorCode::Internal).with_cause(format!("no template {name}"));
    let template = assets::template(name).ok_or_else(missing)?;
    let text = str::from_utf8(&template.data).map_err(|error| internal(name, &error))?;
    // The name ends with .html, which is what turns escaping on.
    let html =
        Environment::new().render_named_str(name, text, filling).map_err(|error| internal(name, &error))?;
    Ok(HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((CONTENT_SECURITY_POLICY, policy("'self'")))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .insert_header(("Permissions-Policy", PERMISSIONS))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .body(html))
}

/// Allows images of other hosts, which widgets name. The page refuses those that its thread does not allow; text of a model never
/// becomes an image.
pub(super) fn allow_images(page: &mut HttpResponse) {
    if let Ok(policy) = HeaderValue::from_str(&policy("'self' data: https:")) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
}

/// Allows the hosted widget, whose script loads more of its CDN and stands in a frame of it.
pub(super) fn allow_widget(page: &mut HttpResponse, cdn: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self' {cdn}; frame-src {cdn}; connect-src 'self'; img-src 'self' data: {cdn}; \
         style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
}

/// Allows frames around the page, besides our own pages.
pub(super) fn allow_frames(page: &mut HttpResponse, around: &Around<'_>) {
    let around = match around {
        Around::Origins(origins) => format!("'self' {}", origins.join(" ")),
        Around::Anyone => "*".to_owned(),
    };
    let policy =
        policy("'self' data: https:").replace("frame-ancestors 'none'", &format!("frame-ancestors {around}"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    page.headers_mut().remove("x-frame-options");
    page.headers_mut().remove("cross-origin-opener-policy");
}

/// Allows the microphone, for dictation; `frame`: in a frame of this origin, too.
pub(super) fn allow_microphone(page: &mut HttpResponse, frame: Option<&str>) {
    let frame = frame.map(|origin| format!(" \"{origin}\"")).unwrap_or_default();
    let policy = PERMISSIONS.replace("microphone=()", &format!("microphone=(self{frame})"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(HeaderName::from_static("permissions-policy"), policy);
    }
}

/// What the headers of a refusal say stands above its page too.
pub(super) fn keep_headers(page: &mut HttpResponse, refusal: &HttpResponse) {
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = refusal.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
}

fn internal(name: &str, error: &dyn std::error::Error) -> ApiError {
    ApiError::new(ErrorCode::Internal).with_cause(format!("{name}: {error}"))
}
