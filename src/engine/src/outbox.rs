//! What is sent once the step that wants it is done: requests that wait in an outbox, without their secrets.

use std::time::Duration;

use kernel::Clock;
use net::{Limits, Method, Request, Response};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::{Value, json};
use uuid::Uuid;
use wire::ErrorCode;

pub use crate::execute::{Delivery, Mail};

use crate::NodeError;
use crate::credentials::{Hole, read_input};
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
    let sent = send(id, request, (credentials, outbound, clock), &LIMITS, &redactor).await;
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

/// A request to a service that answers with JSON.
#[derive(Debug, Clone, Copy)]
pub struct SignedPost<'a> {
    /// The same for each attempt to ask the same, and for nothing else.
    pub key: &'a str,
    /// Where to.
    pub url: &'a str,
    /// The name of the secret that signs, in the vault.
    pub credential: &'a str,
    /// Bytes of the longest answer.
    pub most: u64,
    /// How long it may take until the end of the answer.
    pub limit: Duration,
}

/// Posts JSON that is signed as the node `webhook_send` signs, and returns the JSON of the answer, without the secret.
///
/// # Errors
/// [`NodeError`], without the secret: it is not there, the address is refused, or the answer is an error, too large, too late or not JSON.
pub async fn post_signed(
    post: SignedPost<'_>,
    json: Value,
    credentials: &dyn Credentials,
    client: &Outbound,
    clock: &dyn Clock,
) -> Result<Value, NodeError> {
    let SignedPost { key, url, credential, most, limit } = post;
    let secret = Hole { pointer: "/secret".to_owned(), at: 0, name: credential.to_owned() };
    let fields = json!({"url": url, "json": json, "secret": secret.text()});
    let Delivery { id, request } = Delivery::new(key, json!({"fields": fields, "secrets": [secret]}));
    let limits = Limits { head: limit, total: Some(limit), idle: limit, body_bytes: most, ..LIMITS };
    let redactor = Redactor::default();
    let answered = async {
        let answer = send(id, request, (credentials, client, clock), &limits, &redactor).await?;
        let place = answer.place().to_owned();
        let bytes = answer.bytes().await.map_err(|error| outbound::fault(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| NodeError::failed(format!("the answer of {place} is not JSON: {error}")))
    };
    let answered: Result<Value, NodeError> = answered.await;
    answered.map(|answer| redactor.known().value(answer)).map_err(|error| redactor.error(error))
}

/// Sends what waits, and returns an answer that does not say no.
async fn send(
    id: Uuid,
    request: Value,
    (credentials, client, clock): (&dyn Credentials, &Outbound, &dyn Clock),
    limits: &Limits,
    redactor: &Redactor,
) -> Result<Response, NodeError> {
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
    let answer = client.send(request.body(body), limits).await.map_err(|error| outbound::fault(&error))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(outbound::refused(answer, clock, redactor).await)
}
