//! Lists a workspace's runs.

use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse};
use kernel::ThreadId;
use ring::digest::{SHA256, digest};
use store::{RunState, RunsFilter};
use uuid::Uuid;
use wire::Listed;
use wire::operations::runs::TRIGGERS;

use super::records;
use crate::http::error::{ApiError, ApiResult};
use crate::http::etag;
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::paging::{self, PageQuery};
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;

/// The list's name in cursors.
const LIST: &str = "workspace-runs";

/// Lists the newest first. Responds with 304 if the client has this page with these states.
pub(super) async fn list(caller: Caller<WorkflowsRead>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let workflow = query.text("workflow");
    let mut filter = filter(&mut query);
    ApiError::refuse(query.finish())?;
    let workspace = match workflow {
        Some(workflow) => {
            let workflow = caller.workflow(&workflow).await?;
            filter.workflow = Some(workflow.id);
            workflow.workspace_id
        }
        None => caller.workspace().await?,
    };
    let page = caller.store().runs_of_workspace(workspace, &filter, part.after, part.limit).await?;
    let next_cursor = page.next.map(|next| paging::cursor(LIST, &next));
    let data: Vec<_> = page.runs.into_iter().map(records::summary).collect::<Result<_, _>>()?;
    let body = serde_json::to_string(&Listed { data, next_cursor });
    let body = body.map_err(|error| ApiError::new(wire::ErrorCode::Internal).with_cause(error))?;
    let body = ThreadIds::for_caller(&caller, workspace).text(&body).into_owned();
    let tag = format!(
        "\"{}\"",
        hex::encode(digest(&SHA256, body.as_bytes()).as_ref().get(..16).unwrap_or_default())
    );
    let known = etag::is_known(&request, &tag);
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer.insert_header((ETAG, tag)).insert_header(("Cache-Control", "private, no-cache"));
    Ok(if known { answer.finish() } else { answer.content_type("application/json").body(body) })
}

fn filter(query: &mut Params) -> RunsFilter {
    let statuses = query.words("status", &RunState::ALL.map(RunState::as_str));
    let triggers = query.words("trigger", TRIGGERS);
    let thread = query.text("thread");
    let thread_id = thread.as_deref().and_then(|text| ThreadId::parse(text).ok());
    if thread.is_some() && thread_id.is_none() {
        query.note("thread", "format", "must be the id of a thread, such as thr_…");
    }
    let (from, to) = (query.time("from"), query.time("to"));
    let waits = query.text("waits");
    let waits_wanted = waits.as_deref().and_then(|text| text.parse::<bool>().ok());
    if waits.is_some() && waits_wanted.is_none() {
        query.note("waits", "type", "must be true or false");
    }
    RunsFilter {
        statuses: statuses.iter().filter_map(|name| RunState::from_name(name)).collect(),
        triggers,
        workflow: None,
        thread: thread_id,
        from,
        to,
        waits: waits_wanted,
    }
}
