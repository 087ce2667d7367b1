//! Tells a proxy whether to obtain a certificate for a host. Certificate authorities issue only a limited number.

use std::time::Duration;

use actix_web::web::ServiceConfig;
use actix_web::{HttpRequest, HttpResponse};
use auth::host::RequestHost;
use parking_lot::Mutex;
use wire::ErrorCode;
use wire::operations::health as operations;

use super::App;
use super::error::{ApiError, ApiResult};
use super::guard::{Anyone, peer};
use super::query::Params;
use super::routes::Routes;

/// Maximum answers per second and instance.
const MAX_ANSWERS: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Counts answers per second.
#[derive(Default)]
pub(super) struct AnswerRate(Mutex<(Duration, u32)>);

impl AnswerRate {
    /// Whether one more answer is allowed. `now` is monotonic time.
    fn admits(&self, now: Duration) -> bool {
        let mut counted = self.0.lock();
        if now.saturating_sub(counted.0) >= SECOND {
            *counted = (now, 0);
        }
        counted.1 += 1;
        counted.1 <= MAX_ANSWERS
    }
}

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default().on(&operations::TLS_ASK, ask).register(config);
}

async fn ask(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let not_found = || ApiError::new(ErrorCode::AppNotFound);
    if !is_near(&app, &request) {
        return Err(not_found());
    }
    let mut query = Params::from_request(&request);
    let domain = query.text("domain");
    if domain.is_none() {
        query.note("domain", "required", "is required");
    }
    ApiError::refuse(query.finish())?;
    if !app.tls_answers().admits(app.clock().monotonic()) {
        return Err(ApiError::new(ErrorCode::AppRateLimited));
    }
    let alias = domain.as_deref().and_then(|domain| alias(domain, &app.config().apps.domain));
    let alias = alias.ok_or_else(not_found)?;
    match app.aliases().recent(&alias).await? {
        Some(_) => Ok(HttpResponse::Ok().finish()),
        None => Err(not_found()),
    }
}

/// Returns the alias in a host without a port.
fn alias(host: &str, domain: &str) -> Option<String> {
    RequestHost::parse(host).filter(|host| host.port().is_none())?.label_below(domain)
}

/// Whether the caller is this machine or a trusted proxy, and does not forward another's request.
fn is_near(app: &App, request: &HttpRequest) -> bool {
    let address = app.client_address(request);
    let trusts = |address| app.config().http.trusted_proxies.iter().any(|network| network.contains(&address));
    // An untrusted proxy on this machine forwards other clients' requests.
    let forwarded =
        request.headers().contains_key("x-forwarded-for") || request.headers().contains_key("forwarded");
    trusts(address) || (address.is_loopback() && (!forwarded || trusts(peer(request).to_canonical())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_one_label_below_the_domain() {
        for (host, expected) in [
            ("desk.apps.test", Some("desk")),
            ("DESK.apps.test.", Some("desk")),
            ("apps.test", None),
            ("a.desk.apps.test", None),
            ("desk.apps.test:443", None),
            ("deskapps.test", None),
            ("", None),
        ] {
            assert_eq!(alias(host, "apps.test").as_deref(), expected, "{host}");
        }
    }

    #[test]
    fn answers_are_limited_per_second() {
        let (rate, second) = (AnswerRate::default(), Duration::from_secs(9));
        let admitted = |now| (0..30).filter(|_| rate.admits(now)).count();
        assert_eq!(admitted(second), 20);
        assert_eq!(admitted(second + SECOND / 2), 0);
        assert_eq!(admitted(second + SECOND), 20);
    }
}
