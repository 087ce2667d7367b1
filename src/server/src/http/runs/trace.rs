//! Serves a run's trace.

use std::collections::HashMap;

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use engine::FilledInput;
use store::StepPlace;
use wire::{InterruptedAttempt, Trace, TraceStep};

use super::{found, record, records};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::paging::{self, PageQuery};
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;
use crate::http::time;

/// The list's name in cursors.
const STEPS: &str = "steps";
/// Default attempts per page.
const DEFAULT: i64 = 1_000;
/// Maximum attempts per page.
const MOST: i64 = 5_000;

pub(super) async fn trace(
    caller: Caller<WorkflowsRead>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Trace>> {
    let (run, version) = found(&caller, &id).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<StepPlace> = PageQuery::within(&mut query, STEPS, DEFAULT, MOST);
    ApiError::refuse(query.finish())?;
    let (store, runs) = (caller.store(), caller.app().runs());
    let page = store.journal_page(run.id, part.after.as_ref(), part.limit).await?;
    let last = page.steps.last().filter(|_| page.more);
    let next_cursor = last.map(|last| paging::cursor(STEPS, &StepPlace::from_step(last)));
    let mut steps: Vec<TraceStep> = page.steps.into_iter().map(records::step).collect();
    let wanted = steps.iter().filter_map(|step| Some((step.node.clone(), u32::try_from(step.visit).ok()?)));
    let inputs = runs.inputs(&run, wanted.collect()).await?.unwrap_or_default();
    give(&mut steps, inputs);
    // Computing usage reads every large result, so it is done only once.
    let usage = match part.after {
        None => Some(store.run_usage(run.id).await?),
        Some(_) => None,
    };
    let interrupted = match part.after {
        None => store.interrupted(run.id).await?,
        Some(_) => Vec::new(),
    };
    let deliveries = runs.deliveries(run.id).await?;
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    let trace = Trace {
        run: record(&caller, run, version).await?,
        usage,
        steps,
        next_cursor,
        interrupted: interrupted.into_iter().map(cut_off).collect(),
        deliveries: deliveries.into_iter().map(records::delivery).collect(),
    };
    ids.record(trace).map(Json)
}

/// Adds its input to each attempt, by digest.
fn give(steps: &mut [TraceStep], inputs: Vec<FilledInput>) {
    let inputs: HashMap<(String, u32), FilledInput> =
        inputs.into_iter().map(|found| ((found.node.clone(), found.visit), found)).collect();
    for step in steps {
        let visit = u32::try_from(step.visit).unwrap_or_default();
        if let Some(found) = inputs.get(&(step.node.clone(), visit))
            && hex::encode(found.digest) == step.input_digest
        {
            step.input = found.input.clone();
            step.prompts_read = Some(found.prompts_read.clone());
        }
    }
}

fn cut_off(attempt: store::InterruptedAttempt) -> InterruptedAttempt {
    InterruptedAttempt {
        node: attempt.node,
        visit: attempt.visit,
        attempt: attempt.attempt,
        started_at: time(attempt.started_at),
        noticed_at: time(attempt.noticed_at),
    }
}
