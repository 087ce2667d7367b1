//! Model usage by a workflow's chat.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use wire::{ChatUsageRecord, Listed};

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query::Params;

/// Lists usage by day, latest first.
pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ChatUsageRecord>>> {
    let workflow = caller.workflow(&name).await?.id;
    let mut query = Params::from_request(&request);
    let (from, to) = (query.time("from"), query.time("to"));
    ApiError::refuse(query.finish())?;
    let day = |time: chrono::DateTime<chrono::Utc>| time.date_naive();
    let days = caller.store().chat_usage_by_day(workflow, from.map(day), to.map(day)).await?;
    let whole = |number: i64| u64::try_from(number).unwrap_or_default();
    let record = |day: store::ChatUsageDay| ChatUsageRecord {
        day: day.day.to_string(),
        sessions: whole(day.sessions),
        turns: whole(day.turns),
        calls: whole(day.sum.calls),
        input_tokens: whole(day.sum.input_tokens),
        output_tokens: whole(day.sum.output_tokens),
        usd: day.sum.usd,
    };
    Ok(Json(Listed { data: days.into_iter().map(record).collect(), next_cursor: None }))
}
