//! Reads, checks and decisions before a run is stored.

use std::sync::Arc;

use async_trait::async_trait;
use engine::{NodeError, references, runnable_config};
use serde_json::{Map, Value, json};
use store::{NewCase, StoreError, StoredCheckpoint, WorkflowRef};
use training::evaluators::check_workflows;
use training::request::{
    DatasetSource, Optimizer, Resume, RunSettings, Workload, read_evaluation, read_training,
};
use training::{Case, FoundVersion, Start, Versions, is_erased, read_demos, read_stored_case, resolve};
use uuid::Uuid;
use wire::{FieldError, TrainingKind, TrainingPlan};

use super::checked::checked;
use super::datasets::elsewhere;
use super::decided::Decided;
use super::limits::check_sizes;
use super::outside;
use crate::plans::LoadedVersion;
use crate::run::{RunPorts, overlaid};
use crate::text::stored_json;

/// A requested training or evaluation.
pub struct Wanted {
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// The version to execute.
    pub version: Arc<LoadedVersion>,
    /// Whether the request contains the version's graph.
    pub has_graph: bool,
    /// Training or evaluation.
    pub kind: TrainingKind,
    /// The object `training` or `evaluation`.
    pub request: Value,
    /// Default inputs, below those of each case.
    pub inputs: Map<String, Value>,
    /// Laid over the version's runnable config.
    pub config: Map<String, Value>,
}

/// A run was not started.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Problems in the request; nothing was stored and no model was called.
    #[error("the request is not valid")]
    Invalid(Vec<FieldError>),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The graph's code cannot be checked now.
    #[error("the code of the graph cannot be checked now")]
    Code(NodeError),
}

/// A run that is ready to start.
pub struct Prepared {
    pub(super) workspace: Uuid,
    pub(super) version: Arc<LoadedVersion>,
    pub(super) inputs: Map<String, Value>,
    pub(super) config: Map<String, Value>,
    /// The request without its cases.
    pub(super) request: Value,
    pub(super) decided: Decided,
    /// The stored dataset and its version; `None`: the cases are stored with the run.
    pub(super) dataset: Option<(Uuid, i32)>,
    pub(super) cases: Vec<NewCase>,
    pub(super) fingerprint: Vec<u8>,
    pub(super) judges: Vec<u8>,
}

impl Prepared {
    /// The run's plan.
    #[must_use]
    pub fn plan(&self) -> TrainingPlan {
        let Decided { kind, optimizer, splits, trainable, pins, estimate, warnings, .. } = &self.decided;
        TrainingPlan {
            kind: *kind,
            version: self.version.number,
            estimate: estimate.clone(),
            trainable_prompts: trainable.clone(),
            splits: splits.clone(),
            pins: json!(pins),
            optimizer: optimizer.clone(),
            warnings: warnings.clone(),
        }
    }
}

/// A parsed request.
pub(super) struct ParsedTraining {
    pub(super) workload: Workload,
    pub(super) optimizer: Option<Optimizer>,
    pub(super) settings: RunSettings,
}

impl ParsedTraining {
    pub(super) fn read(
        kind: TrainingKind,
        request: &Value,
        at: &str,
        problems: &mut Vec<FieldError>,
    ) -> Option<Self> {
        match kind {
            TrainingKind::Training => {
                let read = read_training(request, at, problems)?;
                let settings = read.optimizer.settings.clone();
                Some(Self { workload: read.workload, optimizer: Some(read.optimizer), settings })
            }
            TrainingKind::Evaluation => {
                let read = read_evaluation(request, at, problems)?;
                Some(Self { workload: read.workload, optimizer: None, settings: read.settings })
            }
        }
    }
}

/// Reads and checks everything, and makes all decisions; calls no model. Work on all cases runs on a blocking thread.
pub(super) async fn prepare(ports: &RunPorts, wanted: Wanted) -> Result<Prepared, Refused> {
    let at = format!("/{}", wanted.kind.as_str());
    let request_at = at.clone();
    let (wanted, read, mut problems) = elsewhere(move || {
        let mut problems = runnable_config::check(&wanted.config);
        check_sizes(&wanted.request, &wanted.inputs, &wanted.config, &request_at, &mut problems);
        let read = ParsedTraining::read(wanted.kind, &wanted.request, &request_at, &mut problems);
        (wanted, read, problems)
    })
    .await?;
    // Further checks would only repeat these problems.
    let Some(mut read) = read.filter(|_| problems.is_empty()) else { return Err(Refused::Invalid(problems)) };
    let workflow = wanted.version.workflow;
    let RequestedCases { cases, dataset } =
        take_cases(ports, workflow, &mut read.workload, &at, &mut problems).await?;
    let config = resumed_config(ports, &wanted, read.optimizer.as_ref(), &at, &mut problems).await?;
    let whole = overlaid(&wanted.version.config, &config);
    let graph = ports.store.version_by_id(wanted.version.id).await?.map(|stored| stored.graph);
    let graph = graph.unwrap_or_default();
    let graph_at = if wanted.has_graph { "/graph_config" } else { "" };
    let mut named = references(&graph);
    named.iter_mut().for_each(|reference| reference.pointer.insert_str(0, graph_at));
    named.extend(read.workload.evaluators.iter().flat_map(training::evaluators::Evaluator::workflows));
    let versions = VersionsOf { ports, workspace: wanted.workspace };
    let resolution = resolve(named, &versions, &mut problems).await?;
    let evaluators = &read.workload.evaluators;
    check_workflows(evaluators, &resolution, &mut problems);
    outside::check(ports, wanted.workspace, &wanted.version.plan, evaluators, &mut problems).await?;
    elsewhere(move || {
        let start = Start {
            graph: &graph,
            graph_at,
            plan: &wanted.version.plan,
            config: &whole,
            workload: &read.workload,
            workload_at: &at,
            cases: &cases,
            resolution: &resolution,
        };
        let found = checked(&wanted, &read, &start, dataset.is_some(), problems)?;
        Ok(found.prepared(wanted, &read.workload, config, dataset))
    })
    .await?
}

/// A request's cases.
struct RequestedCases {
    cases: Vec<Case>,
    /// The stored dataset and its version, if the run uses it.
    dataset: Option<(Uuid, i32)>,
}

/// Returns the request's inline cases, or those from the dataset that it names.
async fn take_cases(
    ports: &RunPorts,
    workflow: Uuid,
    workload: &mut Workload,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Result<RequestedCases, StoreError> {
    let (id, version) = match &mut workload.dataset {
        DatasetSource::Inline(cases) => {
            return Ok(RequestedCases { cases: std::mem::take(cases), dataset: None });
        }
        DatasetSource::Stored { id, version } => (id, version),
    };
    let store = &ports.store;
    let mut missing = |field: &str, message: String| {
        problems.push(FieldError::new(format!("{at}/dataset/{field}"), "dataset_not_found", message));
        Ok(RequestedCases { cases: Vec::new(), dataset: None })
    };
    let Some(found) = store.dataset(workflow, id).await? else {
        return missing("id", format!("this workflow has no dataset '{id}'"));
    };
    let number = version.map_or(found.version, |version| i32::try_from(version).unwrap_or(i32::MAX));
    let Some(size) = store.dataset_size(found.id, number).await? else {
        let message = format!("the dataset has no version {number}; its latest is {}", found.version);
        return missing("version", message);
    };
    let most =
        workload.max_cases.and_then(|most| i32::try_from(most).ok()).map_or(size, |most| most.min(size));
    let read = async |limit: i32| -> Result<Vec<Value>, StoreError> {
        let contents = store.cases_of_version(found.id, number, limit.into()).await?;
        let parsed = move || contents.iter().map(|it| stored_json(it).unwrap_or_default()).collect();
        elsewhere(parsed).await
    };
    let mut contents = read(most).await?;
    let erased = contents.iter().filter(|content| is_erased(content)).count();
    if erased > 0 && most < size {
        // Read all, to take the first ones that are not erased.
        contents = read(size).await?;
    }
    let most = usize::try_from(most).unwrap_or_default();
    let cases: Vec<Case> = elsewhere(move || {
        let kept = contents.iter().filter(|content| !is_erased(content)).take(most);
        (0_u32..).zip(kept).filter_map(|(index, content)| read_stored_case(content, index)).collect()
    })
    .await?;
    if cases.is_empty() {
        let message = if erased == 0 { "it has no cases" } else { "the content of all its cases was erased" };
        problems.push(FieldError::new(format!("{at}/dataset/id"), "dataset_empty", message));
    }
    // Without the erased cases, the list differs from the stored version.
    Ok(RequestedCases { cases, dataset: (erased == 0).then_some((found.id, number)) })
}

/// The request's config, with the prompts that the training resumes.
async fn resumed_config(
    ports: &RunPorts,
    wanted: &Wanted,
    optimizer: Option<&Optimizer>,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Result<Map<String, Value>, StoreError> {
    let Some(resume) = optimizer.and_then(|optimizer| optimizer.resume.as_ref()) else {
        return Ok(wanted.config.clone());
    };
    let Some(prompts) = resumed_prompts(ports, wanted.version.workflow, resume).await? else {
        let message = "the checkpoint was not found in this workflow";
        problems.push(FieldError::new(format!("{at}/optimizer/resume"), "checkpoint_not_found", message));
        return Ok(wanted.config.clone());
    };
    let resumed = Map::from_iter([("prompts".to_owned(), Value::Object(prompts))]);
    Ok(overlaid(&wanted.config, &resumed))
}

/// The initial prompts of a run, by name; `None` if the checkpoint was not found.
async fn resumed_prompts(
    ports: &RunPorts,
    workflow: Uuid,
    resume: &Resume,
) -> Result<Option<Map<String, Value>>, StoreError> {
    let store = &ports.store;
    let found: Option<StoredCheckpoint> = match resume {
        Resume::Checkpoint(id) => match Uuid::parse_str(id) {
            Ok(id) => store.checkpoint(id).await?,
            Err(_) => None,
        },
        Resume::ConfigVersion(number) => {
            let number = i64::try_from(*number).unwrap_or(i64::MAX);
            store.checkpoint_numbered(workflow, number).await?
        }
        Resume::Run(id) => match Uuid::parse_str(id) {
            Ok(id) => returned(ports, id).await?,
            Err(_) => None,
        },
    };
    let found = found.filter(|found| found.workflow_id == workflow);
    let config = found.and_then(|found| stored_json(&found.runnable_config).ok());
    let prompts = config.as_ref().and_then(|config: &Value| config.get("prompts")).and_then(Value::as_object);
    Ok(prompts.cloned())
}

/// The checkpoint of the prompts that a training returned.
pub(super) async fn returned(ports: &RunPorts, run: Uuid) -> Result<Option<StoredCheckpoint>, StoreError> {
    let Some(stored) = ports.store.run(run).await? else { return Ok(None) };
    let output = stored.output.as_deref().and_then(|output| stored_json(output).ok()).unwrap_or_default();
    let part = |name: &str| output.get(name).and_then(Value::as_object).cloned();
    let (returned, demos) = (part("prompts"), part("demos").unwrap_or_default());
    let checkpoints = ports.store.checkpoints_of_run(run).await?;
    let has = |checkpoint: &StoredCheckpoint| {
        let config = stored_json(&checkpoint.runnable_config).unwrap_or_default();
        let member = |name: &str, member: &str| config.get("prompts")?.get(name)?.get(member).cloned();
        let has_texts = returned.as_ref().is_some_and(|returned| {
            returned.iter().all(|(name, text)| member(name, "text").as_ref() == Some(text))
        });
        let has_demos = demos
            .iter()
            .all(|(name, returned)| read_demos(member(name, "demos").as_ref()) == read_demos(Some(returned)));
        has_texts && has_demos
    };
    Ok(checkpoints.into_iter().rev().find(has))
}

/// The workflows in a workspace, for resolving pins.
pub(super) struct VersionsOf<'a> {
    pub(super) ports: &'a RunPorts,
    pub(super) workspace: Uuid,
}

#[async_trait]
impl Versions for VersionsOf<'_> {
    type Error = StoreError;

    async fn find(&self, workflow: &str, version: Option<u64>) -> Result<Option<FoundVersion>, StoreError> {
        let store = &self.ports.store;
        let found = store.workflow(&WorkflowRef::parse(workflow), self.workspace).await?;
        let Some(found) = found.filter(|found| found.workspace_id == self.workspace) else { return Ok(None) };
        let asked = version.map(|version| i32::try_from(version).unwrap_or(i32::MAX));
        let Some(number) = asked.or(found.live_version) else { return Ok(None) };
        let Some(stored) = store.version(found.id, number).await? else { return Ok(None) };
        Ok(Some(FoundVersion {
            id: stored.id.to_string(),
            number: stored.number.and_then(|number| u64::try_from(number).ok()),
            graph: stored.graph,
            config: stored.runnable_config.unwrap_or_default(),
        }))
    }
}
