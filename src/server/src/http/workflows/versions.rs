//! Versions: checked when they are saved, frozen from then on.

use std::collections::BTreeMap;

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::checkpoint_record;
use control::versions;
use engine::runnable_config;
use sandbox::Sandbox;
use serde_json::{Map, Value};
use store::{Changes, ListedVersion, NewVersion, StoredVersion, StoredWorkflow};
use uuid::Uuid;
use wire::{
    Checked, CreateVersion, ErrorCode, FieldError, Listed, MOST_PROBLEMS, PromoteCheckpoint, PromoteDraft,
    SavedVersion, VersionRecord, VersionSummary,
};

use super::requests::Read;
use super::{credentials, records, requests, warnings};
use crate::http::body::{self, VERSION_LIMIT};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::shortened;
use crate::http::guard::{Asked, Caller, WorkflowsRead, WorkflowsWrite};
use crate::http::idempotency::Reply;
use crate::http::paging::Part;
use crate::http::query::{self, Params};

/// In a cursor.
const LIST: &str = "versions";
/// In a cursor of versions and drafts.
const DRAFTS: &str = "versions-and-drafts";

pub(super) async fn create(
    change: Change<WorkflowsWrite, VERSION_LIMIT>,
    name: Path<String>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    let (wanted, keeps_config) = match change.wanted(read)? {
        Wanted::Graph(wanted) => {
            let keeps_config = wanted.runnable_config.is_none();
            (wanted, keeps_config)
        }
        Wanted::Draft(wanted) => (promoted(caller, &workflow, wanted).await?, false),
        Wanted::Checkpoint(wanted) => (of_checkpoint(caller, &workflow, wanted).await?, false),
    };
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let named = credentials::of_graph(caller, &wanted.graph, Some(workflow.workspace_id)).await?;
    check_all(&wanted, named.errors, &caller.app().system().sandbox().of(workflow.workspace_id)).await?;
    let mut warned = warnings::of_references(caller, &wanted.graph, Some(&workflow)).await?;
    warned.extend(engine::warnings(&wanted.graph));
    warned.extend(named.warnings);
    warned.extend(engine::address_warnings(&wanted.graph));
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
            Reply::made(saved.is_new, &answer)
        })
        .await;
    // Its gate may begin now; else the next poll finds it.
    caller.app().trainings().wake_gates();
    saved
}

/// A version to save with the runnable config of the latest version, and the number of that version if it has one.
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

/// What a draft holds, as a version to save.
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

/// The graph of a checkpoint's run with the config of the checkpoint, as a version to save. If a draft was trained that is not there any more,
/// the latest version has the graph.
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

/// A version that a request asks for.
enum Wanted {
    Graph(CreateVersion),
    Draft(PromoteDraft),
    Checkpoint(PromoteCheckpoint),
}

/// Every problem of the graph and the config.
async fn check_all(
    wanted: &CreateVersion,
    unknown_credentials: Vec<FieldError>,
    sandbox: &Sandbox,
) -> ApiResult<()> {
    let graph = [all_graph_problems(&wanted.graph, sandbox).await?, unknown_credentials].concat();
    let config = config_problems(wanted.runnable_config.as_ref());
    if !graph.is_empty() {
        return Err(ApiError::problems(ErrorCode::GraphInvalid, [graph, config].concat()));
    }
    ApiError::refuse(config)
}

/// A version to save; when anything is wrong with the request itself, what is wrong inside is told with it.
fn read(body: &Map<String, Value>) -> Read<Wanted> {
    if body.contains_key("checkpoint") {
        return requests::promote_checkpoint(body).map(Wanted::Checkpoint);
    }
    if body.contains_key("draft") {
        return requests::promote_draft(body).map(Wanted::Draft);
    }
    requests::create_version(body).map(Wanted::Graph).map_err(|mut problems| {
        problems.extend(config_problems(body.get("runnable_config").and_then(Value::as_object)));
        let graph = body.get("graph").cloned().map(engine::without_schema);
        let graph = graph.as_ref().map(graph_problems).unwrap_or_default();
        let inside =
            |problem: FieldError| FieldError { pointer: format!("/graph{}", problem.pointer), ..problem };
        problems.extend(graph.into_iter().map(inside));
        problems
    })
}

/// A draft of this graph with the runnable config of the workflow's live version, with everything checked. Pointers begin with
/// `/graph_config`.
pub(in crate::http) async fn draft_of_graph<S: Asked>(
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
    let wanted = CreateVersion { graph, runnable_config, metadata: None, notes: None };
    let named = credentials::of_graph(caller, &wanted.graph, Some(workflow.workspace_id)).await?;
    let sandbox = caller.app().system().sandbox().of(workflow.workspace_id);
    let problems = [all_graph_problems(&wanted.graph, &sandbox).await?, named.errors].concat();
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

/// The newest first, without what may be large.
pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<VersionSummary>>> {
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::of(&request);
    if query.flag("drafts") {
        let part: Part<Uuid> = Part::of(&mut query, DRAFTS);
        ApiError::refuse(query.finish())?;
        let mut found = caller.store().versions_and_drafts(workflow.id, part.after, part.wanted()).await?;
        let next_cursor = part.cut(DRAFTS, &mut found, |version| version.id);
        return Ok(Json(Listed { data: summaries(&caller, workflow.id, found).await?, next_cursor }));
    }
    let part = Part::of(&mut query, LIST);
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().versions(workflow.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |version| version.number.unwrap_or_default());
    Ok(Json(Listed { data: summaries(&caller, workflow.id, found).await?, next_cursor }))
}

/// Versions of a list, with what their gates have decided.
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

/// The version or draft whose number or id is in a path.
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
    // Each version has one address: parsing alone would take `+1` and `01` too.
    let parsed = number.parse().ok().filter(|parsed: &i32| parsed.to_string() == number);
    caller.store().version(workflow.id, parsed.ok_or_else(not_found)?).await?.ok_or_else(not_found)
}

/// That the workflow has no version of this number, and which it has.
pub(in crate::http) fn no_version(workflow: &StoredWorkflow, number: &str) -> ApiError {
    let message = match workflow.latest_version {
        Some(latest) => format!("Version '{}' not found; the newest is {latest}.", shortened(number)),
        None => "The workflow has no version yet.".to_owned(),
    };
    ApiError::new(ErrorCode::VersionNotFound).with_message(message)
}

/// Says everything that is wrong with a graph and its config, without saving them.
pub(super) async fn check(
    caller: Caller<WorkflowsRead>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<Checked>> {
    let body = body::read(&request, payload, VERSION_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::check(&body))?;
    let config = wanted.runnable_config.as_ref();
    // A check belongs to no workspace; all of them have one share.
    let graph = all_graph_problems(&wanted.graph, caller.app().system().sandbox()).await?;
    let named = credentials::of_graph(&caller, &wanted.graph, None).await?;
    let mut errors = [graph, named.errors, config_problems(config)].concat();
    errors.truncate(MOST_PROBLEMS);
    let mut warnings = warnings::of_references(&caller, &wanted.graph, None).await?;
    warnings.extend(engine::warnings(&wanted.graph));
    warnings.extend(named.warnings);
    warnings.extend(engine::address_warnings(&wanted.graph));
    warnings.extend(config.map(runnable_config::warnings).unwrap_or_default());
    Ok(Json(Checked { valid: errors.is_empty(), errors, warnings }))
}

/// Those of its code among them.
async fn all_graph_problems(graph: &Value, sandbox: &Sandbox) -> ApiResult<Vec<FieldError>> {
    let checked = engine::check_all(graph, sandbox).await;
    let checked = checked.map_err(|error| ApiError::new(ErrorCode::CodeUnavailable).with_cause(error))?;
    Ok(checked.err().unwrap_or_default())
}

/// Problems of a graph that are found in a moment; pointers begin at the graph.
fn graph_problems(graph: &Value) -> Vec<FieldError> {
    engine::check_briefly(graph).and_then(Result::err).unwrap_or_default()
}

/// Pointers begin with `/runnable_config`.
fn config_problems(config: Option<&Map<String, Value>>) -> Vec<FieldError> {
    config.map(runnable_config::check).unwrap_or_default()
}
