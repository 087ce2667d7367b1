//! Health over HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `GET /healthz` and `GET /api/system/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadinessReport {
    /// `ready` or `not_ready`.
    pub status: String,
    /// Each part's state: `database`, `vault`, `lanes`, `actors`, `lifecycle`, and `tls` if the service has a
    /// certificate.
    pub parts: BTreeMap<String, ReadyPart>,
}

/// An event from `GET /api/system/stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestEvent {
    /// Its number, from 1.
    pub event: u32,
    /// The last event's number.
    pub of: u32,
}

/// A service part's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadyPart {
    /// Whether it works.
    pub ready: bool,
    /// The reason if it does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A note for the operator although it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
