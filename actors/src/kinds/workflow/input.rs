//! The input for a workflow run. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::{Life, Patch, RunInfo, RunInput};
use serde_json::Value;
use uuid::Uuid;

use super::start::RunOptions;
use crate::plans::LoadedVersion;
use crate::run::{life, overlaid};

/// The input for a run. `started_at`: its first start.
pub(super) fn run_input(
    run: Uuid,
    workflow: Uuid,
    trigger: &str,
    inputs: Value,
    options: &RunOptions,
    version: &LoadedVersion,
    started_at: DateTime<Utc>,
) -> RunInput {
    let limit = options.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = limit.and_then(|limit| chrono::Duration::from_std(limit).ok());
    RunInput {
        inputs,
        messages: Vec::new(),
        config: overlaid(&version.config, &options.config),
        run: RunInfo {
            id: run.to_string(),
            workflow_id: workflow.to_string(),
            thread_id: None,
            trigger: trigger.to_owned(),
        },
        lives: lives(run, options),
        deadline: limit.and_then(|limit| started_at.checked_add_signed(limit)),
        patch: options
            .origin
            .as_ref()
            .map(|origin| Patch { step: origin.from_step, state: origin.patch.clone() }),
    }
}

/// The runs that contributed steps to a run, itself last.
fn lives(run: Uuid, options: &RunOptions) -> Vec<Life> {
    let Some(origin) = &options.origin else { return vec![life(1, run)] };
    let earlier = origin.lives().into_iter().map(|(step, run)| life(step, run));
    earlier.chain([life(origin.from_step, run)]).collect()
}
