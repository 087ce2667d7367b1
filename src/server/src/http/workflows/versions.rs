//! Versions: validated when saved, immutable afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::checkpoint_record;
use control::versions;
use engine::{Inspection, runnable_config};
use ring::digest::{SHA256, digest};
use sandbox::Sandbox;
use serde_json::{Map, Value};
use store::{Changes, ListedVersion, NewVersion, StoredVersion, StoredWorkflow};
use uuid::Uuid;
use wire::{
    Checked, CreateVersion, ErrorCode, FieldError, Listed, MOST_PROBLEMS, PromoteCheckpoint, PromoteDraft,
    SavedVersion, VersionRecord, VersionSummary,
};

use super::{credentials, records, requests, warnings};
use crate::http::body::{self, VERSION_LIMIT};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::{Parsed, shortened};
use crate::http::guard::{Caller, RouteScope, WorkflowsRead, WorkflowsWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;
use crate::http::query::{self, Params};

/// The list's name in cursors.
const LIST: &str = "versions";
/// The name of the list with drafts in cursors.
const DRAFTS: &str = "versions-and-drafts";

pub(super) async fn create(
    change: Change<WorkflowsWrite, VERSION_LIMIT>,
    name: Path<String>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    let sandbox = caller.app().system().sandbox().for_owner(workflow.workspace_id);
    let (mut wanted, keeps_config) = match requested(&change, &sandbox).await? {
        VersionRequest::Graph(wanted) => {
            let keeps_config = wanted.runnable_config.is_none();
            (wanted, keeps_config)
        }
        VersionRequest::Draft(wanted) => (promoted(caller, &workflow, wanted).await?, false),
        VersionRequest::Checkpoint(wanted) => (of_checkpoint(caller, &workflow, wanted).await?, false),
    };
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let found = inspected(&mut wanted.graph, &sandbox).await?;
    let workspace = Some(workflow.workspace_id);
    let named = credentials::of_graph(caller, &found.credentials, workspace, &sandbox).await?;
    refuse(found.checked.err().unwrap_or_default(), named.errors, wanted.runnable_config.as_ref())?;
    let mut warned = warnings::of_references(caller, &found.references, Some(&workflow), &sandbox).await?;
    warned.extend(found.joins);
    warned.extend(named.warnings);
    warned.extend(found.addresses);
    warned.extend(wanted.runnable_config.as_ref().map(runnable_config::warnings).unwrap_or_default());
    let saved = change
        .make(async |changes| {
            let (wanted, config_kept_from) = match keeps_config {
                true => with_newest_config(changes, workflow.id, wanted).await?,
                false => (wanted, None),
            };
            let new = frozen(caller, workflow.id, wanted);
            let saved = versions::save(changes, caller.requester(), &workflow, new).await?;
            let version = VersionRecord { gate: saved.gate, ..records::version(saved.version) };
            let answer = SavedVersion { version, live: saved.live, config_kept_from, warnings: warned };
            ChangeReply::made(saved.is_new, &answer)
        })
        .await;
    // Wakes the gates so that this version's gate can start at once; otherwise the next poll finds it.
    caller.app().trainings().wake_gates();
    saved
}

/// Adds the latest version's runnable config to a version to save. Also returns that version's number, if it has one.
async fn with_newest_config(
    changes: &mut Changes,
    workflow: Uuid,
    wanted: CreateVersion,
) -> ApiResult<(CreateVersion, Option<i32>)> {
    let Some(newest) = changes.newest_version(workflow).await? else { return Ok((wanted, None)) };
    let kept = newest.runnable_config.as_ref().filter(|config| !config.is_empty());
    let kept_from = kept.and(newest.number);
    Ok((CreateVersion { runnable_config: newest.runnable_config, ..wanted }, kept_from))
}

/// Converts a draft to a version to save.
async fn promoted(
    caller: &Caller<WorkflowsWrite>,
    workflow: &StoredWorkflow,
    wanted: PromoteDraft,
) -> ApiResult<CreateVersion> {
    let draft = find(caller, workflow, &wanted.draft).await?;
    let metadata = wanted.metadata.unwrap_or(draft.metadata);
    Ok(CreateVersion {
        graph: draft.graph,
        runnable_config: draft.runnable_config,
        metadata: Some(metadata),
        notes: wanted.notes.or(draft.notes),
    })
}

/// Combines the graph of a checkpoint's run with the checkpoint's config as a version to save. If the trained draft no
/// longer exists, the latest version has the graph.
async fn of_checkpoint(
    caller: &Caller<WorkflowsWrite>,
    workflow: &StoredWorkflow,
    wanted: PromoteCheckpoint,
) -> ApiResult<CreateVersion> {
    let not_found = || ApiError::new(ErrorCode::CheckpointNotFound);
    let id = Uuid::try_parse(&wanted.checkpoint).map_err(|_| not_found())?;
    let found = caller.store().checkpoint(id).await?.filter(|found| found.workflow_id == workflow.id);
    let checkpoint = checkpoint_record(found.ok_or_else(not_found)?);
    let trained = checkpoint.metadata.get("version_id").and_then(Value::as_str);
    let trained = match trained.and_then(|id| Uuid::try_parse(id).ok()) {
        Some(id) => caller.store().version_by_id(id).await?,
        None => None,
    };
    let version = match (trained, workflow.latest_version) {
        (Some(trained), _) => Some(trained),
        (None, Some(latest)) => caller.store().version(workflow.id, latest).await?,
        (None, None) => None,
    };
    let version = version.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNoVersion))?;
    let notes = format!("Prompts of checkpoint {}.", checkpoint.config_version);
    Ok(CreateVersion {
        graph: version.graph,
        runnable_config: Some(checkpoint.runnable_config),
        metadata: Some(wanted.metadata.unwrap_or(version.metadata)),
        notes: wanted.notes.or(Some(notes)),
    })
}

/// The requested version.
enum VersionRequest {
    Graph(CreateVersion),
    Draft(PromoteDraft),
    Checkpoint(PromoteCheckpoint),
}

/// Fails with all problems in the graph and the config.
fn refuse(
    problems: Vec<FieldError>,
    unknown_credentials: Vec<FieldError>,
    config: Option<&Map<String, Value>>,
) -> ApiResult<()> {
    let graph = [problems, unknown_credentials].concat();
    let config = config_problems(config);
    if !graph.is_empty() {
        return Err(ApiError::problems(ErrorCode::GraphInvalid, [graph, config].concat()));
    }
    ApiError::refuse(config)
}

/// Parses a version to save; if the request itself is invalid, also reports the problems inside.
async fn requested(
    change: &Change<WorkflowsWrite, VERSION_LIMIT>,
    sandbox: &Sandbox,
) -> ApiResult<VersionRequest> {
    let mut invalid_graph = None;
    let error = match change.wanted(|body| read(body, &mut invalid_graph)) {
        Ok(requested) => return Ok(requested),
        Err(error) => error,
    };
    let Some(mut graph) = invalid_graph else { return Err(error) };
    // The request is refused anyway, with or without the problems of its graph.
    let found = inspected(&mut graph, sandbox).await.ok();
    let problems = found.and_then(|found| found.checked.err()).unwrap_or_default();
    let inside =
        |problem: FieldError| FieldError { pointer: format!("/graph{}", problem.pointer), ..problem };
    Err(error.with_more(problems.into_iter().map(inside).collect()))
}

/// Parses a version to save. If the request is invalid, sets `invalid_graph` to its graph.
fn read(body: &Map<String, Value>, invalid_graph: &mut Option<Value>) -> Parsed<VersionRequest> {
    if body.contains_key("checkpoint") {
        return requests::promote_checkpoint(body).map(VersionRequest::Checkpoint);
    }
    if body.contains_key("draft") {
        return requests::promote_draft(body).map(VersionRequest::Draft);
    }
    requests::create_version(body).map(VersionRequest::Graph).map_err(|mut problems| {
        problems.extend(config_problems(body.get("runnable_config").and_then(Value::as_object)));
        *invalid_graph = body.get("graph").cloned().map(engine::without_schema);
        problems
    })
}

/// Creates a draft with this graph and the live version's runnable config, after full validation. Pointers start with
/// `/graph_config`.
pub(in crate::http) async fn draft_of_graph<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    graph: Value,
) -> ApiResult<NewVersion> {
    let live = match workflow.live_version {
        Some(number) => caller.store().version(workflow.id, number).await?,
        None => None,
    };
    let runnable_config = live.and_then(|live| live.runnable_config);
    let graph = engine::without_schema(graph);
    let mut wanted = CreateVersion { graph, runnable_config, metadata: None, notes: None };
    let sandbox = caller.app().system().sandbox().for_owner(workflow.workspace_id);
    let found = inspected(&mut wanted.graph, &sandbox).await?;
    let workspace = Some(workflow.workspace_id);
    let named = credentials::of_graph(caller, &found.credentials, workspace, &sandbox).await?;
    let problems = [found.checked.err().unwrap_or_default(), named.errors].concat();
    if !problems.is_empty() {
        let inside = |problem: FieldError| FieldError {
            pointer: format!("/graph_config{}", problem.pointer),
            ..problem
        };
        return Err(ApiError::problems(ErrorCode::GraphInvalid, problems.into_iter().map(inside).collect()));
    }
    Ok(frozen(caller, workflow.id, wanted))
}

fn frozen<S>(caller: &Caller<S>, workflow_id: Uuid, wanted: CreateVersion) -> NewVersion {
    NewVersion {
        workflow_id,
        digest: engine::identity(&wanted.graph, wanted.runnable_config.as_ref()).to_vec(),
        graph: wanted.graph,
        runnable_config: wanted.runnable_config,
        metadata: wanted.metadata.unwrap_or_default(),
        notes: wanted.notes,
        created_by: caller.name(),
    }
}

/// Lists the newest first, without potentially large fields.
pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<VersionSummary>>> {
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::from_request(&request);
    if query.flag("drafts") {
        let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, DRAFTS);
        ApiError::refuse(query.finish())?;
        let mut found = caller.store().versions_and_drafts(workflow.id, part.after, part.wanted()).await?;
        let next_cursor = part.cut(DRAFTS, &mut found, |version| version.id);
        return Ok(Json(Listed { data: summaries(&caller, workflow.id, found).await?, next_cursor }));
    }
    let part = PageQuery::from_params(&mut query, LIST);
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().versions(workflow.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |version| version.number.unwrap_or_default());
    Ok(Json(Listed { data: summaries(&caller, workflow.id, found).await?, next_cursor }))
}

/// Version summaries with the outcomes of their gates.
async fn summaries(
    caller: &Caller<WorkflowsRead>,
    workflow: Uuid,
    found: Vec<ListedVersion>,
) -> ApiResult<Vec<VersionSummary>> {
    let numbers: Vec<i32> = found.iter().filter_map(|version| version.number).collect();
    let mut gates: BTreeMap<i32, _> =
        caller.store().version_gates(workflow, &numbers).await?.into_iter().collect();
    let summary = |version: ListedVersion| {
        let gate = version.number.and_then(|number| gates.remove(&number));
        VersionSummary { gate, ..records::version_summary(version) }
    };
    Ok(found.into_iter().map(summary).collect())
}

pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<VersionRecord>> {
    let (name, number) = path.into_inner();
    let workflow = caller.workflow(&name).await?;
    let version = find(&caller, &workflow, &number).await?;
    query::none(&request)?;
    let gates = match version.number {
        Some(number) => caller.store().version_gates(workflow.id, &[number]).await?,
        None => Vec::new(),
    };
    let gate = gates.into_iter().next().map(|(_, gate)| gate);
    Ok(Json(VersionRecord { gate, ..records::version(version) }))
}

/// Finds the version or draft that a path names by number or id.
pub(super) async fn find<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    number: &str,
) -> ApiResult<StoredVersion> {
    let not_found = || no_version(workflow, number);
    if let Ok(id) = Uuid::try_parse(number) {
        let found = caller.store().version_by_id(id).await?;
        return found.filter(|found| found.workflow_id == workflow.id).ok_or_else(not_found);
    }
    // Each version has one URL: parsing alone would also accept `+1` and `01`.
    let parsed = number.parse().ok().filter(|parsed: &i32| parsed.to_string() == number);
    caller.store().version(workflow.id, parsed.ok_or_else(not_found)?).await?.ok_or_else(not_found)
}

/// The error for an unknown version number, which names the latest version.
pub(in crate::http) fn no_version(workflow: &StoredWorkflow, number: &str) -> ApiError {
    let message = match workflow.latest_version {
        Some(latest) => format!("Version '{}' not found; the latest is {latest}.", shortened(number)),
        None => "The workflow has no version yet.".to_owned(),
    };
    ApiError::new(ErrorCode::VersionNotFound).with_message(message)
}

/// Validates a graph and its config without saving them; returns all problems.
pub(super) async fn check(
    caller: Caller<WorkflowsRead>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<Checked>> {
    let body = body::read(&request, payload, VERSION_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let mut wanted = Params::from_request(&request).and(requests::check(&body))?;
    // Checks belong to no workspace; each caller has its own share of the sandbox.
    let sandbox = caller.app().system().sandbox().for_owner(slot_owner(&caller.identity()));
    let found = inspected(&mut wanted.graph, &sandbox).await?;
    let config = wanted.runnable_config.as_ref();
    let named = credentials::of_graph(&caller, &found.credentials, None, &sandbox).await?;
    let graph = found.checked.err().unwrap_or_default();
    let mut errors = [graph, named.errors, config_problems(config)].concat();
    errors.truncate(MOST_PROBLEMS);
    let mut warnings = warnings::of_references(&caller, &found.references, None, &sandbox).await?;
    warnings.extend(found.joins);
    warnings.extend(named.warnings);
    warnings.extend(found.addresses);
    warnings.extend(config.map(runnable_config::warnings).unwrap_or_default());
    Ok(Json(Checked { valid: errors.is_empty(), errors, warnings }))
}

/// Returns all findings about a graph, outside the HTTP thread; pointers start at the graph. Takes the
/// graph away unless it is valid.
async fn inspected(graph: &mut Value, sandbox: &Sandbox) -> ApiResult<Inspection> {
    // Shared with the thread that reads it, because a copy of a large graph takes long.
    let shared = Arc::new(std::mem::take(graph));
    let found = engine::inspect(Arc::clone(&shared), sandbox).await;
    // After a timeout, its thread may still read the graph. A refused graph is not used again.
    if found.as_ref().is_ok_and(|found| found.checked.is_ok()) {
        *graph = Arc::unwrap_or_clone(shared);
    }
    found.map_err(|error| ApiError::new(ErrorCode::CodeUnavailable).with_cause(error))
}

/// The owner of a caller's share of the sandbox.
fn slot_owner(identity: &str) -> Uuid {
    let digest = digest(&SHA256, identity.as_bytes());
    Uuid::from_bytes(digest.as_ref().first_chunk().copied().unwrap_or_default())
}

/// Returns the config problems; pointers start with `/runnable_config`.
fn config_problems(config: Option<&Map<String, Value>>) -> Vec<FieldError> {
    config.map(runnable_config::check).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_slots() {
        let owners = ["token:a", "token:b", "address:127.0.0.1"].map(slot_owner);
        assert_eq!(slot_owner("token:a"), owners[0]);
        assert!(owners[0] != owners[1] && owners[1] != owners[2]);
        assert!(!owners.contains(&Uuid::nil()), "the nil id belongs to the pool itself");
    }
}
