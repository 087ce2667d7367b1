//! Datasets: stored cases for trainings and evaluations.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::FeedbackKind;

/// `POST /api/workflows/{ref}/datasets`: the cases or their origin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateDataset {
    /// 1 to 128 characters, unique within the workflow; not a UUID.
    pub name: String,
    /// `[{id?, inputs, expected_output?, metadata?}]`, at most 100,000 with at most 1 MiB each; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<Value>>,
    /// The cases' origin, instead of `cases`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DatasetOrigin>,
}

/// `POST /api/workflows/{ref}/datasets/{id}/versions`: the version's cases or their origin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateDatasetVersion {
    /// Cases, as in a new dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<Value>>,
    /// The cases' origin, instead of `cases`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DatasetOrigin>,
}

/// The origin of the cases: exactly one of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetOrigin {
    /// Visitors' feedback: one case for each that has a copy of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<FeedbackOrigin>,
    /// Ended runs, newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunsOrigin>,
}

/// Filter for feedback that becomes cases. Every given condition must match.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FeedbackOrigin {
    /// Only this rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FeedbackKind>,
    /// Given at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Given before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// On turns of the version with this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
}

/// Filter for runs that become cases. Every given condition must match.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunsOrigin {
    /// `succeeded` (default), `failed` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Created at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Maximum cases: 1 to 1,000 (default: 100).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A dataset with its latest version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetRecord {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Its name within the workflow.
    pub name: String,
    /// The latest version, from 1.
    pub version: i32,
    /// Number of cases in that version.
    pub n_cases: i32,
    /// SHA-256 over the case digests in order, hexadecimal: equal for equal cases.
    pub fingerprint: String,
    /// The dataset's creation time.
    pub created_at: Timestamp,
    /// The latest version's creation time.
    pub updated_at: Timestamp,
}

/// A dataset after its cases were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedDataset {
    /// The dataset.
    #[serde(flatten)]
    pub dataset: DatasetRecord,
    /// Feedback or runs that could not become cases: without a copy of the turn, erased, or too large.
    pub skipped: u32,
    /// Whether a version was created; `false` if the latest one has exactly these cases.
    pub is_new: bool,
    /// Cases that the previous version also has; 0 for a new dataset.
    pub unchanged: usize,
}

/// A dataset case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetCase {
    /// Its name within the version.
    pub id: String,
    /// A run's inputs.
    pub inputs: Value,
    /// The expected output.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expected_output: Value,
    /// `{split?, weight?, group?, messages?, mocks?, answers?, human?}`, and data for evaluators.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Whether its content was erased with a visitor's data: runs leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

/// `POST /api/runs/{id}/case`: stores an ended run as a case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeepRunAsCase {
    /// Id or name of a dataset of the run's workflow.
    pub dataset: String,
    /// The expected output (default: the run's output).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Value>,
    /// `train`, `val` or `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

/// A run stored as a dataset case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptCase {
    /// The dataset.
    pub dataset_id: String,
    /// The version that has the case.
    pub version: i32,
    /// The case id, equal to the run id.
    pub case_id: String,
}
