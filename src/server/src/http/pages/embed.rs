//! The chat embedded in other sites: the element they load, and the page in its frame.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use config::AllowOrigins;
use minijinja::context;

use super::html::{self, FrameAncestors};
use super::{assets, chat};
use crate::http::error::ApiResult;
use crate::http::guard::Anyone;

/// The script that defines the element.
pub(super) async fn element(_app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    assets::for_any_site("embed/element.js", &request)
}

/// The page in the frame. It is the same for every workflow; the embedding page selects one.
pub(super) async fn page(app: Anyone) -> ApiResult<HttpResponse> {
    let origins = &app.config().http.allow_origins;
    // If any site may embed the page, it uses no cookies, so that no site can exploit a visitor's cookies by
    // clickjacking.
    let (ancestors, cookies) = match origins {
        AllowOrigins::Any => (FrameAncestors::Anyone, false),
        AllowOrigins::List(origins) => (FrameAncestors::Origins(origins), true),
    };
    let mut page = html::page(StatusCode::OK, "embed.html", context! { cookies, styles => chat::STYLES })?;
    html::allow_frames(&mut page, &ancestors);
    html::allow_microphone(&mut page, None);
    Ok(page)
}
