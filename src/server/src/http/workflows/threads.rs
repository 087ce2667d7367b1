//! The visitors' threads in a workflow, for its owner.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use control::visitors;
use kernel::{ItemKey, ThreadId};
use serde_json::{Map, Value};
use store::{ChatVisitor, ListedThread, Slice, StoredWorkflow, ThreadFilter};
use uuid::Uuid;
use wire::chat::{ThreadItem, ThreadStatus, title_of};
use wire::{ErrorCode, FieldError, Listed, ThreadRecord, UpdateThread};

use super::requests::bounded;
use crate::http::change::Change;
use crate::http::chat::{Links, erase, export};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::{Fields, Parsed};
use crate::http::guard::{Caller, RouteScope, WorkflowsWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::{self, PageQuery};
use crate::http::query::{self, Params};
use crate::http::time;

/// The lists' names in cursors.
const THREADS: &str = "threads";
const ITEMS: &str = "items";

pub(super) async fn list(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ThreadRecord>>> {
    let workflow = managed(&caller, &name).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, THREADS);
    let visitor = query.text("visitor").map(|name| (ChatVisitor::named(workflow.id, &name), name));
    if let Some((None, name)) = &visitor {
        query.note(
            "visitor",
            "format",
            format!("'{name}' is not a visitor; use 'visitor' of a listed thread"),
        );
    }
    let visitor = visitor.and_then(|(visitor, _)| visitor);
    let filter = ThreadFilter { visitor, status: query.one_of("status", &ThreadStatus::NAMES) };
    ApiError::refuse(query.finish())?;
    let mut found =
        caller.store().threads_of_workflow(workflow.id, &filter, part.after, part.wanted()).await?;
    let next_cursor = part.cut(THREADS, &mut found, |listed| listed.thread.id.0);
    Ok(Json(Listed { data: found.into_iter().map(record).collect(), next_cursor }))
}

pub(super) async fn items(
    caller: Caller<WorkflowsWrite>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ThreadItem>>> {
    let (name, id) = path.into_inner();
    let workflow = managed(&caller, &name).await?;
    let thread = found(&caller, &workflow, &id).await?.thread.id;
    let part: PageQuery<Cursor> = PageQuery::from_request(&request, ITEMS)?;
    let after = part.after.as_ref().map(|cursor| cursor.0);
    let slice = Slice { after, ascending: true, limit: part.wanted() };
    let mut data = caller.store().items_of(thread, slice).await?;
    let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
    let more = data.len() > limit;
    data.truncate(limit);
    // Hidden items count towards the page but are omitted, so a page may be short.
    let last = data.last().filter(|_| more).map(|last| last.id().to_owned());
    data.retain(|item| !item.is_hidden());
    let links = Links::new(caller.app(), &request);
    data.iter_mut().for_each(|item| links.sign(item));
    Ok(Json(Listed { data, next_cursor: last.map(|last| paging::cursor(ITEMS, &last)) }))
}

/// An item id in a cursor.
struct Cursor(ItemKey);

impl std::str::FromStr for Cursor {
    type Err = kernel::IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ItemKey::parse(text).map(Self)
    }
}

pub(super) async fn change(
    change: Change<WorkflowsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let (name, id) = path.into_inner();
    let caller = &change.caller;
    let workflow = managed(caller, &name).await?;
    let thread = found(caller, &workflow, &id).await?;
    let (title, status) = change.wanted(update)?;
    let id = thread.thread.id;
    change
        .make(async |changes| {
            let (title_change, status_change) = (title.as_deref(), status.as_ref());
            visitors::change_thread(changes, caller.requester(), &workflow, id, title_change, status_change)
                .await?;
            let mut changed = thread;
            changed.thread.title = title.clone().or(changed.thread.title);
            changed.thread.status = status.clone().unwrap_or(changed.thread.status);
            // A title is content, which must not survive an erasure in the response stored for retries.
            Ok(ChangeReply::ok(&record(changed))?.secret())
        })
        .await
}

pub(super) async fn export_visitor(
    caller: Caller<WorkflowsWrite>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (workflow, visitor) = visitor(&caller, &path, &request).await?;
    let place = caller.app().chat_limits().stream(Some(&format!("export:{}", caller.identity())), None)?;
    caller
        .store()
        .change(async |changes| {
            visitors::export(changes, caller.requester(), workflow.workspace_id, &visitor).await
        })
        .await?;
    Ok(export(caller.app(), vec![visitor], place))
}

pub(super) async fn erase_visitor(
    caller: Caller<WorkflowsWrite>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (workflow, visitor) = visitor(&caller, &path, &request).await?;
    let requested = caller
        .store()
        .change(async |changes| {
            visitors::erase(changes, caller.requester(), workflow.workspace_id, &visitor).await
        })
        .await?;
    erase(caller.app(), &[requested]).await
}

/// Finds a workflow whose visitors the caller may manage.
async fn managed<S: RouteScope>(caller: &Caller<S>, name: &str) -> ApiResult<StoredWorkflow> {
    let workflow = caller.workflow(name).await?;
    caller.allowed(visitors::check_may_manage(caller.requester(), workflow.workspace_id)).await?;
    Ok(workflow)
}

/// Finds the visitor that a path names. Query parameters are refused.
async fn visitor<S: RouteScope>(
    caller: &Caller<S>,
    path: &Path<(String, String)>,
    request: &HttpRequest,
) -> ApiResult<(StoredWorkflow, ChatVisitor)> {
    let (name, id) = &**path;
    let workflow = managed(caller, name).await?;
    let not_found = || ApiError::new(ErrorCode::ChatVisitorNotFound);
    let visitor = ChatVisitor::named(workflow.id, id).ok_or_else(not_found)?;
    query::none(request)?;
    Ok((workflow, visitor))
}

async fn found<S>(caller: &Caller<S>, workflow: &StoredWorkflow, id: &str) -> ApiResult<ListedThread> {
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound);
    let id = ThreadId::parse(id).map_err(|_| not_found())?;
    caller.store().thread_of_workflow(workflow.id, id).await?.ok_or_else(not_found)
}

fn record(ListedThread { thread, items, last_item_at }: ListedThread) -> ThreadRecord {
    let kind = thread.owner_kind;
    let visitor = thread.owner_id.map(|id| ChatVisitor { workflow: thread.workflow_id, kind, id }.name());
    ThreadRecord {
        id: thread.id.to_string(),
        visitor,
        title: thread.title,
        status: thread.status,
        created_at: time(thread.created_at),
        last_item_at: last_item_at.map(time),
        items,
    }
}

/// Reads the title and status from [`UpdateThread`].
fn update(body: &Map<String, Value>) -> Parsed<(Option<String>, Option<ThreadStatus>)> {
    let mut fields = Fields::new(body);
    let UpdateThread { status, reason, title } = UpdateThread {
        status: fields.text("status").map(str::to_owned),
        reason: fields.text("reason").map(str::to_owned),
        title: fields.text("title").map(title_of),
    };
    if let Some(title) = &title {
        bounded(&mut fields, "/title", title, 1, 200);
    }
    if let Some(reason) = &reason {
        bounded(&mut fields, "/reason", reason, 1, 500);
    }
    let named = status.as_deref().map(|name| ThreadStatus::read(name, reason.clone()));
    match (&named, &reason) {
        (Some(None), _) => {
            let message = format!("must be one of {}", ThreadStatus::NAMES.join(", "));
            fields.note(FieldError::new("/status", "choice", message));
        }
        (None | Some(Some(ThreadStatus::Active)), Some(_)) => {
            fields.note(FieldError::new(
                "/reason",
                "status",
                "is allowed only with the status \"locked\" or \"closed\"",
            ));
        }
        (None, None) if title.is_none() => {
            fields.note(FieldError::new("", "required", "a title or a status is required"));
        }
        _ => {}
    }
    let problems = fields.finish();
    if problems.is_empty() { Ok((title, named.flatten())) } else { Err(problems) }
}
