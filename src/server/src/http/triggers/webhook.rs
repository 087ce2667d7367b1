//! A workflow's webhook configuration.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use control::triggers;
use store::StoredWebhook;
use wire::{ErrorCode, WebhookConfig, WebhookRecord};

use super::requests;
use super::secrets::Secrets;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead, WorkflowsWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::query;
use crate::http::time;

pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<WebhookRecord>> {
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let found = caller.store().webhook(workflow.id).await?;
    let found = found.ok_or_else(|| ApiError::new(ErrorCode::TriggerNotFound))?;
    let secrets = Secrets::open(caller.app(), workflow.id, &found.secrets)?;
    Ok(Json(record(found, &secrets)?))
}

/// Replaces the configuration. A secret that is omitted or sent as its placeholder is kept.
pub(super) async fn set(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    let known = match caller.store().webhook(workflow.id).await? {
        Some(known) => Secrets::open(caller.app(), workflow.id, &known.secrets)?,
        None => Secrets::default(),
    };
    let (config, secrets) = change.wanted(|body| requests::webhook(body, &known))?;
    let internal = |error: serde_json::Error| ApiError::new(ErrorCode::Internal).with_cause(error);
    let config = serde_json::to_value(&config).map_err(internal)?;
    let sealed = secrets.seal(caller.app(), workflow.id)?;
    change
        .make(async |changes| {
            let stored =
                triggers::set_webhook(changes, caller.requester(), &workflow, &config, &sealed).await?;
            ChangeReply::ok(&record(stored, &secrets)?)
        })
        .await
}

/// Removes the webhook. Its URL no longer accepts calls.
pub(super) async fn remove(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    change.wants_no_more()?;
    change
        .delete(async |changes| triggers::remove_webhook(changes, caller.requester(), &workflow).await)
        .await
}

/// The stored configuration.
pub(super) fn config(stored: &StoredWebhook) -> ApiResult<WebhookConfig> {
    serde_json::from_value(stored.config.clone())
        .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

fn record(stored: StoredWebhook, secrets: &Secrets) -> ApiResult<WebhookRecord> {
    let masked = |secret: &Option<kernel::Secret>| secret.as_ref().map(|_| requests::MASK.to_owned());
    Ok(WebhookRecord {
        config: config(&stored)?,
        shared_secret: masked(&secrets.shared),
        hmac_secret: masked(&secrets.hmac),
        created_at: time(stored.created_at),
        updated_at: time(stored.updated_at),
    })
}
