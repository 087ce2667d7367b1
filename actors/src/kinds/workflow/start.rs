//! The start of a workflow run: what the caller wants, and the rows that store it. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoredRun;
use store::batch::{Batch, CopyRow, QueueRow, RunRow, StreamRow};
use uuid::Uuid;

use crate::plans::LoadedVersion;
use crate::run::RunApp;
use crate::run::kind::{Kind, Progress, Run};
use crate::run::start::{IdempotencyKey, StartRows};
use crate::text::json;

/// What is asked for beside the inputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Laid over the version's runnable config; prompts one by one.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Seconds until the run fails, from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// For the caller's own use.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What it repeats: the steps before are copied, not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The app whose page has started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<RunApp>,
}

impl RunOptions {
    /// As a run's row has them.
    pub(super) fn stored(run: &StoredRun) -> Self {
        let options = run.options.as_deref().and_then(|text| serde_json::from_str(text).ok());
        options.unwrap_or_default()
    }
}

/// What a run repeats, from which step on, and with what changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The run.
    pub run: Uuid,
    /// The super-step that is run first, from 1.
    pub from_step: u32,
    /// Channels of `state` and what they hold from that step on.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
    /// The runs that have executed the copied steps, each with its first one, in this order; empty in rows of older builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<(u32, Uuid)>,
}

impl Origin {
    /// A repetition of `run`, which was a repetition of `before` itself or of none.
    pub(super) fn new(run: Uuid, before: Option<Self>, from_step: u32, patch: Map<String, Value>) -> Self {
        let mut copied = match before {
            Some(before) => before.lives().into_iter().chain([(before.from_step, run)]).collect(),
            None => vec![(1, run)],
        };
        copied.retain(|(step, _)| *step < from_step);
        Self { run, from_step, patch, copied }
    }

    /// The runs that have executed the copied steps, each with its first one.
    pub(super) fn lives(&self) -> Vec<(u32, Uuid)> {
        match &self.copied[..] {
            [] if self.from_step > 1 => vec![(1, self.run)],
            copied => copied.to_vec(),
        }
    }
}

/// A run to start.
pub struct NewRun {
    /// Workspace of the workflow.
    pub workspace: Uuid,
    /// The version to run.
    pub version: Arc<LoadedVersion>,
    /// What it is given; fits the version's `inputs` schema.
    pub inputs: Value,
    /// What is asked for beside the inputs.
    pub options: RunOptions,
    /// What starts it.
    pub trigger: &'static str,
    /// Whether its workflow limits how many runs are under way, so that it waits for its turn.
    pub limited: bool,
    /// The request's key, if it has one.
    pub idempotency: Option<IdempotencyKey>,
}

/// Everything that a run's start stores.
pub(in crate::kinds) fn start_rows<K: Kind<Own = RunOptions>>(
    new: NewRun,
    id: Uuid,
    now: DateTime<Utc>,
) -> (StartRows, Run<K>) {
    let queued = QueueRow { run_id: id, workflow_id: new.version.workflow, turn: true, due_at: Some(now) };
    let copies = new.options.origin.as_ref().filter(|origin| origin.from_step > 1).map(|origin| CopyRow {
        from: origin.run,
        to: id,
        before: i32::try_from(origin.from_step).unwrap_or(i32::MAX),
    });
    let progress = if copies.is_none() {
        Progress::New { next_seq: 1 }
    } else {
        Progress::Recovered { started_at: None, interrupted: false, crashes: 0 }
    };
    let options = (new.options != RunOptions::default()).then(|| json(&new.options));
    let batch = Batch {
        runs: vec![RunRow {
            id,
            workspace_id: new.workspace,
            workflow_id: new.version.workflow,
            version_id: new.version.id,
            trigger: new.trigger,
            thread_id: None,
            stream_id: Some(id),
            inputs: new.inputs.to_string(),
            options,
            created_at: now,
        }],
        streams: vec![StreamRow {
            id,
            run_id: id,
            workflow_id: new.version.workflow,
            thread_id: None,
            dialect: None,
        }],
        copies: copies.into_iter().collect(),
        queued: new.limited.then_some(queued).into_iter().collect(),
        ..Batch::default()
    };
    let rows = StartRows { workspace: new.workspace, stream: id, batch, events: None, queued: new.limited };
    let run = Run {
        id,
        stream: id,
        workspace: new.workspace,
        workflow: new.version.workflow,
        version: Some(new.version),
        inputs: new.inputs,
        trigger: new.trigger.into(),
        placed: false,
        parked: 0,
        progress,
        early: Mutex::default(),
        own: new.options,
    };
    (rows, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_steps_know_the_run_that_has_executed_them() {
        let [zero, one, two] = [0, 1, 2].map(Uuid::from_u128);
        let once = Origin::new(zero, None, 3, Map::new());
        assert_eq!(once.lives(), [(1, zero)]);
        let later = Origin::new(one, Some(once.clone()), 5, Map::new());
        assert_eq!(later.lives(), [(1, zero), (3, one)]);
        assert_eq!(Origin::new(one, Some(once.clone()), 2, Map::new()).lives(), [(1, zero)]);
        assert_eq!(Origin::new(two, Some(later), 4, Map::new()).lives(), [(1, zero), (3, one)]);
        assert_eq!(Origin::new(zero, None, 1, Map::new()).lives(), []);
        let old = Origin { copied: Vec::new(), ..once };
        assert_eq!(old.lives(), [(1, zero)]);
    }
}
