//! An id for each request: in the answer's `X-Request-Id`, in every log line, in the body of a 5xx.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use tracing::Instrument;

use super::guard;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request that is being answered.
pub(crate) fn current() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// The same id for what goes on when the request is answered.
pub(crate) async fn kept<F: Future>(work: F) -> F::Output {
    match current() {
        Some(id) => REQUEST_ID.scope(id, work).await,
        None => work.await,
    }
}

pub(crate) async fn middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let made = guard::of_service(&request).and_then(|app| app.ids().uuid().ok());
    let id = made.map(|id| id.simple().to_string()).unwrap_or_default();
    // The path without its query: a query may carry a token.
    let path = without_secret(request.path());
    let span = tracing::info_span!("request", id = %id, method = %request.method(), path);
    let header = HeaderValue::from_str(&id);
    let mut response = REQUEST_ID.scope(id, next.call(request).instrument(span.clone())).await?;
    if let Ok(header) = header {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), header);
    }
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
    Ok(response)
}

/// What may be logged of a path: the end of a sign-in link is a secret.
fn without_secret(path: &str) -> &str {
    // Letters and slashes as somebody may have mistyped them: nothing but the start of such a path is ever shown.
    let clean = path.to_ascii_lowercase();
    match clean.find("/magic") {
        Some(at) if clean.contains("auth") => path.get(..at).unwrap_or_default(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_links_secret_is_not_logged() {
        for path in
            ["/api/auth/magic/abc", "/API/Auth/Magic/abc", "//api/auth//magic/abc", "/api/auth/magic/"]
        {
            assert!(!without_secret(path).contains("abc") && without_secret(path).len() > 8, "{path}");
        }
        assert_eq!(without_secret("/api/workflows/magic"), "/api/workflows/magic");
        assert_eq!(without_secret("/api/auth/me"), "/api/auth/me");
    }
}
