//! Visitor feedback, as records or as dataset cases.

use std::collections::VecDeque;

use actix_web::web::{Bytes, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::try_unfold;
use futures_util::{Stream, TryStreamExt};
use kernel::{ItemKey, ThreadId};
use serde::de::DeserializeOwned;
use store::{FeedbackFilter, ListedFeedback, Store};
use uuid::Uuid;
use wire::chat::FeedbackKind;
use wire::{ErrorCode, FeedbackAuthor, FeedbackCase, FeedbackMetadata, FeedbackRecord, HumanVerdict, Listed};

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::paging::{self, PageQuery};
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;
use crate::http::time;

/// The list's name in cursors.
const LIST: &str = "feedback";
/// Entries per query for cases.
const CASES_PART: i64 = 100;

pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let workflow = caller.workflow(&name).await?;
    let ids = ThreadIds::for_caller(&caller, workflow.workspace_id);
    let workflow = workflow.id;
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let filter = FeedbackFilter {
        kind: query.one_of("kind", &["positive", "negative"]),
        from: query.time("from"),
        to: query.time("to"),
        version: query.whole("version", 1..=i32::MAX.into()).and_then(|number| number.try_into().ok()),
    };
    let format = query.one_of("format", &["json", "jsonl"]);
    ApiError::refuse(query.finish())?;
    let store = caller.store();
    if format.as_deref() == Some("jsonl") {
        let lines = cases(store.clone(), workflow, filter, part.after).map_ok(move |line| visible(ids, line));
        let lines = lines.map_err(|error| {
            tracing::warn!(%error, "failed to read feedback; aborting the response");
            std::io::Error::other(error.to_string())
        });
        return Ok(HttpResponse::Ok().content_type("application/x-ndjson").streaming(lines));
    }
    let page = store.feedback_of_workflow(workflow, &filter, part.after, part.limit).await?;
    let data: Vec<FeedbackRecord> = page.entries.into_iter().map(record).collect::<ApiResult<_>>()?;
    let next_cursor = page.next.map(|next| paging::cursor(LIST, &next));
    Ok(HttpResponse::Ok().json(ids.record(Listed { data, next_cursor })?))
}

fn visible(ids: ThreadIds, line: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&line) else { return line };
    ids.text(text).into_owned().into()
}

/// Streams all cases after `after` as lines, read in pages. An error truncates the body.
fn cases(
    store: Store,
    workflow: Uuid,
    filter: FeedbackFilter,
    after: Option<Uuid>,
) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let start = (VecDeque::new(), Some(after));
    try_unfold(start, move |(mut lines, mut next): (VecDeque<Bytes>, Option<Option<Uuid>>)| {
        let (store, filter) = (store.clone(), filter.clone());
        async move {
            loop {
                if let Some(line) = lines.pop_front() {
                    return Ok(Some((line, (lines, next))));
                }
                let Some(after) = next else { return Ok(None) };
                let page = store.feedback_of_workflow(workflow, &filter, after, CASES_PART).await?;
                next = page.next.map(Some);
                let read = page.entries.into_iter().filter_map(|entry| line(entry).transpose());
                lines = read.collect::<ApiResult<_>>()?;
            }
        }
    })
}

/// The line for a case; `None` without a copy of its turn.
fn line(entry: ListedFeedback) -> ApiResult<Option<Bytes>> {
    let Some(case) = case(entry)? else { return Ok(None) };
    let mut line = serde_json::to_vec(&case).map_err(corrupt)?;
    line.push(b'\n');
    Ok(Some(line.into()))
}

/// Feedback as a case; `None` without a copy of its turn.
pub(in crate::http) fn case(entry: ListedFeedback) -> ApiResult<Option<FeedbackCase>> {
    let record = record(entry)?;
    let FeedbackRecord {
        id,
        kind,
        comment,
        thread_id,
        run_id,
        version,
        inputs,
        messages,
        output,
        output_text,
        ..
    } = record;
    let Some(inputs) = inputs else { return Ok(None) };
    let passed = kind == FeedbackKind::Positive;
    let metadata = FeedbackMetadata {
        feedback: kind,
        comment,
        run_id,
        thread_id,
        version,
        messages: messages.unwrap_or_default(),
        output,
        human: HumanVerdict { passed },
    };
    Ok(Some(FeedbackCase { id, inputs, expected_output: output_text.filter(|_| passed), metadata }))
}

fn record(entry: ListedFeedback) -> ApiResult<FeedbackRecord> {
    let item = ItemKey(entry.item_id.as_slice().try_into().map_err(corrupt)?);
    let kind = FeedbackKind::from_name(&entry.kind);
    Ok(FeedbackRecord {
        id: entry.id.to_string(),
        at: time(entry.created_at),
        kind: kind.ok_or_else(|| ApiError::new(ErrorCode::Internal))?,
        comment: entry.comment,
        thread_id: Some(ThreadId(entry.thread_id).to_string()),
        item_id: item.wire(&entry.prefix),
        run_id: entry.run_id.map(|run| run.to_string()),
        version: entry.version,
        author: FeedbackAuthor {
            kind: entry.author_kind,
            id: Some(entry.author_id).filter(|id| !id.is_empty()),
        },
        inputs: read(entry.inputs)?,
        messages: read(entry.messages)?,
        output: read(entry.output)?,
        output_text: entry.output_text,
    })
}

fn read<T: DeserializeOwned>(text: Option<String>) -> ApiResult<Option<T>> {
    text.map(|text| serde_json::from_str(&text)).transpose().map_err(corrupt)
}

fn corrupt(error: impl std::error::Error + Send + Sync + 'static) -> ApiError {
    ApiError::new(ErrorCode::Internal).with_cause(error)
}
