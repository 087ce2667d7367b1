//! Triggers that start workflow runs automatically.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Handling of fires that became due while no instance ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissedFires {
    /// They are skipped; the next fire is in the future.
    #[default]
    Skip,
    /// One run replaces all of them.
    Once,
}

impl MissedFires {
    /// The stored and sent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
        }
    }

    /// Parses a policy name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Skip, Self::Once].into_iter().find(|missed| missed.as_str() == text)
    }
}

/// `PUT /api/workflows/{ref}/triggers/cron`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CronConfig {
    /// Five fields (minute, hour, day of the month, month, day of the week), or six with seconds first.
    pub expression: String,
    /// An IANA name (default: `UTC`).
    #[serde(default = "utc")]
    pub timezone: String,
    /// Whether a run may start before the trigger's last run has ended.
    #[serde(default)]
    pub overlap: bool,
    /// Handling of missed fires.
    #[serde(default)]
    pub missed: MissedFires,
    /// Whether it fires.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn yes() -> bool {
    true
}

/// A fire that was skipped on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriggerSkip {
    /// Its scheduled time.
    pub scheduled_for: Timestamp,
    /// `overlap`: the last run has not ended; `missed`: no instance ran.
    pub reason: String,
}

/// A fire that failed to start a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriggerError {
    /// Its scheduled time.
    pub scheduled_for: Timestamp,
    /// An error code.
    pub code: String,
    /// A message for people.
    pub message: String,
}

/// A cron trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CronRecord {
    /// Its configuration.
    #[serde(flatten)]
    pub config: CronConfig,
    /// Next fire time; null: none.
    pub next_fire_at: Option<Timestamp>,
    /// Its last run's scheduled time.
    pub last_scheduled_for: Option<Timestamp>,
    /// Its last run.
    pub last_run_id: Option<String>,
    /// The last skipped fire.
    pub last_skipped: Option<TriggerSkip>,
    /// The last fire's error; null after a later fire has started a run.
    pub last_error: Option<TriggerError>,
    /// Configuration time.
    pub created_at: Timestamp,
    /// Time of the last configuration change.
    pub updated_at: Timestamp,
}

/// The signed text and its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SignatureScheme {
    /// `<timestamp>.<body>`, or only the body.
    #[default]
    Plain,
    /// Slack's format: `v0:<timestamp>:<body>`, after `v0=`.
    Slack,
}

/// A webhook's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookRate {
    /// Maximum burst; after that, one call per `interval_seconds / limit` seconds.
    pub limit: u32,
    /// Seconds.
    pub interval_seconds: u32,
}

/// A webhook's configuration, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookConfig {
    /// Methods that start a run.
    pub allowed_methods: Vec<String>,
    /// The header with the shared secret.
    pub shared_secret_header: Option<String>,
    /// The header with the signature.
    pub hmac_header: Option<String>,
    /// `sha256`.
    pub hmac_algorithm: String,
    /// The header with the timestamp, in Unix seconds.
    pub hmac_timestamp_header: Option<String>,
    /// Maximum timestamp deviation.
    pub hmac_tolerance_seconds: u32,
    /// The header with the sender's delivery id, so that a repeated delivery starts no second run; null:
    /// `Idempotency-Key`.
    pub delivery_id_header: Option<String>,
    /// The signed text and its format.
    pub signature_scheme: SignatureScheme,
    /// Whether it accepts unsigned calls from anyone.
    pub allow_unsigned: bool,
    /// The rate limit; null: unlimited.
    pub rate_limit: Option<WebhookRate>,
}

/// `PUT /api/workflows/{ref}/triggers/webhook/config`. Absent members get their defaults; an absent secret stays.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SetWebhook {
    /// Methods that start a run (default: `POST`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_methods: Vec<String>,
    /// The header with the shared secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_secret_header: Option<String>,
    /// The shared secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_secret: Option<String>,
    /// The header with the signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_header: Option<String>,
    /// The secret that signs calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_secret: Option<String>,
    /// The header with the timestamp, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_timestamp_header: Option<String>,
    /// Maximum timestamp deviation (default: 300).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_tolerance_seconds: Option<u32>,
    /// The header with the sender's delivery id (default: `Idempotency-Key`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id_header: Option<String>,
    /// The signed text and its format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_scheme: Option<SignatureScheme>,
    /// Whether it accepts unsigned calls from anyone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsigned: Option<bool>,
    /// The rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<WebhookRate>,
}

impl fmt::Debug for SetWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetWebhook")
            .field("shared_secret_header", &self.shared_secret_header)
            .field("hmac_header", &self.hmac_header)
            .finish_non_exhaustive()
    }
}

/// A webhook. Its secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookRecord {
    /// Its configuration.
    #[serde(flatten)]
    pub config: WebhookConfig,
    /// `********`, or null.
    pub shared_secret: Option<String>,
    /// `********`, or null.
    pub hmac_secret: Option<String>,
    /// Configuration time.
    pub created_at: Timestamp,
    /// Time of the last configuration change.
    pub updated_at: Timestamp,
}

/// The answer to a webhook call that started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookBegun {
    /// The run.
    pub run_id: String,
    /// `queued`.
    pub status: crate::RunState,
}

/// The answer to a webhook call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WebhookAnswer {
    /// The run.
    Begun(WebhookBegun),
    /// The challenge from a verification call.
    Challenge {
        /// The received challenge.
        challenge: String,
    },
}
