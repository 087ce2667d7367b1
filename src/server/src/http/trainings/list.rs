//! Lists runs, candidates and case results.

use std::fmt;
use std::str::FromStr;

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use store::{CaseFilter, CaseKey};
use uuid::Uuid;
use wire::{CandidateRecord, CaseRecord, Listed, TrainingRecord, TrainingState};

use super::found;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::paging::{PageQuery, cursor};
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;

/// The lists' names in cursors.
const RUNS: &str = "trainings";
const CANDIDATES: &str = "candidates";
const CASES: &str = "cases";

/// Lists the newest first.
pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<TrainingRecord>>> {
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, RUNS);
    let status = query.one_of("status", &TrainingState::ALL.map(TrainingState::as_str));
    ApiError::refuse(query.finish())?;
    let status = status.as_deref().and_then(TrainingState::from_name);
    let mut data =
        caller.app().trainings().of_workflow(workflow.id, status, part.after, part.wanted()).await?;
    let next_cursor = part.cut(RUNS, &mut data, |run| Uuid::parse_str(&run.id).unwrap_or_default());
    Ok(Json(Listed { data, next_cursor }))
}

/// Lists candidates in order of comparison.
pub(super) async fn candidates(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<CandidateRecord>>> {
    let run = found(&caller, &path).await?;
    let part: PageQuery<i32> = PageQuery::from_request(&request, CANDIDATES)?;
    let after = part.after.unwrap_or(-1);
    let mut data = caller.app().trainings().candidates(run.id, after, part.wanted()).await?;
    let number = |candidate: &CandidateRecord| i32::try_from(candidate.candidate_id).unwrap_or(i32::MAX);
    let next_cursor = part.cut(CANDIDATES, &mut data, number);
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    ids.record(Listed { data, next_cursor }).map(Json)
}

/// Lists results by candidate, case and sample.
pub(super) async fn cases(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<CaseRecord>>> {
    let run = found(&caller, &path).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<CaseCursor> = PageQuery::from_params(&mut query, CASES);
    let candidate = query.whole("candidate", 0..=1_000_000);
    let case = query.whole("case", 0..=1_000_000);
    let split = query.one_of("split", &["train", "val", "test"]);
    let failed = query.one_of("failed", &["true", "false"]);
    let with_trace = query.flag("trace");
    ApiError::refuse(query.finish())?;
    let filter = CaseFilter {
        candidate: candidate.and_then(|candidate| i32::try_from(candidate).ok()),
        case: case.and_then(|case| i32::try_from(case).ok()),
        split,
        failed: failed.map(|failed| failed == "true"),
        with_details: with_trace,
    };
    let after = part.after.map(|CaseCursor(key)| key);
    let trainings = caller.app().trainings();
    let page = trainings.cases(run.id, &filter, after, part.limit).await?;
    let next_cursor = page.next.map(|next| cursor(CASES, &CaseCursor(next)));
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    ids.record(Listed { data: page.cases, next_cursor }).map(Json)
}

/// A result's key in a cursor.
struct CaseCursor(CaseKey);

impl fmt::Display for CaseCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (candidate, case, sample) = self.0;
        write!(formatter, "{candidate}.{case}.{sample}")
    }
}

impl FromStr for CaseCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Vec<i32> = text.split('.').map_while(|number| number.parse().ok()).collect();
        match numbers[..] {
            [candidate, case, sample] => Ok(Self((candidate, case, sample))),
            _ => Err(()),
        }
    }
}
