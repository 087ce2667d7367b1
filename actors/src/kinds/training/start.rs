//! The rows for a run's start. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::batch::{Batch, RunRow, StreamRow, TrainingRunRow};
use uuid::Uuid;

use super::kind::{TrainingData, TrainingRuns};
use super::prepare::Prepared;
use crate::run::kind::{Progress, Run};
use crate::run::start::StartRows;
use crate::text::json as text_of;

/// The start's options, as stored in the run's row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Options {
    /// Laid over the version's runnable config.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) config: Map<String, Value>,
}

/// All rows for a run's start, except for its cases. `digest`: SHA-256 of the request.
pub(super) fn rows(
    prepared: Prepared,
    id: Uuid,
    digest: Vec<u8>,
    now: DateTime<Utc>,
) -> (StartRows, Run<TrainingRuns>) {
    let Prepared {
        workspace,
        version,
        inputs,
        config,
        request,
        decided,
        dataset,
        cases,
        fingerprint,
        judges,
    } = prepared;
    // Inline cases become a separate dataset of the run.
    let (dataset_id, dataset_version) = dataset.unwrap_or((id, 1));
    let trigger = decided.trigger();
    let inputs = Value::Object(inputs);
    let batch = Batch {
        runs: vec![RunRow {
            id,
            workspace_id: workspace,
            workflow_id: version.workflow,
            version_id: version.id,
            trigger,
            thread_id: None,
            stream_id: Some(id),
            inputs: inputs.to_string(),
            options: (!config.is_empty()).then(|| text_of(&Options { config: config.clone() })),
            created_at: now,
        }],
        streams: vec![StreamRow {
            id,
            run_id: id,
            workflow_id: version.workflow,
            thread_id: None,
            dialect: None,
        }],
        trainings: vec![TrainingRunRow {
            run_id: id,
            workflow_id: version.workflow,
            dataset_id,
            dataset_version,
            fingerprint,
            judges,
            n_cases: i32::try_from(cases.len()).unwrap_or(i32::MAX),
            digest,
            request: request.to_string(),
            start: text_of(&decided),
            origin_run_id: decided.origin.as_ref().map(|origin| origin.run),
        }],
        ..Batch::default()
    };
    let rows = StartRows { workspace, stream: id, batch, events: None, queued: false };
    let run = Run {
        id,
        stream: id,
        workspace,
        workflow: version.workflow,
        version: Some(Arc::clone(&version)),
        inputs,
        trigger: trigger.into(),
        placed: false,
        parked: 0,
        progress: Progress::New { next_seq: 1 },
        early: Mutex::default(),
        own: TrainingData::new(config, now),
    };
    (rows, run)
}
