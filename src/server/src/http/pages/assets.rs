//! Embedded files for pages.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{Embed, EmbeddedFile};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::etag;

/// Everything in `src/server/pages`. A debug build reads the folder each time, so that changes are visible at once.
#[derive(Embed)]
#[folder = "pages"]
struct Pages;

/// Returns a template by name, if it exists.
pub(super) fn template(name: &str) -> Option<EmbeddedFile> {
    Pages::get(name)
}

/// Serves a file. Browsers revalidate it each time, so that a page never mixes two versions.
pub(super) async fn file(path: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    answer(&path, &request)
}

fn answer(path: &str, request: &HttpRequest) -> ApiResult<HttpResponse> {
    let not_found = || ApiError::new(ErrorCode::RouteNotFound);
    let kind = kind(path).ok_or_else(not_found)?;
    let file = Pages::get(&format!("assets/{path}")).ok_or_else(not_found)?;
    let tag = format!("\"{}\"", hex::encode(file.metadata.sha256_hash().get(..16).unwrap_or_default()));
    let mut answer =
        if etag::is_known(request, &tag) { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer
        .insert_header((ETAG, tag.as_str()))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Cross-Origin-Resource-Policy", "same-origin"));
    if etag::is_known(request, &tag) {
        return Ok(answer.finish());
    }
    Ok(answer.insert_header((CONTENT_TYPE, kind)).body(file.data.into_owned()))
}

/// Serves a file that pages on other sites load with a tag.
pub(super) fn for_any_site(name: &str, request: &HttpRequest) -> ApiResult<HttpResponse> {
    let mut answer = answer(name, request)?;
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    answer.headers_mut().insert(policy, HeaderValue::from_static("cross-origin"));
    Ok(answer)
}

/// The content type by file extension; other files are not served.
fn kind(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}
