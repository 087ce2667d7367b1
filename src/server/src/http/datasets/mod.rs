//! Workflow datasets: create, add versions, read, delete, and add runs as cases.

mod content;
mod origin;
mod requests;
mod run_case;

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::value::RawValue;
use store::{AddedVersion, MadeDataset, NewDataset, StoredDataset, StoredWorkflow};
use uuid::Uuid;
use wire::operations::datasets as operations;
use wire::{DatasetRecord, ErrorCode, FieldError, Listed, SavedDataset};

use super::body::CASES_LIMIT;
use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{Caller, RouteScope, WorkflowsRead, WorkflowsWrite};
use super::idempotency::ChangeReply;
use super::paging::{PageQuery, cursor};
use super::query::{self, Params};
use super::routes::Routes;
use super::thread_ids::ThreadIds;
use super::time;

/// The lists' names in cursors.
const DATASETS: &str = "datasets";
const CASES: &str = "dataset-cases";
/// Cases per query, and the bytes after which a page ends.
const PART: i64 = 20;
const PAGE_BYTES: usize = 4 << 20;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, list)
        .on(&operations::CREATE, create)
        .on(&operations::READ, show)
        .on(&operations::DELETE, delete)
        .on(&operations::CASES, cases)
        .on(&operations::ADD_VERSION, add_version)
        .on(&operations::KEEP_RUN, run_case::keep)
        .register(config);
}

/// Lists the newest first.
async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<DatasetRecord>>> {
    let workflow = caller.workflow(&name).await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, DATASETS)?;
    let mut found = caller.store().datasets_of_workflow(workflow.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(DATASETS, &mut found, |dataset| dataset.id);
    Ok(Json(Listed { data: found.into_iter().map(record).collect(), next_cursor }))
}

async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<DatasetRecord>> {
    let (workflow, named) = path.into_inner();
    let (_, dataset) = found(&caller, &workflow, &named).await?;
    query::none(&request)?;
    Ok(Json(record(dataset)))
}

/// Lists cases in order.
async fn cases(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<Box<RawValue>>>> {
    let (workflow, named) = path.into_inner();
    let (workflow, dataset) = found(&caller, &workflow, &named).await?;
    let ids = ThreadIds::for_caller(&caller, workflow.workspace_id);
    let mut query = Params::from_request(&request);
    let part: PageQuery<i32> = PageQuery::from_params(&mut query, CASES);
    let version = query.whole("version", 1..=i32::MAX.into()).and_then(|number| i32::try_from(number).ok());
    ApiError::refuse(query.finish())?;
    let number = version.unwrap_or(dataset.version);
    let store = caller.store();
    if store.dataset_size(dataset.id, number).await?.is_none() {
        let message = format!("The dataset has no version {number}; its latest is {}.", dataset.version);
        return Err(ApiError::new(ErrorCode::DatasetNotFound).with_message(message));
    }
    let (mut data, mut bytes, mut after) = (Vec::new(), 0, part.after.unwrap_or(-1));
    let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
    let has_more = loop {
        // One extra case shows whether a next page exists.
        let read = store.page_of_version(dataset.id, number, after, PART).await?;
        if read.is_empty() {
            break false;
        }
        let mut is_full = false;
        for (place, content) in read {
            is_full = data.len() >= limit || bytes >= PAGE_BYTES;
            if is_full {
                break;
            }
            bytes += content.len();
            after = place;
            let content = ids.text(&content).into_owned();
            data.push(RawValue::from_string(content).map_err(corrupt)?);
        }
        if is_full {
            break true;
        }
    };
    let next_cursor = has_more.then(|| cursor(CASES, &after));
    Ok(Json(Listed { data, next_cursor }))
}

async fn create(change: Change<WorkflowsWrite, CASES_LIMIT>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = writable(caller, &name).await?;
    let (name, source) = requests::create(&change).await?;
    let collected = content::collect(caller, &workflow, source).await?;
    let id = caller.app().new_id()?;
    change
        .make(async |changes| {
            let collected = collected.without_deleted(changes).await?;
            let new = NewDataset {
                id,
                workspace: workflow.workspace_id,
                workflow: workflow.id,
                name: &name,
                fingerprint: &collected.read.fingerprint,
                cases: &collected.read.cases,
            };
            match changes.make_dataset(&new).await? {
                MadeDataset::Made(dataset) => {
                    let added = AddedVersion { dataset, is_new: true, unchanged: 0 };
                    ChangeReply::made(true, &saved(added, collected.skipped))
                }
                MadeDataset::NameTaken => Err(ApiError::new(ErrorCode::DatasetNameTaken)),
                MadeDataset::TooMany => {
                    let problem =
                        FieldError::new("/name", "too_many", "a workflow has at most 1,000 datasets");
                    Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]))
                }
            }
        })
        .await
}

async fn add_version(
    change: Change<WorkflowsWrite, CASES_LIMIT>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (workflow, named) = path.into_inner();
    let workflow = writable(caller, &workflow).await?;
    let dataset = named_in(caller, &workflow, &named).await?;
    let collected = content::collect(caller, &workflow, requests::version(&change).await?).await?;
    change
        .make(async |changes| {
            let collected = collected.without_deleted(changes).await?;
            let read = &collected.read;
            let added = changes.add_dataset_version(dataset.id, &read.fingerprint, &read.cases).await?;
            let added = added.ok_or_else(|| ApiError::new(ErrorCode::DatasetNotFound))?;
            ChangeReply::made(added.is_new, &saved(added, collected.skipped))
        })
        .await
}

async fn delete(change: Change<WorkflowsWrite>, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let (workflow, named) = path.into_inner();
    let (_, dataset) = found(&change.caller, &workflow, &named).await?;
    change.wants_no_more()?;
    change
        .make(async |changes| {
            if !changes.delete_dataset(dataset.id).await? {
                return Err(ApiError::new(ErrorCode::DatasetNotFound));
            }
            Ok(ChangeReply::nothing())
        })
        .await
}

/// Finds a workflow that accepts cases, in a workspace with storage left.
pub(super) async fn writable<S: RouteScope>(caller: &Caller<S>, name: &str) -> ApiResult<StoredWorkflow> {
    let workflow = caller.workflow(name).await?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    caller.app().trainings().check_room(workflow.workspace_id)?;
    Ok(workflow)
}

/// Finds the dataset that a path names, with its workflow.
async fn found<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &str,
    named: &str,
) -> ApiResult<(StoredWorkflow, StoredDataset)> {
    let workflow = caller.workflow(workflow).await?;
    let dataset = named_in(caller, &workflow, named).await?;
    Ok((workflow, dataset))
}

/// Finds a workflow's dataset by id or name.
async fn named_in<S>(caller: &Caller<S>, workflow: &StoredWorkflow, named: &str) -> ApiResult<StoredDataset> {
    caller.store().dataset(workflow.id, named).await?.ok_or_else(|| ApiError::new(ErrorCode::DatasetNotFound))
}

fn saved(added: AddedVersion, skipped: u32) -> SavedDataset {
    let AddedVersion { dataset, is_new, unchanged } = added;
    SavedDataset { dataset: record(dataset), skipped, is_new, unchanged }
}

fn record(dataset: StoredDataset) -> DatasetRecord {
    DatasetRecord {
        id: dataset.id.to_string(),
        workflow_id: dataset.workflow_id.to_string(),
        name: dataset.name,
        version: dataset.version,
        n_cases: dataset.n_cases,
        fingerprint: hex::encode(&dataset.fingerprint),
        created_at: time(dataset.created_at),
        updated_at: time(dataset.updated_at),
    }
}

fn corrupt(error: impl std::error::Error + Send + Sync + 'static) -> ApiError {
    ApiError::new(ErrorCode::Internal).with_cause(error)
}
