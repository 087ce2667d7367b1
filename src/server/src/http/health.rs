//! Liveness and readiness.

use std::time::Duration;

use actix_web::web::ServiceConfig;
use actix_web::{HttpResponse, Responder};
use auth::keyring::KeyringError;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use wire::operations::health as operations;

use super::App;
use super::guard::Anyone;
use super::routes::Routes;

/// The note of a certificate that could not be loaded again. Everybody may read it, so it has no path.
const OUTDATED: &str =
    "the changed certificate cannot be used; the log has the cause; the earlier one stays in use";

/// The note of apps that need a sign-in, which needs the service's own address.
const NO_BASE: &str =
    "an app needs sign-in, and SERVICE_PUBLIC_BASE_URL is not set: sign-in to apps is answered with 503";

/// How long an instance knows whether an app needs a sign-in: everybody may ask, and all active releases answer.
const KNOWN: Duration = Duration::from_secs(30);

/// Whether an app needs a sign-in, and when that was read.
#[derive(Default)]
pub(super) struct SignInNeed(Mutex<Option<(Duration, bool)>>);

impl SignInNeed {
    /// Requests at the same time read it once. Another check reports a database that does not answer.
    async fn is_there(&self, app: &App) -> bool {
        let (mut known, now) = (self.0.lock().await, app.clock().monotonic());
        match *known {
            Some((read_at, need)) if now.saturating_sub(read_at) < KNOWN => need,
            _ => {
                let need = app.store().needs_app_sign_in().await.unwrap_or_default();
                *known = Some((now, need));
                need
            }
        }
    }
}

/// How long writes may wait for the database.
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

/// Whether requests should come here, and for each part why not.
async fn ready(app: Anyone) -> HttpResponse {
    let database = app.store().ping().await.map_err(|error| {
        tracing::warn!(%error, "not ready: the database");
        "the database does not respond".to_owned()
    });
    let actors = app.system().health().fatal().map_or(Ok(()), Err);
    let lifecycle =
        if app.is_shutting_down() { Err("the service is shutting down".to_owned()) } else { Ok(()) };
    let vault = vault(&app).await;
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
    // An earlier certificate is still good for requests.
    parts.extend(app.tls().map(|tls| {
        let part =
            if tls.is_outdated() { json!({"ready": true, "note": OUTDATED}) } else { json!({"ready": true}) };
        ("tls".to_owned(), part)
    }));
    parts.insert("login".to_owned(), login(&app).await);
    let status = if ready { "ready" } else { "not_ready" };
    let body = json!({"status": status, "parts": parts});
    if ready {
        HttpResponse::Ok().json(body)
    } else {
        HttpResponse::ServiceUnavailable().insert_header(("Retry-After", "1")).json(body)
    }
}

/// Whether users can sign in to the apps that need it: never a reason for requests to go elsewhere.
async fn login(app: &App) -> Value {
    let configured = app.config().http.public_base_url.is_some();
    if !configured && app.sign_in_need().is_there(app).await {
        return json!({"ready": true, "note": NO_BASE});
    }
    json!({"ready": true})
}

/// Whether every secret can be opened. Another check reports a database that does not answer.
async fn vault(app: &App) -> Result<(), String> {
    let needed = app.store().credential_keys().await.unwrap_or_default();
    let has = |id: &str| app.vault().is_some_and(|ring| ring.has(id));
    match needed.into_iter().find(|(id, _)| !has(id)) {
        Some((id, count)) => {
            let error = KeyringError::Missing(id);
            Err(format!("{error}; {count} stored secrets need it"))
        }
        None => Ok(()),
    }
}

fn describe(part: Result<(), String>) -> Value {
    match part {
        Ok(()) => json!({"ready": true}),
        Err(reason) => json!({"ready": false, "reason": reason}),
    }
}
