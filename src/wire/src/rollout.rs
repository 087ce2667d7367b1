//! Rollouts: the gate and the canary decide when a workflow version becomes live.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Timestamp;

/// Default for the allowed score drop below the live version.
const MAX_DROP: f64 = 0.02;

const fn max_drop() -> f64 {
    MAX_DROP
}

/// `PUT /api/workflows/{ref}/rollout`: absent or null members are removed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutRollout {
    /// The evaluation that a new version must pass before it becomes live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<RolloutGate>,
    /// The version for a share of new threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<RolloutCanary>,
}

/// The evaluation that a new version must pass before it becomes live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RolloutGate {
    /// Id or name of one of the workflow's datasets.
    pub dataset: String,
    /// The dataset version. Absent or null in a request: the newest one at that time, which the response shows.
    #[serde(default)]
    pub dataset_version: Option<i32>,
    /// Evaluators, as in an evaluation. The response shows the versions of judging workflows, as
    /// `workflow:<handle>@<version>`: without one in the request, the version that was live at that time.
    pub evaluators: Vec<Value>,
    /// Minimum score; from 0 to 1.
    pub threshold: f64,
    /// Maximum drop below the live version's score; from 0 to 1.
    #[serde(default = "max_drop")]
    pub max_drop: f64,
    /// Only the first cases; null: all.
    #[serde(default)]
    pub max_cases: Option<i32>,
    /// `{max_llm_calls, max_tokens, max_cost, max_seconds}` of each evaluation; null: no limits. An evaluation that
    /// exceeds its budget fails.
    #[serde(default)]
    pub budget: Option<Map<String, Value>>,
}

impl RolloutGate {
    /// The `evaluation` object for this dataset version; `None`: the latest one.
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

/// The version for a share of new threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RolloutCanary {
    /// Its number.
    pub version: i32,
    /// Percentage of new threads, from 1 to 50.
    pub percent: i32,
    /// Turns after which it becomes live; null: not automatically.
    #[serde(default)]
    pub promote_after_turns: Option<i32>,
}

/// `GET /api/workflows/{ref}/rollout`: the gate, the canary and their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rollout {
    /// The live version; null: none.
    pub live_version: Option<i32>,
    /// The evaluation that a new version must pass; null: it becomes live when it is saved.
    pub gate: Option<RolloutGate>,
    /// The version for a share of new threads; null: none.
    pub canary: Option<RunningCanary>,
    /// The counts since the canary started, by which it is judged; null without a canary.
    pub counts: Option<CanaryCounts>,
    /// The last canary's outcome; null: there was none.
    pub last_canary: Option<EndedCanary>,
}

/// A running canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningCanary {
    /// Its number.
    pub version: i32,
    /// Percentage of new threads.
    pub percent: i32,
    /// Turns after which it becomes live; null: not automatically.
    pub promote_after_turns: Option<i32>,
    /// Start time.
    pub started_at: Timestamp,
}

/// Both versions' counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CanaryCounts {
    /// Counts for the canary.
    pub canary: VersionCounts,
    /// Counts for the live version.
    pub live: VersionCounts,
}

/// A version's usage counts.
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

/// A canary that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndedCanary {
    /// Its number.
    pub version: i32,
    /// Its percentage of new threads.
    pub percent: i32,
    /// The outcome.
    pub outcome: CanaryOutcome,
    /// The reason.
    pub reason: Option<String>,
    /// Start time.
    pub started_at: Timestamp,
    /// End time.
    pub ended_at: Timestamp,
    /// The counts by which it was judged; null: it was not judged.
    pub counts: Option<CanaryCounts>,
}

/// A canary's outcome.
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

/// The gate's decision about a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionGate {
    /// Whether it passed.
    pub status: GateStatus,
    /// The evaluation; null: it could not start.
    pub run_id: Option<String>,
    /// Its score; null: not yet, or it failed.
    pub score: Option<f64>,
    /// The version to compare with; null: none was live, or it is not known yet.
    pub live_version: Option<i32>,
    /// That version's score on the same cases.
    pub live_score: Option<f64>,
    /// The reason why the gate failed; null if it did not.
    pub error: Option<String>,
}

/// Whether a version has passed its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// It is being evaluated.
    Running,
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

impl GateStatus {
    /// The stored and sent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }

    /// Parses a status.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Passed, Self::Failed].into_iter().find(|status| status.as_str() == name)
    }
}
