//! Requests that are sent after the requesting step is done. They wait in an outbox without their secrets.

use std::time::Duration;

use kernel::Clock;
use net::{Limits, Method, Request, Response};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::{Value, json};
use uuid::Uuid;
use wire::ErrorCode;

pub use crate::execute::{Delivery, Mail};

use crate::NodeError;
use crate::credentials::{SecretPosition, read_input};
use crate::execute::ports::{Credentials, Outbound};
use crate::outbound;
use crate::redact::Redactor;
use crate::template::as_text;

/// Short limits: a receiver only has to accept the request.
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

/// A delivery error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The message, without secrets.
    pub message: String,
    /// Whether a retry would never succeed.
    pub permanent: bool,
    /// Wait requested by the receiver.
    pub retry_after: Option<Duration>,
}

/// Sends the request with this id. Returns the success status.
///
/// # Errors
/// [`Undelivered`] says whether a retry is worthwhile.
pub async fn deliver(
    id: Uuid,
    request: Value,
    credentials: &dyn Credentials,
    outbound: &Outbound,
    clock: &dyn Clock,
) -> Result<u16, Undelivered> {
    let redactor = Redactor::default();
    let sent = send(id, request, credentials, outbound, clock, &LIMITS, &redactor).await;
    sent.map(|answer| answer.status().as_u16()).map_err(|error| {
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

/// A request to a service that returns JSON.
#[derive(Debug, Clone, Copy)]
pub struct SignedPost<'a> {
    /// Identical for each attempt at the same request, and unique to it.
    pub key: &'a str,
    /// The address.
    pub url: &'a str,
    /// Vault name of the signing secret.
    pub credential: &'a str,
    /// Maximum response bytes.
    pub most: u64,
    /// Maximum time until the end of the response.
    pub limit: Duration,
}

/// Posts JSON with the same signature as the node `webhook_send`. Returns the response JSON without the secret.
///
/// # Errors
/// [`NodeError`], without the secret: the secret is missing, the address is refused, or the response is an error, too
/// large, too late or not JSON.
pub async fn post_signed(
    post: SignedPost<'_>,
    json: Value,
    credentials: &dyn Credentials,
    client: &Outbound,
    clock: &dyn Clock,
) -> Result<Value, NodeError> {
    let SignedPost { key, url, credential, most, limit } = post;
    let secret = SecretPosition { pointer: "/secret".to_owned(), at: 0, name: credential.to_owned() };
    let fields = json!({"url": url, "json": json, "secret": secret.text()});
    let Delivery { id, request } = Delivery::new(key, json!({"fields": fields, "secrets": [secret]}));
    let limits = Limits { head: limit, total: Some(limit), idle: limit, body_bytes: most, ..LIMITS };
    let redactor = Redactor::default();
    let answered = async {
        let answer = send(id, request, credentials, client, clock, &limits, &redactor).await?;
        let place = answer.place().to_owned();
        let bytes = answer.bytes().await.map_err(|error| outbound::fault(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| NodeError::failed(format!("the answer of {place} is not JSON: {error}")))
    };
    let answered: Result<Value, NodeError> = answered.await;
    answered.map(|answer| redactor.known().value(answer)).map_err(|error| redactor.error(error))
}

/// Sends a request. Returns the response if its status is not an error.
async fn send(
    id: Uuid,
    request: Value,
    credentials: &dyn Credentials,
    client: &Outbound,
    clock: &dyn Clock,
    limits: &Limits,
    redactor: &Redactor,
) -> Result<Response, NodeError> {
    let (fields, positions) = read_input(request)?;
    let fields = outbound::revealed(fields, positions, credentials, redactor).await?;
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
    let answer = client.send(request.body(body), limits).await.map_err(|error| outbound::fault(&error))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(outbound::refused(answer, clock, redactor).await)
}
