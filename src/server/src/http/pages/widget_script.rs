//! Proxies the hosted chat widget's script from its CDN.

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use actix_web::{HttpRequest, HttpResponse};
use wire::ErrorCode;

use crate::cdn::Script;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::range::{self, BodyRange};
use crate::http::{App, etag};

pub(super) async fn script(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let found = app.widget_script().get().await;
    let Script { bytes, tag } =
        found.map_err(|error| ApiError::new(ErrorCode::ChatWidgetUnavailable).with_cause(error))?;
    if etag::is_known(&request, &tag) {
        return Ok(head(&app, StatusCode::NOT_MODIFIED, &tag).finish());
    }
    let length = bytes.len();
    match range::part(&request, length, &tag) {
        BodyRange::Whole => Ok(head(&app, StatusCode::OK, &tag).body(bytes)),
        BodyRange::Bytes(part) => {
            let shown = format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1));
            let mut answer = head(&app, StatusCode::PARTIAL_CONTENT, &tag);
            Ok(answer.insert_header((CONTENT_RANGE, shown)).body(bytes.slice(part)))
        }
        BodyRange::Outside => {
            let mut answer = head(&app, StatusCode::RANGE_NOT_SATISFIABLE, &tag);
            Ok(answer.insert_header((CONTENT_RANGE, format!("bytes */{length}"))).finish())
        }
    }
}

fn head(app: &App, status: StatusCode, tag: &str) -> actix_web::HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer
        .insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"))
        .insert_header((ETAG, tag))
        .insert_header((
            CACHE_CONTROL,
            format!("public, max-age={}", app.config().chat.cdn_cache_ttl.as_secs()),
        ))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Cross-Origin-Resource-Policy", "cross-origin"));
    answer
}
