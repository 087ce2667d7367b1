//! The rows for a run's start. Pure.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::batch::{Batch, TrainingRunRow};
use uuid::Uuid;

use super::kind::{TrainingData, TrainingRuns};
use super::prepare::Prepared;
use crate::run::kind::{Run, RunProgress, RunStart};
use crate::run::start::StartRows;
use crate::text::json as text_of;

/// The start's options, as stored in the run's row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TrainingOptions {
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
    let start = RunStart {
        id,
        stream: id,
        workspace,
        workflow: version.workflow,
        version,
        trigger: decided.trigger(),
        thread: None,
        dialect: None,
        inputs: Value::Object(inputs),
        options: (!config.is_empty()).then(|| text_of(&TrainingOptions { config: config.clone() })),
    };
    let batch = Batch {
        trainings: vec![TrainingRunRow {
            run_id: id,
            workflow_id: start.workflow,
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
        ..start.batch(now)
    };
    let rows = StartRows { workspace, stream: id, batch, events: None, queued: false };
    let run = start.run(RunProgress::New { next_seq: 1 }, TrainingData::new(config, now));
    (rows, run)
}
