//! Collects cases from feedback and from runs.

use actors::kinds::training::{NotACase, WantedCase};
use serde_json::Value;
use store::{FeedbackFilter, NewCase, RunsFilter, StoredWorkflow};
use uuid::Uuid;
use wire::{ErrorCode, FieldError};

use super::corrupt;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Caller;
use crate::http::workflows::feedback_case;

/// Entries per query.
const PART: i64 = 100;
/// Maximum bytes of all cases together, as for a request.
const MOST_BYTES: usize = 64 << 20;

/// Runs examined per requested case, since not every run is suitable.
const LOOKED_AT: usize = 10;

fn too_many(field: &str) -> ApiError {
    let message = "these have more than 64 MiB as cases; limit the time with 'from' and 'to'";
    let problem = FieldError::new(format!("/from/{field}"), "size", message);
    ApiError::problems(ErrorCode::InvalidRequest, vec![problem])
}

/// Returns the cases for all matching feedback, and the number of entries without a copy of their turn.
pub(super) async fn of_feedback<S>(
    caller: &Caller<S>,
    workflow: Uuid,
    filter: &FeedbackFilter,
) -> ApiResult<(Vec<Value>, u32)> {
    let (mut cases, mut bytes, mut skipped, mut after) = (Vec::new(), 0, 0, None);
    loop {
        let page = caller.store().feedback_of_workflow(workflow, filter, after, PART).await?;
        for entry in page.entries {
            let Some(case) = feedback_case(entry)? else {
                skipped += 1;
                continue;
            };
            let text = serde_json::to_string(&case).map_err(corrupt)?;
            bytes += text.len();
            if bytes > MOST_BYTES {
                return Err(too_many("feedback"));
            }
            cases.push(serde_json::from_str(&text).map_err(corrupt)?);
        }
        after = page.next;
        if after.is_none() {
            return Ok((cases, skipped));
        }
    }
}

/// Returns the cases for the newest matching runs, and the number of runs that could not become one.
pub(super) async fn of_runs<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    filter: RunsFilter,
    limit: usize,
) -> ApiResult<(Vec<NewCase>, u32)> {
    let filter = RunsFilter { workflow: Some(workflow.id), ..filter };
    let (store, trainings) = (caller.store(), caller.app().trainings());
    let (mut cases, mut bytes, mut skipped, mut before) = (Vec::new(), 0, 0, None);
    let mut left = limit.saturating_mul(LOOKED_AT);
    loop {
        let page = store.runs_of_workspace(workflow.workspace_id, &filter, before, PART).await?;
        for listed in page.runs {
            if cases.len() >= limit || left == 0 {
                return Ok((cases, skipped));
            }
            left -= 1;
            let Some(run) = store.run(listed.id).await? else { continue };
            match trainings.case_of_run(&run, &WantedCase::default()).await {
                Ok(case) => {
                    bytes += case.content.len();
                    if bytes > MOST_BYTES {
                        return Err(too_many("runs"));
                    }
                    cases.push(case);
                }
                Err(NotACase::Erased | NotACase::Unfit(_) | NotACase::Training | NotACase::NotEnded) => {
                    skipped += 1;
                }
                Err(NotACase::Store(error)) => return Err(error.into()),
            }
        }
        before = page.next;
        if before.is_none() {
            return Ok((cases, skipped));
        }
    }
}
