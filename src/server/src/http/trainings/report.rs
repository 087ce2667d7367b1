//! Serves a run's report and its curve as an image.

use actix_web::http::header::{CONTENT_SECURITY_POLICY, ContentType};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::{report_curve, report_page};
use store::StoredRun;
use wire::{ErrorCode, TrainingReport};

use super::found;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query::{self, Params};
use crate::http::thread_ids::ThreadIds;

/// Keeps browsers from executing or loading anything that prompts and names contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox";

/// Responds with JSON or a page.
pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let run = found(&caller, &path).await?;
    let mut query = Params::from_request(&request);
    let format = query.one_of("format", &["json", "html"]);
    ApiError::refuse(query.finish())?;
    let report = report(&caller, &run).await?;
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    let mut answer = HttpResponse::Ok();
    let text = match format.as_deref() {
        Some("html") => {
            answer.content_type(ContentType::html()).insert_header((CONTENT_SECURITY_POLICY, POLICY));
            report_page(&report)
        }
        _ => {
            answer.content_type(ContentType::json());
            serde_json::to_string(&report)
                .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?
        }
    };
    Ok(answer.body(ids.text(&text).into_owned()))
}

pub(super) async fn curve(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let run = found(&caller, &path).await?;
    query::none(&request)?;
    let svg = report_curve(&report(&caller, &run).await?);
    let mut answer = HttpResponse::Ok();
    Ok(answer.content_type("image/svg+xml").insert_header((CONTENT_SECURITY_POLICY, POLICY)).body(svg))
}

async fn report(caller: &Caller<WorkflowsRead>, run: &StoredRun) -> ApiResult<TrainingReport> {
    let found = caller.app().trainings().report(run.id).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::RunNotFound))
}
