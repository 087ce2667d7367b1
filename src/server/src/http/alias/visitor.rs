//! The visitor of an app, the only access to the application state on app hosts.

use std::future::Future;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::{HOST, HeaderMap, ORIGIN};
use actix_web::{FromRequest, HttpRequest};
use auth::host::RequestHost;
use auth::peer::network;
use wire::{AppAccess, ErrorCode};

use super::alias_paths;
use super::error::{AliasError, AliasResult};
use super::path;
use super::served::ServedApp;
use super::session::{self, Member};
use crate::http::{App, guard};

/// Worker script destinations. Source: Fetch, request destinations.
const WORKERS: [&str; 3] = ["worker", "sharedworker", "serviceworker"];

/// A visitor of a published app. Extraction refuses cross-site requests that could change data. On members-only apps it
/// refuses everything but sign-in without a session.
pub(in crate::http) struct Visitor {
    app: App,
    /// The app and its release.
    pub(in crate::http) served: Arc<ServedApp>,
    /// The app's scheme, host and port.
    pub(in crate::http) origin: String,
    /// The client network to which limits apply.
    pub(in crate::http) network: IpAddr,
    /// The signed-in member.
    pub(in crate::http) member: Option<Member>,
}

impl Deref for Visitor {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl FromRequest for Visitor {
    type Error = AliasError;
    type Future = Pin<Box<dyn Future<Output = AliasResult<Self>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { visitor(&request).await })
    }
}

async fn visitor(request: &HttpRequest) -> AliasResult<Visitor> {
    let app = guard::app_of(request)?.clone();
    let served = served(&app, request, alias_paths::is_configuration(request.path())).await?;
    let origin = origin(&app, request);
    refuse_workers(request)?;
    check_origin(request, &origin)?;
    let member = session::member(&app, request, &served).await?;
    if let Some(member) = &member {
        if is_foreign_read(request) {
            return Err(ErrorCode::AppOriginMismatch.into());
        }
        guard::note_sender(request, format!("user:{}", member.user));
    }
    let closed = served.access == AppAccess::Members && !alias_paths::is_open(request.path());
    if closed && member.is_none() {
        return Err(ErrorCode::LoginRequired.into());
    }
    let network = network(app.client_address(request));
    Ok(Visitor { app, served, origin, network, member })
}

impl Visitor {
    /// Whether the host is local, so that browsers keep its `Secure` cookies without TLS.
    pub(super) fn is_local(&self) -> bool {
        self.app.config().apps.domain.rsplit('.').next() == Some("localhost")
    }
}

/// Returns the app for the request's host. `now` requests the current app instead of a copy up to one second old.
///
/// # Errors
/// [`AliasError::NoApp`] if nothing is published there.
pub(super) async fn served(app: &App, request: &HttpRequest, now: bool) -> AliasResult<Arc<ServedApp>> {
    let alias = alias(app, request).ok_or(AliasError::NoApp)?;
    let aliases = app.aliases();
    let found = if now { aliases.fresh(&alias).await? } else { aliases.recent(&alias).await? };
    let found = found.ok_or(AliasError::NoApp)?;
    path::check_query(request)?;
    Ok(found)
}

/// The single label below the apps domain.
fn alias(app: &App, request: &HttpRequest) -> Option<String> {
    host(request)?.label_below(&app.config().apps.domain)
}

fn host(request: &HttpRequest) -> Option<RequestHost> {
    RequestHost::parse(request.headers().get(HOST)?.to_str().ok()?)
}

/// The origin as a browser writes it, without the scheme's default port.
fn origin(app: &App, request: &HttpRequest) -> String {
    let (scheme, usual) = if app.is_asked_over_https(request) { ("https", 443) } else { ("http", 80) };
    let Some(host) = host(request) else { return String::new() };
    if host.port() == Some(usual) {
        format!("{scheme}://{}", host.name())
    } else {
        format!("{scheme}://{host}")
    }
}

/// Refuses worker scripts.
pub(super) fn refuse_workers(request: &HttpRequest) -> AliasResult<()> {
    let headers = request.headers();
    let asks = names(headers, "service-worker", "script")
        || WORKERS.iter().any(|kind| names(headers, "sec-fetch-dest", kind));
    if asks { Err(ErrorCode::WorkerRefused.into()) } else { Ok(()) }
}

/// Refuses changes that do not come from a page with this origin.
fn check_origin(request: &HttpRequest, origin: &str) -> AliasResult<()> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let passes = reads || is_from(request.headers(), origin);
    if passes { Ok(()) } else { Err(ErrorCode::AppOriginMismatch.into()) }
}

/// Whether the request states that a page with this origin sent it.
fn is_from(headers: &HeaderMap, origin: &str) -> bool {
    let mut named = headers.get_all(ORIGIN);
    let is_same_site = says(headers, "sec-fetch-site", "same-origin");
    match (named.next(), named.next()) {
        // A browser that sends both headers keeps them consistent.
        (Some(named), None) if named.as_bytes() == origin.as_bytes() => {
            is_same_site || !headers.contains_key("sec-fetch-site")
        }
        (None, _) => is_same_site,
        _ => false,
    }
}

/// Whether another site reads, other than by a link that a user follows.
pub(super) fn is_foreign_read(request: &HttpRequest) -> bool {
    names(request.headers(), "sec-fetch-site", "cross-site") && !navigates(request.headers())
}

/// Whether a page sends the request without navigating: a script, an image or a frame from any origin.
pub(super) fn is_within_page(request: &HttpRequest) -> bool {
    let headers = request.headers();
    ["sec-fetch-mode", "sec-fetch-dest"].iter().any(|name| headers.contains_key(*name)) && !navigates(headers)
}

/// Whether a user follows a link.
fn navigates(headers: &HeaderMap) -> bool {
    says(headers, "sec-fetch-mode", "navigate") && says(headers, "sec-fetch-dest", "document")
}

/// Whether a header contains this value, possibly among others. For checks that refuse.
fn names(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get_all(name).any(|text| text.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}

/// Whether a header has exactly this value. For checks that allow.
pub(super) fn says(headers: &HeaderMap, name: &str, value: &str) -> bool {
    let mut values = headers.get_all(name);
    let first = values.next().is_some_and(|text| text.as_bytes().eq_ignore_ascii_case(value.as_bytes()));
    first && values.next().is_none()
}
