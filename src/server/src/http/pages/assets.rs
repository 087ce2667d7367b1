//! The files that pages are made of.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{Embed, EmbeddedFile};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::etag;

/// Everything in `src/server/pages`. A debug build reads the folder each time, so that a change is seen at once.
#[derive(Embed)]
#[folder = "pages"]
struct Pages;

/// A template, or nothing when there is none of this name.
pub(super) fn template(name: &str) -> Option<EmbeddedFile> {
    Pages::get(name)
}

/// One file. A browser asks each time whether it is still the same, so that a page is never made of two versions.
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

/// A file that pages of other sites load with a tag.
pub(super) fn for_any_site(name: &str, request: &HttpRequest) -> ApiResult<HttpResponse> {
    let mut answer = answer(name, request)?;
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    answer.headers_mut().insert(policy, HeaderValue::from_static("cross-origin"));
    Ok(answer)
}

/// By the end of the name; another file is none of ours.
fn kind(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}
