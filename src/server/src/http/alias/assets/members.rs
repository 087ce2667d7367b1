//! Access to members-only app files.

use actix_web::http::header::{ACCEPT, HeaderMap, LOCATION};
use actix_web::{HttpRequest, HttpResponse};
use url::form_urlencoded::byte_serialize;
use wire::{AppAccess, ErrorCode};

use crate::http::App;
use crate::http::alias::alias_paths::AUTH;
use crate::http::alias::error::AliasResult;
use crate::http::alias::served::ServedApp;
use crate::http::alias::session;
use crate::http::alias::visitor::{is_foreign_read, says};

/// Maximum length for a sign-in's return path.
const MAX_RETURN: usize = 512;

/// Returns `None` if the client may read the app's files, or the redirect to sign-in if a browser opens a page.
///
/// # Errors
/// 401 without a session, 403 for a read by another site.
pub(super) async fn admit(
    app: &App,
    request: &HttpRequest,
    served: &ServedApp,
) -> AliasResult<Option<HttpResponse>> {
    if served.access != AppAccess::Members {
        return Ok(None);
    }
    match session::member(app, request, served).await? {
        Some(_) if is_foreign_read(request) => Err(ErrorCode::AppOriginMismatch.into()),
        Some(_) => Ok(None),
        None if opens_page(request.headers()) => Ok(Some(to_sign_in(request))),
        None => Err(ErrorCode::LoginRequired.into()),
    }
}

/// Whether a browser opens a page in a tab. Browsers that send no fetch metadata must accept HTML.
fn opens_page(headers: &HeaderMap) -> bool {
    if headers.contains_key("sec-fetch-mode") || headers.contains_key("sec-fetch-dest") {
        return says(headers, "sec-fetch-mode", "navigate") && says(headers, "sec-fetch-dest", "document");
    }
    accepts_html(headers)
}

/// Whether `Accept` names HTML explicitly with a weight above 0.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    let texts = headers.get_all(ACCEPT).filter_map(|accepts| accepts.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        let is_refused = |part: &str| {
            let weight = part.strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
            weight.and_then(|weight| weight.trim().parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
        };
        is_html && !parts.any(is_refused)
    })
}

fn to_sign_in(request: &HttpRequest) -> HttpResponse {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>');
    let is_path = target.starts_with('/') && !target.starts_with("//");
    let fits = is_path && target.len() <= MAX_RETURN && target.bytes().all(plain);
    let target: String = byte_serialize(if fits { target } else { "/" }.as_bytes()).collect();
    HttpResponse::SeeOther().insert_header((LOCATION, format!("{AUTH}login?return_to={target}"))).finish()
}
