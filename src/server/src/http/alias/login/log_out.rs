//! Signs out from an app.

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpRequest, HttpResponse};
use wire::ErrorCode;

use super::binding;
use crate::http::alias::error::AliasResult;
use crate::http::alias::session;
use crate::http::alias::visitor::Visitor;
use crate::http::body;

/// Tells a browser with a session to clear its data. Browsers also clear the cookies of sibling apps, so an app cannot
/// send this to visitors who are not signed in to it.
const FORGOTTEN: (&str, &str) = ("Clear-Site-Data", r#""cookies", "storage""#);

/// Ends the browser's session, if any, so that copied cookies become invalid.
pub(super) async fn log_out(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    if request.headers().contains_key(CONTENT_TYPE) && !body::is_json(&request) {
        return Err(ErrorCode::AppUnsupportedMediaType.into());
    }
    let digest = session::digest(&request);
    if let Some(digest) = &digest {
        let app = visitor.served.id;
        visitor
            .store()
            .change(async |changes| changes.end_app_session(app, digest, "signed_out").await)
            .await?;
    }
    let mut answer = HttpResponse::NoContent();
    answer.cookie(session::no_cookie());
    for cookie in binding::no_cookies(&request) {
        answer.cookie(cookie);
    }
    if digest.is_some() {
        answer.insert_header(FORGOTTEN);
    }
    Ok(answer.finish())
}
