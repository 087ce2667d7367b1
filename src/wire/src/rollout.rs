//! How versions of a workflow become live: the gate and the canary.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Timestamp;

/// A version may be worse than the live one by this much, unless the gate says otherwise.
const MAX_DROP: f64 = 0.02;

const fn max_drop() -> f64 {
    MAX_DROP
}

/// `PUT /api/workflows/{ref}/rollout`: what is absent or null is removed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutRollout {
    /// The evaluation that a new version must pass before it becomes live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<RolloutGate>,
    /// The version that a part of the new threads uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<RolloutCanary>,
}

/// The evaluation that a new version must pass before it becomes live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RolloutGate {
    /// Id or name of a dataset of the workflow.
    pub dataset: String,
    /// The version of the dataset. Absent or null in a request: the newest one at that time, which the response shows.
    #[serde(default)]
    pub dataset_version: Option<i32>,
    /// As in an evaluation. The response shows the versions of workflows that judge, as `workflow:<handle>@<version>`: without one in the
    /// request, the version that was live at that time.
    pub evaluators: Vec<Value>,
    /// The least score; from 0 to 1.
    pub threshold: f64,
    /// How much lower than the score of the live version the score may be; from 0 to 1.
    #[serde(default = "max_drop")]
    pub max_drop: f64,
    /// The first cases only; null: all.
    #[serde(default)]
    pub max_cases: Option<i32>,
    /// `{max_llm_calls, max_tokens, max_cost, max_seconds}` of each evaluation; null: no limits. An evaluation that its budget ends is a
    /// failure.
    #[serde(default)]
    pub budget: Option<Map<String, Value>>,
}

impl RolloutGate {
    /// The object `evaluation` for this version of a dataset; `None`: the latest one.
    #[must_use]
    pub fn evaluation(&self, dataset: &str, version: Option<i32>) -> Map<String, Value> {
        let mut of = Map::from_iter([("id".to_owned(), json!(dataset))]);
        of.extend(version.map(|number| ("version".to_owned(), json!(number))));
        let mut evaluation = Map::from_iter([
            ("dataset".to_owned(), Value::Object(of)),
            ("evaluators".to_owned(), json!(self.evaluators)),
        ]);
        evaluation.extend(self.max_cases.map(|most| ("max_cases".to_owned(), json!(most))));
        evaluation.extend(self.budget.clone().map(|budget| ("budget".to_owned(), Value::Object(budget))));
        evaluation
    }
}

/// The version that a part of the new threads uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RolloutCanary {
    /// Its number.
    pub version: i32,
    /// The share of new threads, from 1 to 50.
    pub percent: i32,
    /// It becomes live after this many turns; null: not by itself.
    #[serde(default)]
    pub promote_after_turns: Option<i32>,
}

/// `GET /api/workflows/{ref}/rollout`: how versions become live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rollout {
    /// The live version; null: none.
    pub live_version: Option<i32>,
    /// The evaluation that a new version must pass; null: it becomes live when it is saved.
    pub gate: Option<RolloutGate>,
    /// The version that a part of the new threads uses; null: none.
    pub canary: Option<RunningCanary>,
    /// What the canary is judged by, since it started; null without a canary.
    pub counts: Option<CanaryCounts>,
    /// How the last canary ended; null: there was none.
    pub last_canary: Option<EndedCanary>,
}

/// A canary that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningCanary {
    /// Its number.
    pub version: i32,
    /// The share of new threads.
    pub percent: i32,
    /// It becomes live after this many turns; null: not by itself.
    pub promote_after_turns: Option<i32>,
    /// When it was set.
    pub started_at: Timestamp,
}

/// The counts of both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CanaryCounts {
    /// Of the canary.
    pub canary: VersionCounts,
    /// Of the live version.
    pub live: VersionCounts,
}

/// What users made of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionCounts {
    /// Turns that have ended, except cancelled ones.
    pub turns: u32,
    /// Turns that have failed.
    pub failed_turns: u32,
    /// Turns with feedback, once for each author.
    pub ratings: u32,
    /// Those with negative feedback.
    pub negative_ratings: u32,
}

/// How a canary ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedCanary {
    /// Its number.
    pub version: i32,
    /// The share of new threads that it had.
    pub percent: i32,
    /// What became of it.
    pub outcome: CanaryOutcome,
    /// Why.
    pub reason: Option<String>,
    /// When it was set.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What it was judged by; null: it was not judged.
    pub counts: Option<CanaryCounts>,
}

/// What became of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CanaryOutcome {
    /// It was worse than the live version.
    RolledBack,
    /// It became live.
    Promoted,
    /// A later version became live.
    Superseded,
    /// A publisher removed it.
    Removed,
}

/// What the gate has decided about a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionGate {
    /// Whether it passed.
    pub status: GateStatus,
    /// The evaluation; null: it could not be started.
    pub run_id: Option<String>,
    /// Its score; null: not yet, or it failed.
    pub score: Option<f64>,
    /// The version that it is compared with; null: none was live, or it is not known yet.
    pub live_version: Option<i32>,
    /// The score of that version on the same cases.
    pub live_score: Option<f64>,
    /// Why the gate failed; null if it did not.
    pub error: Option<String>,
}

/// Whether a version passed its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// It is being evaluated.
    Running,
    /// It passed.
    Passed,
    /// It did not.
    Failed,
}

impl GateStatus {
    /// As it is stored and sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Passed, Self::Failed].into_iter().find(|status| status.as_str() == name)
    }
}
