//! Handles webhook calls: verifies them and starts runs.

use actix_web::http::Method;
use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use auth::peer::failure_key;
use auth::principal::Actor;
use auth::webhook::{Scheme, Seal, Signed, WebhookRefusal, check, is_secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use serde_json::{Map, Value, json};
use store::{StoredWebhook, StoredWorkflow, WorkflowRef};
use url::form_urlencoded;
use uuid::Uuid;
use wire::{CreateRun, ErrorCode, RunState, SignatureScheme, WebhookBegun, WebhookConfig};

use super::once::Once;
use super::secrets::Secrets;
use super::webhook;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::idempotency::REPLAYED;
use crate::http::runs::new_run;
use crate::http::{App, body};

/// Headers that runs never receive.
const HIDDEN: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Responds with 202 and the run.
pub(super) async fn call(
    app: Anyone,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let (workflow, stored) = find(&app, &request, &name).await?;
    let config = webhook::config(&stored)?;
    if !config.allowed_methods.iter().any(|allowed| allowed == request.method().as_str()) {
        let mut refused = ApiError::new(ErrorCode::MethodNotAllowed).error_response();
        if let Ok(allow) = config.allowed_methods.join(", ").parse() {
            refused.headers_mut().insert(actix_web::http::header::ALLOW, allow);
        }
        return Ok(refused);
    }
    let raw = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let secrets = Secrets::open(&app, workflow.id, &stored.secrets)?;
    let seal = believed(&app, workflow.id, &config, &secrets, &request, &raw).await?;
    let parsed = parsed(&request, &raw)?;
    if let Some(challenge) = challenge(&request, &parsed) {
        return Ok(HttpResponse::Ok().json(json!({"challenge": challenge})));
    }
    let once = Once::new(workflow.id, &config, &request, &raw, seal)?;
    let begun = match once.begun(&app).await? {
        Some(begun) => begun,
        None => {
            count(&app, &workflow, &config).await?;
            let inputs = inputs(&config, &request, &raw, parsed);
            let wanted = CreateRun { inputs: Some(inputs), ..CreateRun::default() };
            let new = new_run(&app, &workflow, wanted, "webhook", once.key()).await?;
            once.judged(app.runs().start(new).await?)?
        }
    };
    let mut answer = HttpResponse::Accepted();
    if begun.replayed {
        answer.insert_header(REPLAYED);
    }
    Ok(answer.json(WebhookBegun { run_id: begun.run.to_string(), status: RunState::Queued }))
}

/// Finds the workflow that the path names, by id, or by handle in the workspace that the request names.
async fn find(app: &App, request: &HttpRequest, name: &str) -> ApiResult<(StoredWorkflow, StoredWebhook)> {
    let not_found = || ApiError::new(ErrorCode::TriggerNotFound);
    let named = request.headers().get("x-workspace").map(|slug| slug.to_str().unwrap_or_default());
    let slug = named.unwrap_or(store::DEFAULT_WORKSPACE);
    let workspace = app.store().workspace_with_slug(slug).await?.ok_or_else(not_found)?.id;
    let found = app.store().workflow(&WorkflowRef::parse(name), workspace).await?;
    let workflow = found.filter(|workflow| workflow.archived_at.is_none()).ok_or_else(not_found)?;
    let webhook = app.store().webhook(workflow.id).await?.ok_or_else(not_found)?;
    Ok((workflow, webhook))
}

/// Verifies a call against the webhook's requirements. Failures count as failed sign-ins.
async fn believed(
    app: &App,
    workflow: Uuid,
    config: &WebhookConfig,
    secrets: &Secrets,
    request: &HttpRequest,
    raw: &[u8],
) -> ApiResult<Option<Seal>> {
    if secrets.shared.is_none() && secrets.hmac.is_none() {
        return Ok(None);
    }
    let (limiter, address) = (app.gate().limiter(), app.client_address(request));
    // Includes the address, so that another caller cannot lock out the secret's owner.
    let identity = format!("webhook:{workflow}:{}", failure_key(address));
    limiter.check_address(address).await?;
    limiter.check_identity(&identity)?;
    match believe(app, config, secrets, request, raw) {
        Ok(seal) => Ok(seal),
        Err(code @ (ErrorCode::WebhookSecretInvalid | ErrorCode::WebhookSignatureInvalid)) => {
            Err(limiter.failed(code, address, &identity, Actor::ANONYMOUS).await)
        }
        Err(code) => Err(ApiError::new(code)),
    }
}

fn believe(
    app: &App,
    config: &WebhookConfig,
    secrets: &Secrets,
    request: &HttpRequest,
    raw: &[u8],
) -> Result<Option<Seal>, ErrorCode> {
    let one = |name: &str| {
        let mut given = request.headers().get_all(name);
        let first = given.next();
        first.filter(|_| given.next().is_none())
    };
    if let (Some(header), Some(secret)) = (&config.shared_secret_header, &secrets.shared)
        && !is_secret(one(header).map(|value| value.as_bytes()), secret)
    {
        return Err(ErrorCode::WebhookSecretInvalid);
    }
    let (Some(header), Some(secret)) = (&config.hmac_header, &secrets.hmac) else {
        return Ok(None);
    };
    let text = |name: &String| one(name).and_then(|value| value.to_str().ok());
    let timestamp = config.hmac_timestamp_header.as_ref().map(text);
    let signed = Signed { signature: text(header), timestamp, raw };
    let scheme = match config.signature_scheme {
        SignatureScheme::Plain => Scheme::Plain,
        SignatureScheme::Slack => Scheme::Slack,
    };
    let (now, tolerance) = (app.clock().now().timestamp(), i64::from(config.hmac_tolerance_seconds));
    check(scheme, secret, signed, now, tolerance).map_err(|refused| match refused {
        WebhookRefusal::Signature => ErrorCode::WebhookSignatureInvalid,
        WebhookRefusal::Stale => ErrorCode::WebhookStale,
    })
}

/// The challenge with which a sender checks that this service has the secret.
fn challenge<'a>(request: &HttpRequest, body: &'a Value) -> Option<&'a str> {
    let asked = request.method() == Method::POST && body.get("type")?.as_str()? == "url_verification";
    body.get("challenge").filter(|_| asked)?.as_str()
}

/// Counts a call against the rate limit. Only verified calls count, so that other callers cannot exhaust it.
async fn count(app: &App, workflow: &StoredWorkflow, config: &WebhookConfig) -> ApiResult<()> {
    let Some(rate) = config.rate_limit else { return Ok(()) };
    let interval = TimeDelta::seconds(i64::from(rate.interval_seconds));
    let part = i32::try_from(rate.limit).ok().and_then(|limit| interval.checked_div(limit));
    let Some(part) = part else { return Ok(()) };
    match app.store().count_webhook_call(workflow.id, part, interval).await? {
        None => Ok(()),
        Some(wait) => {
            let seconds = wait.num_seconds() + i64::from(wait.subsec_nanos() > 0);
            Err(ApiError::new(ErrorCode::WebhookRateLimited).retry_after(seconds.max(1)))
        }
    }
}

/// Parses JSON or form fields; an empty body is null.
fn parsed(request: &HttpRequest, raw: &[u8]) -> ApiResult<Value> {
    let kind = request.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let text = raw.trim_ascii_start();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    if kind == "application/json" || kind.ends_with("+json") {
        return body::json(raw);
    }
    let form = kind == "application/x-www-form-urlencoded";
    // `curl -d` labels any body as a form.
    if (form || kind.is_empty())
        && (text.starts_with(b"{") || text.starts_with(b"["))
        && let Ok(json) = body::json(raw)
    {
        return Ok(json);
    }
    Ok(if form { fields(raw) } else { Value::Null })
}

/// Form fields by name; repeated fields become a list.
fn fields(text: &[u8]) -> Value {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(text).into_owned() {
        let value = Value::String(value);
        match fields.get_mut(&name) {
            None => {
                fields.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    Value::Object(fields)
}

fn inputs(config: &WebhookConfig, request: &HttpRequest, raw: &[u8], body: Value) -> Value {
    let secret = [&config.shared_secret_header, &config.hmac_header];
    let mut headers: Map<String, Value> = Map::new();
    for (name, value) in request.headers() {
        let name = name.as_str();
        if HIDDEN.contains(&name) || secret.iter().any(|hidden| hidden.as_deref() == Some(name)) {
            continue;
        }
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match headers.get_mut(name) {
            Some(Value::String(before)) => {
                before.push_str(", ");
                before.push_str(&value);
            }
            _ => {
                headers.insert(name.to_owned(), Value::String(value));
            }
        }
    }
    let text = std::str::from_utf8(raw).map_or_else(|_| STANDARD.encode(raw), str::to_owned);
    json!({
        "method": request.method().as_str(),
        "headers": headers,
        "query": fields(request.query_string().as_bytes()),
        "body": body,
        "raw": text,
    })
}
