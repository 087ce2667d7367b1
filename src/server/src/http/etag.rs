//! Whether a client has what it asks for already.

use actix_web::HttpRequest;
use actix_web::http::header::IF_NONE_MATCH;

/// Whether `If-None-Match` names this tag, quotes included.
pub(super) fn is_known(request: &HttpRequest, tag: &str) -> bool {
    let known = |tags: &str| {
        tags.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    };
    request.headers().get_all(IF_NONE_MATCH).filter_map(|tags| tags.to_str().ok()).any(known)
}
