//! Liveness and readiness.

use std::time::Duration;

use actix_web::web::ServiceConfig;
use actix_web::{HttpResponse, Responder};
use auth::keyring::KeyringError;
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};
use store::StoreError;
use tokio::sync::Mutex;
use wire::operations::health as operations;

use super::App;
use super::guard::Anyone;
use super::routes::Routes;

/// The note for a certificate that failed to reload. It is public, so it contains no path.
const OUTDATED: &str =
    "the changed certificate cannot be used; the log has the cause; the earlier one stays in use";

/// The note for apps that need sign-in, which requires the service's own base URL.
const NO_BASE: &str =
    "an app needs sign-in, and SERVICE_PUBLIC_BASE_URL is not set: sign-in to apps is answered with 503";

/// Cache lifetime of the sign-in need, which anyone can query and which is computed from all active releases.
const NEED_KEPT: Duration = Duration::from_secs(30);

/// Lifetime of database results that all requests share.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// Timeout for one round of database checks. A request waits for at most one round and is answered within 2 s.
const ROUND: Duration = Duration::from_millis(1_500);

/// The reason shown when the database is unresponsive, refuses connections or fails.
const SILENT: &str = "the database does not respond";

/// The latest database results. Uses the system clock, like the database connection timeouts.
#[derive(Default)]
pub(super) struct Readiness {
    clock: SystemClock,
    latest: Mutex<Option<(Duration, DatabaseParts)>>,
    sign_in_need: Mutex<Option<(Duration, bool)>>,
}

/// The parts of the report that come from the database.
#[derive(Clone)]
struct DatabaseParts {
    database: Result<(), String>,
    vault: Result<(), String>,
    needs_sign_in: bool,
}

impl Readiness {
    /// Returns results from the last second, or runs a new round.
    async fn read(&self, app: &App) -> DatabaseParts {
        let mut latest = self.latest.lock().await;
        let now = self.clock.monotonic();
        if let Some((read_at, parts)) = &*latest
            && now.saturating_sub(*read_at) < SHARED_FOR
        {
            return parts.clone();
        }
        let ping = kernel::timeout(&self.clock, ROUND, app.store().ping());
        let (pong, vault, needs_sign_in) = tokio::join!(ping, self.vault(app), self.needs_sign_in(app));
        let pong = pong.unwrap_or_else(|| Err(StoreError::Unavailable("no answer in time".to_owned())));
        let database = pong.map_err(|error| {
            tracing::warn!(%error, "not ready: the database");
            app.store().close_idle_connections();
            SILENT.to_owned()
        });
        let parts = DatabaseParts { database, vault, needs_sign_in };
        *latest = Some((self.clock.monotonic(), parts.clone()));
        parts
    }

    /// Checks that every secret can be opened. An unresponsive database is reported by another part.
    async fn vault(&self, app: &App) -> Result<(), String> {
        let needed = kernel::timeout(&self.clock, ROUND, app.store().credential_keys()).await;
        let needed = needed.and_then(Result::ok).unwrap_or_default();
        let has = |id: &str| app.vault().is_some_and(|ring| ring.has(id));
        match needed.into_iter().find(|(id, _)| !has(id)) {
            Some((id, count)) => {
                let error = KeyringError::Missing(id);
                Err(format!("{error}; {count} stored secrets need it"))
            }
            None => Ok(()),
        }
    }

    /// Whether an app needs sign-in; the last known value while the database does not respond.
    async fn needs_sign_in(&self, app: &App) -> bool {
        let (mut known, now) = (self.sign_in_need.lock().await, app.clock().monotonic());
        match *known {
            Some((read_at, need)) if now.saturating_sub(read_at) < NEED_KEPT => need,
            _ => {
                let read = kernel::timeout(&self.clock, ROUND, app.store().needs_app_sign_in()).await;
                let before = known.is_some_and(|(_, need)| need);
                let need = read.and_then(Result::ok).unwrap_or(before);
                *known = Some((now, need));
                need
            }
        }
    }
}

/// Time without committed writes after which the instance is not ready.
const WRITES_LATE: Duration = Duration::from_secs(5);

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIVE, live)
        .on(&operations::READY, ready)
        .on(&operations::HEALTH, live)
        .register(config);
}

async fn live() -> impl Responder {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// Reports whether this instance accepts requests, with a reason for each part that does not.
async fn ready(app: Anyone) -> HttpResponse {
    let reader = app.clone();
    // A round continues after its request ends, so the next request does not wait for a second round.
    let reading = actix_rt::spawn(async move { Box::pin(reader.readiness().read(&reader)).await });
    let silent = || DatabaseParts { database: Err(SILENT.to_owned()), vault: Ok(()), needs_sign_in: false };
    let DatabaseParts { database, vault, needs_sign_in } = reading.await.unwrap_or_else(|_| silent());
    let actors = app.system().health().fatal().map_or(Ok(()), Err);
    let lifecycle = if app.is_draining() { Err("draining".to_owned()) } else { Ok(()) };
    let lanes = match app.system().writes_failing_for() {
        Some(failing) if failing > WRITES_LATE => {
            Err(format!("no writes were committed for {} s; the log has the cause", failing.as_secs()))
        }
        _ => Ok(()),
    };
    let parts = [
        ("database", database),
        ("vault", vault),
        ("lanes", lanes),
        ("actors", actors),
        ("lifecycle", lifecycle),
    ];
    let ready = parts.iter().all(|(_, part)| part.is_ok());
    let mut parts: serde_json::Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name.to_owned(), describe(part))).collect();
    // Requests can still use the earlier certificate.
    parts.extend(app.tls().map(|tls| {
        let part =
            if tls.is_outdated() { json!({"ready": true, "note": OUTDATED}) } else { json!({"ready": true}) };
        ("tls".to_owned(), part)
    }));
    parts.insert("login".to_owned(), login(&app, needs_sign_in));
    let status = if ready { "ready" } else { "not_ready" };
    let body = json!({"status": status, "parts": parts});
    if ready {
        HttpResponse::Ok().json(body)
    } else {
        HttpResponse::ServiceUnavailable().insert_header(("Retry-After", "1")).json(body)
    }
}

/// Whether users can sign in to the apps that need it. Never makes the instance unready.
fn login(app: &App, is_needed: bool) -> Value {
    if is_needed && app.config().http.public_base_url.is_none() {
        return json!({"ready": true, "note": NO_BASE});
    }
    json!({"ready": true})
}

fn describe(part: Result<(), String>) -> Value {
    match part {
        Ok(()) => json!({"ready": true}),
        Err(reason) => json!({"ready": false, "reason": reason}),
    }
}
