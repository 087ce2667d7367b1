//! What begins runs of a workflow by itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// What becomes of fires whose time has passed while no instance ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissedFires {
    /// They are left out; the next one is in the future.
    #[default]
    Skip,
    /// One run makes up for all of them.
    Once,
}

impl MissedFires {
    /// As it is stored and sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
        }
    }

    /// The policy of this name.
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
    /// An IANA name; `UTC` where it is not given.
    #[serde(default = "utc")]
    pub timezone: String,
    /// Whether a run is begun while the last one of this trigger has not ended.
    #[serde(default)]
    pub overlap: bool,
    /// What becomes of fires that were missed.
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

/// A fire that began no run because it was not to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriggerSkip {
    /// The time that it stood for.
    pub scheduled_for: Timestamp,
    /// `overlap`: the last run has not ended; `missed`: no instance ran.
    pub reason: String,
}

/// A fire that began no run though it was to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriggerError {
    /// The time that it stood for.
    pub scheduled_for: Timestamp,
    /// A code of the table.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A cron trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CronRecord {
    /// What it was told.
    #[serde(flatten)]
    pub config: CronConfig,
    /// When it fires next; null: it does not.
    pub next_fire_at: Option<Timestamp>,
    /// The time that its last run stood for.
    pub last_scheduled_for: Option<Timestamp>,
    /// Its last run.
    pub last_run_id: Option<String>,
    /// The last fire that was left out.
    pub last_skipped: Option<TriggerSkip>,
    /// Why the last fire failed; null once one has begun a run again.
    pub last_error: Option<TriggerError>,
    /// When it was configured.
    pub created_at: Timestamp,
    /// When its configuration last changed.
    pub updated_at: Timestamp,
}

/// What a signature is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SignatureScheme {
    /// `<timestamp>.<body>`, or the body alone.
    #[default]
    Plain,
    /// As Slack signs: `v0:<timestamp>:<body>`, behind `v0=`.
    Slack,
}

/// How many calls a webhook takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookRate {
    /// So many at once, and then one for each part of the interval.
    pub limit: u32,
    /// Seconds.
    pub interval_seconds: u32,
}

/// A webhook's configuration, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookConfig {
    /// Verbs that begin a run.
    pub allowed_methods: Vec<String>,
    /// The header that holds the shared secret.
    pub shared_secret_header: Option<String>,
    /// The header that holds the signature.
    pub hmac_header: Option<String>,
    /// `sha256`.
    pub hmac_algorithm: String,
    /// The header that holds the timestamp, in Unix seconds.
    pub hmac_timestamp_header: Option<String>,
    /// How far the timestamp may be away.
    pub hmac_tolerance_seconds: u32,
    /// The header in which the sender names a delivery, so that one that is sent again begins no second run; null:
    /// `Idempotency-Key`.
    pub delivery_id_header: Option<String>,
    /// What the signature is made of.
    pub signature_scheme: SignatureScheme,
    /// Whether it takes calls of anybody.
    pub allow_unsigned: bool,
    /// Null: as many calls as come.
    pub rate_limit: Option<WebhookRate>,
}

/// `PUT /api/workflows/{ref}/triggers/webhook/config`. What is not given is as usual; a secret that is not given stays.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SetWebhook {
    /// Verbs that begin a run; `POST` where none is given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_methods: Vec<String>,
    /// The header that holds the shared secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_secret_header: Option<String>,
    /// The shared secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_secret: Option<String>,
    /// The header that holds the signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_header: Option<String>,
    /// The secret that calls are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_secret: Option<String>,
    /// The header that holds the timestamp, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_timestamp_header: Option<String>,
    /// How far the timestamp may be away; 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac_tolerance_seconds: Option<u32>,
    /// The header in which the sender names a delivery; `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id_header: Option<String>,
    /// What the signature is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_scheme: Option<SignatureScheme>,
    /// Whether it takes calls of anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsigned: Option<bool>,
    /// How many calls it takes.
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
    /// What it was told.
    #[serde(flatten)]
    pub config: WebhookConfig,
    /// `********`, or null.
    pub shared_secret: Option<String>,
    /// The same.
    pub hmac_secret: Option<String>,
    /// When it was configured.
    pub created_at: Timestamp,
    /// When its configuration last changed.
    pub updated_at: Timestamp,
}

/// Answer to a webhook's call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookBegun {
    /// The run.
    pub run_id: String,
    /// `queued`.
    pub status: crate::RunState,
}

/// Answer to a call of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WebhookAnswer {
    /// The run.
    Begun(WebhookBegun),
    /// The challenge of a verification.
    Challenge {
        /// As it was sent.
        challenge: String,
    },
}
