//! Datasets: stored cases that trainings and evaluations use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::FeedbackKind;

/// `POST /api/workflows/{ref}/datasets`: the cases, or where they come from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateDataset {
    /// 1 to 128 characters, unique within the workflow; not a UUID.
    pub name: String,
    /// `[{id?, inputs, expected_output?, metadata?}]`, at most 100,000 of at most 1 MiB; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<Value>>,
    /// Where the cases come from instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DatasetOrigin>,
}

/// `POST /api/workflows/{ref}/datasets/{id}/versions`: the cases of the version, or where they come from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateDatasetVersion {
    /// As in a new dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<Value>>,
    /// Where the cases come from instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DatasetOrigin>,
}

/// Where cases come from; one of both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetOrigin {
    /// Feedback of visitors: one case for each that has a copy of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<FeedbackOrigin>,
    /// Runs that have ended, newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunsOrigin>,
}

/// Which feedback becomes cases. Everything given must match.
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

/// Which runs become cases. Everything given must match.
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
    /// How many at most: 1 to 1,000 (default: 100).
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
    /// How many cases that version has.
    pub n_cases: i32,
    /// SHA-256 over the digests of the cases in their order, hexadecimal: equal if the cases are equal.
    pub fingerprint: String,
    /// When the dataset was made.
    pub created_at: Timestamp,
    /// When the latest version was made.
    pub updated_at: Timestamp,
}

/// A dataset whose cases were given or collected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedDataset {
    /// The dataset.
    #[serde(flatten)]
    pub dataset: DatasetRecord,
    /// Feedback or runs that could not become cases: without a copy of the turn, erased, or too large.
    pub skipped: u32,
    /// Whether a version was made; `false` if the latest one has exactly these cases.
    pub is_new: bool,
    /// How many of the cases the version before has, too; 0 for a new dataset.
    pub unchanged: usize,
}

/// A case of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetCase {
    /// Its name within the version.
    pub id: String,
    /// The inputs of a run.
    pub inputs: Value,
    /// What a good run would return.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expected_output: Value,
    /// `{split?, weight?, group?, messages?, mocks?, answers?, human?}`, and what evaluators read.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Whether its content was erased with the data of a visitor: it is left out of runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

/// `POST /api/runs/{id}/case`: keeps a run that has ended as a case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeepRunAsCase {
    /// Id or name of a dataset of the run's workflow.
    pub dataset: String,
    /// What a good run would return; the run's output unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Value>,
    /// `train`, `val` or `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

/// A run that is a case of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptCase {
    /// The dataset.
    pub dataset_id: String,
    /// The version that has the case.
    pub version: i32,
    /// The id of the case: that of the run.
    pub case_id: String,
}
