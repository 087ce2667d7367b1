//! Deduplicates webhook calls.

use actix_web::HttpRequest;
use actors::kinds::workflow::{IdempotencyKey, StartedRun};
use auth::webhook::Seal;
use chrono::DateTime;
use ring::digest::{SHA256, digest};
use uuid::Uuid;
use wire::{ErrorCode, WebhookConfig};

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, idempotency};

/// The identity of a webhook call.
pub(super) struct Once {
    workflow: Uuid,
    seal: Option<Seal>,
    /// The run's key. If the process dies before the run starts, the sender's retry starts it.
    key: Option<IdempotencyKey>,
    /// Whether the sender named the delivery.
    named: bool,
}

impl Once {
    pub(super) fn new(
        workflow: Uuid,
        config: &WebhookConfig,
        request: &HttpRequest,
        raw: &[u8],
        seal: Option<Seal>,
    ) -> ApiResult<Self> {
        let delivery = match &config.delivery_id_header {
            Some(header) => idempotency::key_in(request, header)?,
            None => idempotency::key(request)?,
        };
        let named = delivery.is_some();
        let key = match (delivery, &seal) {
            (Some(id), _) => Some(key(workflow, "delivery", id, digest(&SHA256, raw).as_ref())),
            (None, Some(seal)) => Some(key(workflow, "call", hex::encode(&seal.digest), &seal.digest)),
            (None, None) => None,
        };
        Ok(Self { workflow, seal, key, named })
    }

    pub(super) fn key(&self) -> Option<IdempotencyKey> {
        self.key.clone()
    }

    /// Returns the run started by the same delivery. Refuses a repeated signed call.
    pub(super) async fn begun(&self, app: &App) -> ApiResult<Option<StartedRun>> {
        let Some(key) = &self.key else { return Ok(None) };
        if let Some(seal) = &self.seal {
            let until = DateTime::from_timestamp(seal.until, 0)
                .ok_or_else(|| ApiError::new(ErrorCode::WebhookStale))?;
            if !app.store().take_webhook_call(self.workflow, &seal.digest, &key.key, until).await? {
                return Err(ApiError::new(ErrorCode::WebhookReplayed));
            }
        }
        app.runs().started(key).await?.map(|begun| self.judged(begun)).transpose()
    }

    /// Returns a replayed run only to senders that name deliveries.
    pub(super) fn judged(&self, begun: StartedRun) -> ApiResult<StartedRun> {
        if begun.replayed && !self.named { Err(ApiError::new(ErrorCode::WebhookReplayed)) } else { Ok(begun) }
    }
}

fn key(workflow: Uuid, kind: &str, key: String, digest: &[u8]) -> IdempotencyKey {
    let scope = format!("trigger:webhook:{workflow}:{kind}");
    IdempotencyKey { scope, also: None, key, digest: digest.to_vec() }
}
