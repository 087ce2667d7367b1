//! The chat on pages of other sites: the element that they load, and the page in its frame.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use config::AllowOrigins;
use minijinja::context;

use super::html::{self, Around};
use super::{assets, chat};
use crate::http::error::ApiResult;
use crate::http::guard::Anyone;

/// The script that defines the element.
pub(super) async fn element(_app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    assets::for_any_site("embed/element.js", &request)
}

/// The page in the frame. It is the same for every workflow: which one it shows, the page around it says.
pub(super) async fn page(app: Anyone) -> ApiResult<HttpResponse> {
    let origins = &app.config().http.allow_origins;
    // Where every page may be around it, no page gets what a cookie is worth.
    let (around, cookies) = match origins {
        AllowOrigins::Any => (Around::Anyone, false),
        AllowOrigins::List(origins) => (Around::Origins(origins), true),
    };
    let mut page = html::page(StatusCode::OK, "embed.html", context! { cookies, styles => chat::STYLES })?;
    html::allow_frames(&mut page, &around);
    html::allow_microphone(&mut page, None);
    Ok(page)
}
