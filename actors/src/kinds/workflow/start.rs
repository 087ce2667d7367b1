//! The start of a workflow run: the request, and its rows. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoredRun;
use store::batch::{Batch, CopyRow, QueueRow};
use uuid::Uuid;

use crate::plans::LoadedVersion;
use crate::run::RunApp;
use crate::run::kind::{Kind, Run, RunProgress, RunStart};
use crate::run::start::{IdempotencyKey, StartRows};
use crate::text::json;

/// Run options besides the inputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Laid over the version's runnable config; prompts one by one.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Seconds from the run's start until it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Arbitrary data of the caller.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The run to repeat: earlier steps are copied, not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunOrigin>,
    /// The app whose page started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<RunApp>,
}

impl RunOptions {
    /// Parses the options in a run's row.
    pub(super) fn stored(run: &StoredRun) -> Self {
        let options = run.options.as_deref().and_then(|text| serde_json::from_str(text).ok());
        options.unwrap_or_default()
    }
}

/// The run to repeat, the first step to execute, and the changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// The run.
    pub run: Uuid,
    /// The super-step that is executed first, counted from 1.
    pub from_step: u32,
    /// `state` channels and their values from that step on.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
    /// The runs that executed the copied steps, each with its first step, in order; empty in rows by older builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<(u32, Uuid)>,
}

impl RunOrigin {
    /// A repetition of `run`. `before`: the origin of `run`, if that is a repetition too.
    pub(super) fn new(run: Uuid, before: Option<Self>, from_step: u32, patch: Map<String, Value>) -> Self {
        let mut copied = match before {
            Some(before) => before.lives().into_iter().chain([(before.from_step, run)]).collect(),
            None => vec![(1, run)],
        };
        copied.retain(|(step, _)| *step < from_step);
        Self { run, from_step, patch, copied }
    }

    /// The runs that executed the copied steps, each with its first step.
    pub(super) fn lives(&self) -> Vec<(u32, Uuid)> {
        match &self.copied[..] {
            [] if self.from_step > 1 => vec![(1, self.run)],
            copied => copied.to_vec(),
        }
    }
}

/// A run to start.
pub struct NewRun {
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// The version to run.
    pub version: Arc<LoadedVersion>,
    /// The inputs; they fit the version's `inputs` schema.
    pub inputs: Value,
    /// Run options besides the inputs.
    pub options: RunOptions,
    /// The trigger.
    pub trigger: &'static str,
    /// Whether its workflow limits concurrent runs, so that the run waits for its turn.
    pub limited: bool,
    /// The request's key, if any.
    pub idempotency: Option<IdempotencyKey>,
}

/// All rows for a run's start.
pub(in crate::kinds) fn start_rows<K: Kind<Data = RunOptions>>(
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
        RunProgress::New { next_seq: 1 }
    } else {
        RunProgress::Recovered { started_at: None, interrupted: false, crashes: 0 }
    };
    let options = (new.options != RunOptions::default()).then(|| json(&new.options));
    let start = RunStart {
        id,
        stream: id,
        workspace: new.workspace,
        workflow: new.version.workflow,
        version: new.version,
        trigger: new.trigger,
        thread: None,
        dialect: None,
        inputs: new.inputs,
        options,
    };
    let batch = Batch {
        copies: copies.into_iter().collect(),
        queued: new.limited.then_some(queued).into_iter().collect(),
        ..start.batch(now)
    };
    let rows = StartRows { workspace: new.workspace, stream: id, batch, events: None, queued: new.limited };
    (rows, start.run(progress, new.options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_steps_keep_the_run_that_executed_them() {
        let [zero, one, two] = [0, 1, 2].map(Uuid::from_u128);
        let once = RunOrigin::new(zero, None, 3, Map::new());
        assert_eq!(once.lives(), [(1, zero)]);
        let later = RunOrigin::new(one, Some(once.clone()), 5, Map::new());
        assert_eq!(later.lives(), [(1, zero), (3, one)]);
        assert_eq!(RunOrigin::new(one, Some(once.clone()), 2, Map::new()).lives(), [(1, zero)]);
        assert_eq!(RunOrigin::new(two, Some(later), 4, Map::new()).lives(), [(1, zero), (3, one)]);
        assert_eq!(RunOrigin::new(zero, None, 1, Map::new()).lives(), []);
        let old = RunOrigin { copied: Vec::new(), ..once };
        assert_eq!(old.lives(), [(1, zero)]);
    }
}
