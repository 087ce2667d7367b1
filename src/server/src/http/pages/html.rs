//! Renders pages and sets their security headers.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use minijinja::{Environment, Value, context};
use wire::ErrorCode;

use super::assets;
use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// Allows only our own files and frames by `ancestors`, and keeps text from becoming code or markup.
fn policy(images: &str, ancestors: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// The pages that may embed ours in a frame.
pub(super) enum FrameAncestors<'a> {
    /// Pages with these origins.
    Origins(&'a [String]),
    /// Every page.
    Anyone,
}

/// Our own images and those on other hosts, which widgets name.
const ALL_IMAGES: &str = "'self' data: https:";

/// Device permissions for a page: at most the microphone, in frames with these origins.
fn permissions(microphone: &str) -> String {
    format!("camera=(), microphone=({microphone}), geolocation=(), payment=(), usb=()")
}

/// Renders a template from `src/server/pages` with escaped values.
pub(super) fn page(status: StatusCode, name: &str, filling: Value) -> ApiResult<HttpResponse> {
    let missing = || ApiError::new(ErrorCode::Internal).with_cause(format!("no template {name}"));
    let template = assets::template(name).ok_or_else(missing)?;
    let text = str::from_utf8(&template.data).map_err(|error| internal(name, &error))?;
    // The `.html` suffix enables escaping.
    let html =
        Environment::new().render_named_str(name, text, filling).map_err(|error| internal(name, &error))?;
    Ok(HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((CONTENT_SECURITY_POLICY, policy("'self'", "'none'")))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .insert_header(("Permissions-Policy", permissions("")))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .body(html))
}

/// Allows images on other hosts, which widgets name. The page refuses those that its thread does not allow; model text
/// never becomes an image.
pub(super) fn allow_images(page: &mut HttpResponse) {
    set(page, CONTENT_SECURITY_POLICY, &policy(ALL_IMAGES, "'none'"));
}

/// Allows the hosted widget, or the built-in chat in its place. The widget's script loads more from its CDN and opens a
/// CDN frame.
pub(super) fn allow_widget(page: &mut HttpResponse, cdn: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self' {cdn}; frame-src {cdn}; connect-src 'self'; img-src {ALL_IMAGES} {cdn}; \
         style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    set(page, CONTENT_SECURITY_POLICY, &policy);
}

/// Allows these pages, in addition to our own, to frame the page.
pub(super) fn allow_frames(page: &mut HttpResponse, allowed: &FrameAncestors<'_>) {
    let ancestors = match allowed {
        FrameAncestors::Origins(origins) => format!("'self' {}", origins.join(" ")),
        FrameAncestors::Anyone => "*".to_owned(),
    };
    set(page, CONTENT_SECURITY_POLICY, &policy(ALL_IMAGES, &ancestors));
    page.headers_mut().remove("x-frame-options");
    page.headers_mut().remove("cross-origin-opener-policy");
}

/// Allows the microphone for dictation, also in a frame with the origin `frame`.
pub(super) fn allow_microphone(page: &mut HttpResponse, frame: Option<&str>) {
    let frame = frame.map(|origin| format!(" \"{origin}\"")).unwrap_or_default();
    set(page, HeaderName::from_static("permissions-policy"), &permissions(&format!("self{frame}")));
}

/// Allows a form on the page whose response redirects to this origin: browsers check both.
pub(super) fn allow_form(page: &mut HttpResponse, origin: &str) {
    let policy = policy("'self'", "'none'");
    set(
        page,
        CONTENT_SECURITY_POLICY,
        &policy.replace("form-action 'none'", &format!("form-action 'self' {origin}")),
    );
    // Without a referrer, browsers do not tell the server that the form comes from our page.
    set(page, HeaderName::from_static("referrer-policy"), "same-origin");
}

/// Sets a header. An invalid value keeps the stricter default.
fn set(page: &mut HttpResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        page.headers_mut().insert(name, value);
    }
}

/// An error page with the status of the refusal. `root` is the relative URL of the service's home page.
pub(super) fn closed(error: &ApiError, title: &str, text: &str, root: &str) -> ApiResult<HttpResponse> {
    // Logs and counts the error as the API does.
    let answer = error.error_response();
    let again = answer.status().is_server_error();
    let id = if again { request_id::current() } else { None };
    let filling = context! { title, text, again, root, request_id => id, code => error.code().as_str() };
    let mut page = page(answer.status(), "closed.html", filling)?;
    keep_headers(&mut page, &answer);
    Ok(page)
}

/// Copies the refusal's headers to its page.
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
