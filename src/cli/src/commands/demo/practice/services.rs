//! The simulated services: a shop, its analytics, a web page, Slack, and a release starter. They store nothing.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use actix_web::web::{Bytes, Path, Query};
use actix_web::{App, HttpResponse, HttpServer, web};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::output::say;
use crate::terminal::harmless;

/// The preferred port: a workflow of an earlier demo names it.
const PORT: u16 = 8010;
/// The email address for all orders.
const EMAIL: &str = "ana@example.com";
/// The page that `learn` reads.
const HANDBOOK: &str = include_str!("../../../../../../examples/ask-documents/handbook.md");

/// Starts the services; returns their address.
pub(super) fn start() -> io::Result<SocketAddr> {
    let server = || {
        HttpServer::new(|| {
            App::new()
                .route("/orders", web::get().to(orders))
                .route("/orders/{number}", web::get().to(order))
                .route("/orders/{number}/refunds", web::post().to(refund))
                .route("/visits", web::get().to(async || HttpResponse::Ok().json(json!({"visits": 80}))))
                .route(
                    "/handbook.md",
                    web::get().to(async || HttpResponse::Ok().content_type("text/markdown").body(HANDBOOK)),
                )
                .route("/slack/{channel}", web::post().to(slack))
                .route("/releases", web::post().to(release))
        })
        .workers(1)
        .disable_signals()
    };
    let bound =
        server().bind((Ipv4Addr::LOCALHOST, PORT)).or_else(|_| server().bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = bound.addrs().first().copied().ok_or_else(|| io::Error::other("no address"))?;
    actix_rt::spawn(bound.run());
    Ok(address)
}

/// The orders that the report counts.
async fn orders() -> HttpResponse {
    HttpResponse::Ok().json(json!({"orders": [
        {"state": "paid", "total": 30.0, "lines": [{"product": "Tea", "count": 2}, {"product": "Cup", "count": 1}]},
        {"state": "paid", "total": 10.5, "lines": [{"product": "Tea", "count": 1}]},
        {"state": "refunded", "total": 99.0, "lines": [{"product": "Pot", "count": 1}]}]}))
}

#[derive(Deserialize)]
struct OrderQuery {
    email: Option<String>,
}

async fn order(number: Path<String>, of: Query<OrderQuery>) -> HttpResponse {
    let known = match number.as_str() {
        "10017" => json!({"state": "delivered", "total": 42.5, "days": 3}),
        "10018" => json!({"state": "delivered", "total": 19.9, "days": 90}),
        "10019" => json!({"state": "sent", "total": 30.0, "days": 0}),
        _ => Value::Null,
    };
    if known.is_null() || of.email.as_deref() != Some(EMAIL) {
        return HttpResponse::NotFound().json(json!({"error": "no such order"}));
    }
    HttpResponse::Ok().json(known)
}

async fn refund(number: Path<String>, body: web::Json<Value>) -> HttpResponse {
    told(&format!("The shop pays {} back for order {number}.", body.get("amount").unwrap_or(&Value::Null)));
    HttpResponse::Ok().json(json!({"ok": true}))
}

async fn slack(channel: Path<String>, body: web::Json<Value>) -> HttpResponse {
    let text = body.get("text").and_then(Value::as_str).unwrap_or_default();
    told(&format!("Slack, #{channel}: {text}"));
    HttpResponse::Ok().body("ok")
}

async fn release(body: Bytes) -> HttpResponse {
    told(&format!("The deployer receives: {}", String::from_utf8_lossy(&body)));
    HttpResponse::Ok().json(json!({"ok": true}))
}

/// Prints a request to a simulated service. A closed terminal must not fail the request.
pub(super) fn told(text: &str) {
    let _ = say(format_args!("\n[simulated] {}", harmless(text)));
}
