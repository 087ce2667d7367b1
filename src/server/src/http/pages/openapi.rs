//! The description of the HTTP interface, as `cargo xtask docs` writes it.

use std::sync::LazyLock;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use actix_web::{HttpRequest, HttpResponse};
use ring::digest::{SHA256, digest};

use crate::http::etag;

const DOCUMENT: &str = include_str!("../../../../../docs/openapi.json");

static TAG: LazyLock<String> = LazyLock::new(|| {
    let digest = digest(&SHA256, DOCUMENT.as_bytes());
    format!("\"{}\"", hex::encode(digest.as_ref().get(..16).unwrap_or_default()))
});

pub(super) async fn document(request: HttpRequest) -> HttpResponse {
    let known = etag::is_known(&request, &TAG);
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer.insert_header((ETAG, TAG.as_str())).insert_header((CACHE_CONTROL, "no-cache"));
    if known {
        answer.finish()
    } else {
        answer.insert_header((CONTENT_TYPE, "application/json")).body(DOCUMENT)
    }
}
