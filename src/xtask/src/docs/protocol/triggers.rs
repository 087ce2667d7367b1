//! Examples of triggers.

use anyhow::Result;
use wire::{CronConfig, CronRecord, MissedFires};

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
