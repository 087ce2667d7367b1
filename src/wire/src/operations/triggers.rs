//! Triggers that start workflow runs automatically.

use crate::operation::{Answer, Operation, delete, get, json, operations, patch, post, put};
use crate::{CronConfig, CronRecord, ErrorCode, Scope, SetWebhook, WebhookAnswer, WebhookRecord};

/// Refusals for an unknown workflow or trigger in the path.
const TRIGGER: &[ErrorCode] = &[ErrorCode::WorkflowNotFound, ErrorCode::TriggerNotFound];

/// Answers to a call.
const CALLED: &[Answer] = &[
    Answer::new(202, json!(WebhookAnswer, examples::BEGUN)),
    Answer::new(200, json!(WebhookAnswer)).when("the call is Slack's verification of the address"),
];

/// Reasons for rejecting a call.
const REJECTED: &[ErrorCode] = &[
    ErrorCode::TriggerNotFound,
    ErrorCode::MethodNotAllowed,
    ErrorCode::WebhookSecretInvalid,
    ErrorCode::WebhookSignatureInvalid,
    ErrorCode::AuthRateLimited,
    ErrorCode::WebhookStale,
    ErrorCode::WebhookReplayed,
    ErrorCode::WebhookRateLimited,
    ErrorCode::IdempotencyKeyInvalid,
    ErrorCode::IdempotencyKeyReused,
    ErrorCode::IdempotencyInProgress,
    ErrorCode::WorkspaceFull,
    ErrorCode::WorkflowArchived,
    ErrorCode::WorkflowNoVersion,
    ErrorCode::RunInputsInvalid,
    ErrorCode::InvalidJson,
    ErrorCode::TooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::RequestTimeout,
];

const fn call(operation: Operation) -> Operation {
    operation.answers(CALLED).errors(REJECTED)
}

operations! {
    READ_CRON = get("/api/workflows/{ref}/triggers/cron", "read_schedule", "Reads the schedule.")
        .needs(Scope::WorkflowsRead)
        .answers(&[Answer::new(200, json!(CronRecord, examples::CRON))])
        .shared_errors(TRIGGER);

    SET_CRON = put(
        "/api/workflows/{ref}/triggers/cron",
        "set_schedule",
        "Configures the schedule; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(CronConfig, examples::CRON_CONFIG))
    .answers(&[Answer::new(200, json!(CronRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowArchived]);

    DELETE_CRON = delete(
        "/api/workflows/{ref}/triggers/cron",
        "delete_schedule",
        "Removes the schedule; its runs continue.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .shared_errors(TRIGGER);

    READ_WEBHOOK = get(
        "/api/workflows/{ref}/triggers/webhook/config",
        "read_webhook",
        "Reads the webhook's configuration.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(WebhookRecord, examples::WEBHOOK))])
    .shared_errors(TRIGGER);

    SET_WEBHOOK = put(
        "/api/workflows/{ref}/triggers/webhook/config",
        "set_webhook",
        "Configures the webhook; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(SetWebhook, examples::WEBHOOK_CONFIG))
    .answers(&[Answer::new(200, json!(WebhookRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowArchived]);

    DELETE_WEBHOOK = delete(
        "/api/workflows/{ref}/triggers/webhook/config",
        "delete_webhook",
        "Removes the webhook; its runs continue.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .shared_errors(TRIGGER);

    CALL = call(post(
        "/api/workflows/{ref}/triggers/webhook",
        "call_webhook",
        "Starts a run, if the call is authentic and its verb is allowed.",
    ));

    CALL_BY_GET = call(get("/api/workflows/{ref}/triggers/webhook", "call_webhook_by_get", "Starts a run like the `POST`."));

    CALL_BY_PUT = call(put("/api/workflows/{ref}/triggers/webhook", "call_webhook_by_put", "Starts a run like the `POST`."));

    CALL_BY_PATCH =
        call(patch("/api/workflows/{ref}/triggers/webhook", "call_webhook_by_patch", "Starts a run like the `POST`."));

    CALL_BY_DELETE =
        call(delete("/api/workflows/{ref}/triggers/webhook", "call_webhook_by_delete", "Starts a run like the `POST`."));
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const BEGUN: &str = r#"{
  "run_id": "0198c2e1-07b4-7c11-9a52-3f6d1e0b8a47",
  "status": "queued"
}"#;

    pub(super) const CRON: &str = r#"{
  "expression": "30 8 * * MON-FRI",
  "timezone": "Europe/Berlin",
  "overlap": false,
  "missed": "once",
  "enabled": true,
  "next_fire_at": "2026-11-23T07:30:00.000000Z",
  "last_scheduled_for": null,
  "last_run_id": null,
  "last_skipped": null,
  "last_error": null,
  "created_at": "2026-11-22T09:00:00.000000Z",
  "updated_at": "2026-11-22T09:00:00.000000Z"
}"#;

    pub(super) const CRON_CONFIG: &str = r#"{
  "expression": "30 8 * * MON-FRI",
  "timezone": "Europe/Berlin",
  "overlap": false,
  "missed": "once",
  "enabled": true
}"#;

    pub(super) const WEBHOOK: &str = r#"{
  "allowed_methods": [
    "POST"
  ],
  "shared_secret_header": null,
  "hmac_header": "x-signature",
  "hmac_algorithm": "sha256",
  "hmac_timestamp_header": "x-timestamp",
  "hmac_tolerance_seconds": 300,
  "delivery_id_header": "x-delivery-id",
  "signature_scheme": "plain",
  "allow_unsigned": false,
  "rate_limit": {
    "limit": 60,
    "interval_seconds": 60
  },
  "shared_secret": null,
  "hmac_secret": "********",
  "created_at": "2026-11-22T09:00:00.000000Z",
  "updated_at": "2026-11-22T09:00:00.000000Z"
}"#;

    pub(super) const WEBHOOK_CONFIG: &str = r#"{
  "hmac_header": "X-Signature",
  "hmac_secret": "4f9c1d2e8b7a60533b1c",
  "hmac_timestamp_header": "X-Timestamp",
  "delivery_id_header": "X-Delivery-Id",
  "rate_limit": {
    "limit": 60,
    "interval_seconds": 60
  }
}"#;
}
