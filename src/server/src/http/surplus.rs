//! Requests on connections above the limit: health checks are answered, other requests are refused. The connection
//! closes after the response.

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use wire::ErrorCode;
use wire::operations::health;

use super::error::{ApiError, ApiResult};
use super::{alias, guard};

/// Whether a connection is above the limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surplus(pub(crate) bool);

/// Refuses a request on a surplus connection, unless it is a health check.
///
/// # Errors
/// 503 `service.overloaded`; `unavailable` on app hosts.
pub(super) fn check(request: &ServiceRequest) -> ApiResult<()> {
    let health = [health::LIVE.path, health::READY.path, health::HEALTH.path];
    if !is_surplus(request.request()) || health.contains(&request.path()) {
        return Ok(());
    }
    let domain = guard::of_service(request).map(|app| app.config().apps.domain.as_str());
    if domain.is_some_and(|domain| alias::is_alias(request.head(), domain)) {
        return Err(ApiError::new(ErrorCode::AppUnavailable));
    }
    let message = "The service has as many open connections as it serves; try again shortly.";
    Err(ApiError::new(ErrorCode::Overloaded).with_message(message))
}

/// Whether the connection closes after the response.
pub(super) fn is_surplus(request: &HttpRequest) -> bool {
    request.conn_data::<Surplus>().is_some_and(|surplus| surplus.0)
}
