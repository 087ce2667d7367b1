//! What is sent once the step that wants it is done: requests that wait in an outbox, without their secrets.

use std::time::Duration;

use kernel::Clock;
use net::{Limits, Method, Request};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::{Value, json};
use uuid::Uuid;
use wire::ErrorCode;

pub use crate::execute::{Delivery, Mail};

use crate::NodeError;
use crate::credentials::read_input;
use crate::execute::ports::{Credentials, Outbound};
use crate::outbound;
use crate::redact::Redactor;
use crate::template::as_text;

/// A receiver only has to take it.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(20),
    total: Some(Duration::from_secs(25)),
    idle: Duration::from_secs(10),
    rate: None,
    head_bytes: 64 * 1024,
    body_bytes: 1024 * 1024,
    redirects: 0,
    same_origin: true,
};

/// Why a delivery was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Without any secret.
    pub message: String,
    /// Whether it would never be taken.
    pub permanent: bool,
    /// How long the receiver asks to wait.
    pub retry_after: Option<Duration>,
}

/// Sends what waits under this id; answers the status that it was taken with.
///
/// # Errors
/// [`Undelivered`] says whether it is worth another try.
pub async fn deliver(
    id: Uuid,
    request: Value,
    credentials: &dyn Credentials,
    outbound: &Outbound,
    clock: &dyn Clock,
) -> Result<u16, Undelivered> {
    let redactor = Redactor::default();
    let sent = send(id, request, credentials, outbound, clock, &redactor).await;
    sent.map_err(|error| {
        let error = redactor.error(error);
        // A user may create the credential, or an operator may restore the key.
        let later = matches!(error.code, ErrorCode::CredentialMissing | ErrorCode::VaultKeyMissing);
        Undelivered {
            permanent: !(error.retryable || later),
            message: error.message,
            retry_after: error.retry_after,
        }
    })
}

async fn send(
    id: Uuid,
    request: Value,
    credentials: &dyn Credentials,
    client: &Outbound,
    clock: &dyn Clock,
    redactor: &Redactor,
) -> Result<u16, NodeError> {
    let (fields, holes) = read_input(request)?;
    let fields = outbound::revealed(fields, holes, credentials, redactor).await?;
    let (kind, body) = match (fields.get("json"), fields.text("body")) {
        (Some(json), _) => ("application/json", json.to_string()),
        (None, Some(text)) => ("text/plain; charset=utf-8", text.to_owned()),
        (None, None) => ("application/json", json!(null).to_string()),
    };
    let url = outbound::address(fields.text("url").unwrap_or_default())?;
    let mut request = Request::new(Method::POST, url.as_str());
    let given = fields.get("headers").and_then(Value::as_object);
    let mut has_kind = false;
    for (name, value) in given.into_iter().flatten() {
        has_kind |= name.eq_ignore_ascii_case("content-type");
        request = outbound::header(request, name, &as_text(value))?;
    }
    if !has_kind {
        request = outbound::header(request, "Content-Type", kind)?;
    }
    let id = id.to_string();
    for (name, value) in
        [("User-Agent", outbound::USER_AGENT), ("X-Delivery-Id", &id), ("Idempotency-Key", &id)]
    {
        request = outbound::header(request, name, value)?;
    }
    if let Some(secret) = fields.text("secret") {
        let timestamp = clock.now().timestamp().to_string();
        let signed = [timestamp.as_bytes(), b".", body.as_bytes()].concat();
        let signature = hex::encode(sign(&Key::new(HMAC_SHA256, secret.as_bytes()), &signed));
        request = outbound::header(request, "X-Timestamp", &timestamp)?;
        request = outbound::header(request, "X-Signature", &format!("sha256={signature}"))?;
    }
    let answer = client.send(request.body(body), &LIMITS).await.map_err(|error| outbound::fault(&error))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(status.as_u16());
    }
    Err(outbound::refused(answer, clock, redactor).await)
}
