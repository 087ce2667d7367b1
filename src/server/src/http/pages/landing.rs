//! `/`: the home page, which shows the service and links to its parts.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use minijinja::context;

use super::html;
use crate::http::error::ApiResult;

/// The same page for every caller; the API restricts access to data.
pub(super) async fn page() -> ApiResult<HttpResponse> {
    html::page(StatusCode::OK, "landing.html", context! { version => env!("CARGO_PKG_VERSION") })
}
