//! Liveness and readiness.

use actix_web::web::ServiceConfig;
use actix_web::{HttpResponse, Responder};
use serde_json::{Value, json};

use super::guard::Anyone;
use super::{get, resource};

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(resource("/healthz", "GET, HEAD").route(get().to(live)))
        .service(resource("/readyz", "GET, HEAD").route(get().to(ready)))
        .service(resource("/api/system/health", "GET, HEAD").route(get().to(live)));
}

async fn live() -> impl Responder {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// Whether requests should come here, and for each part why not.
async fn ready(app: Anyone) -> HttpResponse {
    let database = app.store().ping().await.map_err(|error| {
        tracing::warn!(%error, "not ready: the database");
        "the database does not answer".to_owned()
    });
    let actors = app.system().health().fatal().map_or(Ok(()), Err);
    let lifecycle =
        if app.is_shutting_down() { Err("the service is shutting down".to_owned()) } else { Ok(()) };
    let parts = [("database", database), ("actors", actors), ("lifecycle", lifecycle)];
    let ready = parts.iter().all(|(_, part)| part.is_ok());
    let parts: serde_json::Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name.to_owned(), describe(part))).collect();
    let status = if ready { "ready" } else { "not_ready" };
    let body = json!({"status": status, "parts": parts});
    if ready {
        HttpResponse::Ok().json(body)
    } else {
        HttpResponse::ServiceUnavailable().insert_header(("Retry-After", "1")).json(body)
    }
}

fn describe(part: Result<(), String>) -> Value {
    match part {
        Ok(()) => json!({"ready": true}),
        Err(reason) => json!({"ready": false, "reason": reason}),
    }
}
