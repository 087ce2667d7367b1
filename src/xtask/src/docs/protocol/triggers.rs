//! Examples of triggers.

use anyhow::Result;
use wire::{
    CronConfig, CronRecord, MissedFires, RunState, SetWebhook, SignatureScheme, WebhookBegun, WebhookConfig,
    WebhookRate, WebhookRecord,
};

use super::block;

const AT: &str = "2026-11-22T09:00:00.000000Z";

fn config() -> CronConfig {
    CronConfig {
        expression: "30 8 * * MON-FRI".into(),
        timezone: "Europe/Berlin".into(),
        overlap: false,
        missed: MissedFires::Once,
        enabled: true,
    }
}

pub(super) fn cron_config() -> Result<String> {
    block(&config())
}

pub(super) fn cron() -> Result<String> {
    block(&CronRecord {
        config: config(),
        next_fire_at: Some("2026-11-23T07:30:00.000000Z".into()),
        last_scheduled_for: None,
        last_run_id: None,
        last_skipped: None,
        last_error: None,
        created_at: AT.into(),
        updated_at: AT.into(),
    })
}

const RATE: WebhookRate = WebhookRate { limit: 60, interval_seconds: 60 };

pub(super) fn webhook_config() -> Result<String> {
    block(&SetWebhook {
        hmac_header: Some("X-Signature".into()),
        hmac_secret: Some("4f9c1d2e8b7a60533b1c".into()),
        hmac_timestamp_header: Some("X-Timestamp".into()),
        delivery_id_header: Some("X-Delivery-Id".into()),
        rate_limit: Some(RATE),
        ..SetWebhook::default()
    })
}

pub(super) fn webhook() -> Result<String> {
    block(&WebhookRecord {
        config: WebhookConfig {
            allowed_methods: vec!["POST".into()],
            shared_secret_header: None,
            hmac_header: Some("x-signature".into()),
            hmac_algorithm: "sha256".into(),
            hmac_timestamp_header: Some("x-timestamp".into()),
            hmac_tolerance_seconds: 300,
            delivery_id_header: Some("x-delivery-id".into()),
            signature_scheme: SignatureScheme::Plain,
            allow_unsigned: false,
            rate_limit: Some(RATE),
        },
        shared_secret: None,
        hmac_secret: Some("********".into()),
        created_at: AT.into(),
        updated_at: AT.into(),
    })
}

pub(super) fn webhook_begun() -> Result<String> {
    let run_id = "0198c2e1-07b4-7c11-9a52-3f6d1e0b8a47".into();
    block(&WebhookBegun { run_id, status: RunState::Queued })
}
