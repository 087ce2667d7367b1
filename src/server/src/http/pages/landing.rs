//! `/`: what runs here and where to go next.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use minijinja::context;

use super::html;
use crate::http::error::ApiResult;

/// The same for every caller: the API judges what they may see.
pub(super) async fn page() -> ApiResult<HttpResponse> {
    html::page(StatusCode::OK, "landing.html", context! { version => env!("CARGO_PKG_VERSION") })
}
