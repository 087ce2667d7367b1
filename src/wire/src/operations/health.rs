//! Liveness, readiness and the test stream.

use crate::operation::{Answer, Parameter, Values, events, get, json, operations};
use crate::{ErrorCode, Health, ReadinessReport, TestEvent};

operations! {
    LIVE = get("/healthz", "check_liveness", "Succeeds while the process lives.")
        .answers(&[Answer::new(200, json!(Health, examples::HEALTH))]);

    READY = get(
        "/readyz",
        "check_readiness",
        "Succeeds if the service accepts requests; the body has a reason for each part.",
    )
    .answers(&[
        Answer::new(200, json!(ReadinessReport, examples::READY)),
        Answer::new(503, json!(ReadinessReport)).when("the service does not accept requests"),
    ]);

    STREAM = get(
        "/api/system/stream",
        "read_test_stream",
        "A test stream: numbered events half a second apart, at most 16 such streams at a time. `callboard doctor --url` \
         reads it to check whether a proxy buffers streams.",
    )
    .without_head()
    .query(&[Parameter { name: "events", about: "Number of events (default: 5).", values: Values::Integer(1, 20) }])
    .answers(&[Answer::new(200, events!(TestEvent))])
    .errors(&[ErrorCode::Overloaded]);

    TLS_ASK = get(
        "/api/system/tls-ask",
        "ask_for_certificate",
        "Whether a proxy should obtain a certificate for a host of an app, such as Caddy with on-demand TLS: an app is published there. Only \
         callers on this machine and trusted proxies receive this answer, at most 20 a second.",
    )
    .query(&[Parameter { name: "domain", about: "The host.", values: Values::Text }])
    .answers(&[Answer::empty(200)])
    .errors(&[ErrorCode::AppNotFound, ErrorCode::AppRateLimited, ErrorCode::InvalidRequest]);

    HEALTH = get("/api/system/health", "check_health", "The same as `/healthz`.")
        .answers(&[Answer::new(200, json!(Health, examples::HEALTH))]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const HEALTH: &str = r#"{
  "status": "ok"
}"#;

    pub(super) const READY: &str = r#"{
  "status": "ready",
  "parts": {
    "database": {
      "ready": true
    },
    "vault": {
      "ready": true
    },
    "lanes": {
      "ready": true
    },
    "actors": {
      "ready": true
    },
    "lifecycle": {
      "ready": true
    }
  }
}"#;
}
