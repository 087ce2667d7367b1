//! An executing run: everything that its cases share, read from its rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use engine::RunError;
use engine::ports::Ports;
use kernel::Counter;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use store::{CaseKey, StoreError, StoredTraining};
use training::calls::{CallJournal, CallSettings, CallUsage, Calls, Endpoints, Spent};
use training::evaluators::Evaluator;
use training::optimize::Candidate;
use training::request::{CacheScope, DatasetSource, Optimizer, RunSettings};
use training::{
    Case, CaseBench, CaseSettings, StoredResult, TrainablePrompt, is_erased, read_stored_case, split,
    trainable_prompts,
};
use uuid::Uuid;
use wire::{ErrorCode, FieldError};

use super::calls::{OfWorkflow, RecordedCalls, Sink};
use super::datasets::elsewhere;
use super::decided::Decided;
use super::events::TrainingEvents;
use super::prepare::ParsedTraining;
use super::state::StoredProgress;
use crate::plans::LoadedVersion;
use crate::run::{RunPorts, RunWriter, overlaid, whole};
use crate::text::stored_json;

/// A run's start and its progress.
pub(crate) struct StoredStart {
    pub(super) training: StoredTraining,
    pub(super) decided: Decided,
    pub(super) state: StoredProgress,
}

/// Data stored in earlier lives of a run.
pub(super) struct Stored {
    cases: Vec<Case>,
    calls: RecordedCalls,
    /// Keys of existing results.
    results: BTreeSet<CaseKey>,
    /// Number of these results' calls that were answered.
    answered: u64,
}

/// A part of a run that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what} of a training cannot be read")]
pub(super) struct Unreadable {
    what: &'static str,
    /// The error with which the run ends.
    pub(super) error: RunError,
}

/// Corrupt data that the service cannot have written.
fn corrupt(what: &'static str) -> Unreadable {
    Unreadable { what, error: whole(ErrorCode::Internal) }
}

/// A request that an earlier version accepted, such as one that names a removed optimizer.
fn rejected(problems: &[FieldError]) -> Unreadable {
    let texts = problems.iter().map(|problem| format!("{}: {}", problem.pointer, problem.message));
    let code = ErrorCode::InvalidRequest;
    let message = format!("{} {}", code.message(), texts.collect::<Vec<_>>().join("; "));
    Unreadable { what: "the request", error: RunError { message, ..whole(code) } }
}

impl Stored {
    /// Reads a run's cases, and everything that earlier lives have stored.
    pub(super) async fn read(
        training: &StoredTraining,
        ports: &RunPorts,
    ) -> Result<Result<Self, Unreadable>, StoreError> {
        let (store, run) = (&ports.store, training.run_id);
        let dataset = (training.dataset_id, training.dataset_version);
        let contents = store.cases_of_version(dataset.0, dataset.1, training.n_cases.into()).await?;
        let read = move || -> Option<Vec<Case>> {
            let mut cases = Vec::with_capacity(contents.len());
            for (index, content) in (0_u32..).zip(contents) {
                let content: Value = stored_json(&content).unwrap_or_default();
                if is_erased(&content) {
                    return None;
                }
                cases.extend(read_stored_case(&content, index));
            }
            Some(cases)
        };
        // Decisions that the search based on an erased case cannot be repeated.
        let Some(cases) = elsewhere(read).await? else {
            let error = whole(ErrorCode::RunContentErased);
            return Ok(Err(Unreadable { what: "an erased case", error }));
        };
        if i32::try_from(cases.len()) != Ok(training.n_cases) {
            return Ok(Err(corrupt("a case")));
        }
        let mut calls = RecordedCalls::read(run, store).await?;
        calls.usage.lost_calls = store.count_lost_calls(run, ports.writer).await?;
        let results: BTreeSet<CaseKey> = store.case_keys(run).await?.into_iter().collect();
        let answered = if results.is_empty() { 0 } else { store.answered_calls(run).await? };
        Ok(Ok(Self { cases, calls, results, answered }))
    }
}

/// An executing run.
pub(super) struct TrainingSession {
    pub(super) run: Uuid,
    pub(super) workspace: Uuid,
    pub(super) workflow: Uuid,
    pub(super) version: Arc<LoadedVersion>,
    /// The version's config overlaid with the request's config.
    pub(super) config: Map<String, Value>,
    pub(super) training: StoredTraining,
    pub(super) decided: Decided,
    pub(super) before: StoredProgress,
    pub(super) cases: Vec<Case>,
    pub(super) evaluators: Vec<Evaluator>,
    pub(super) optimizer: Option<Optimizer>,
    pub(super) prompts: Vec<TrainablePrompt>,
    pub(super) settings: RunSettings,
    pub(super) case_settings: CaseSettings,
    /// Each case's split.
    pub(super) split_of: Vec<&'static str>,
    pub(super) calls: Calls,
    pub(super) results: BTreeSet<CaseKey>,
    pub(super) ports: RunPorts,
    pub(super) writer: RunWriter<TrainingEvents>,
}

/// The run that a session executes, and its connections.
pub(super) struct SessionContext {
    pub(super) run: Uuid,
    pub(super) workspace: Uuid,
    pub(super) workflow: Uuid,
    pub(super) version: Arc<LoadedVersion>,
    pub(super) inputs: Value,
    /// The request's config.
    pub(super) config: Map<String, Value>,
    pub(super) accepted_at: DateTime<Utc>,
    pub(super) endpoints: Endpoints,
    pub(super) ports: RunPorts,
    pub(super) writer: RunWriter<TrainingEvents>,
}

impl SessionContext {
    /// The run's calls; they continue those of earlier lives.
    fn calls(&self, earlier: RecordedCalls, answered: u64, settings: &RunSettings) -> Calls {
        let RecordedCalls { recorded, usage } = earlier;
        let sink = Sink { run: self.run, ids: self.ports.ids.clone(), writer: self.writer.clone() };
        let mut journal = CallJournal::new(recorded, Box::new(sink));
        if settings.cache == CacheScope::Workflow {
            journal = journal.with_earlier(Box::new(OfWorkflow {
                workflow: self.workflow,
                run: self.run,
                store: self.ports.store.clone(),
                writer: self.writer.clone(),
            }));
        }
        let settings = CallSettings {
            run: self.run.to_string(),
            seed: settings.seed,
            limits: settings.limits,
            concurrency: settings.concurrency,
            answered,
            prices: settings.models.prices(),
            shares_answers: settings.cache != CacheScope::Off,
        };
        let (clock, random) = (Arc::clone(&self.ports.clock), Arc::clone(&self.ports.random));
        Calls::new(settings, usage, journal, self.endpoints.clone(), clock, random)
    }
}

impl TrainingSession {
    /// Builds the session from the run's stored data.
    pub(super) fn new(
        context: SessionContext,
        start: StoredStart,
        stored: Stored,
    ) -> Result<Self, Unreadable> {
        let StoredStart { training, decided, state } = start;
        let Stored { mut cases, calls, results, answered } = stored;
        let request: Value = stored_json(&training.request).map_err(|_| corrupt("the request"))?;
        let mut problems = Vec::new();
        let at = format!("/{}", decided.kind.as_str());
        let parsed = ParsedTraining::read(decided.kind, &request, &at, &mut problems);
        let ParsedTraining { mut workload, optimizer, settings } =
            parsed.ok_or_else(|| rejected(&problems))?;
        if let DatasetSource::Inline(inline) = &mut workload.dataset {
            cases = std::mem::take(inline);
        }
        let config = overlaid(&context.version.config, &context.config);
        let prompts = match optimizer {
            Some(_) => trainable_prompts(&context.version.plan, &config, "", &mut problems, &mut Vec::new()),
            None => Vec::new(),
        };
        let split_of = splits(&cases, optimizer.as_ref());
        let case_settings = CaseSettings {
            run: context.run.to_string(),
            workflow: context.workflow.to_string(),
            accepted_at: context.accepted_at,
            trigger: decided.trigger(),
            inputs: context.inputs.as_object().cloned().unwrap_or_default(),
            mocks: workload.mocks.take(),
            may_send: workload.may_send,
            limit: settings.case_timeout,
        };
        Ok(Self {
            run: context.run,
            workspace: context.workspace,
            workflow: context.workflow,
            calls: context.calls(calls, answered, &settings),
            version: context.version,
            config,
            training,
            decided,
            before: state,
            cases,
            evaluators: workload.evaluators,
            optimizer,
            prompts,
            settings,
            case_settings,
            split_of,
            results,
            ports: context.ports,
            writer: context.writer,
        })
    }

    /// The config with this candidate's prompt texts and demos.
    pub(super) fn config_of(&self, candidate: &Candidate) -> Map<String, Value> {
        let mut config = self.config.clone();
        let known = config.get_mut("prompts").and_then(Value::as_object_mut);
        for (name, prompt) in known.into_iter().flatten() {
            let Some(prompt) = prompt.as_object_mut() else { continue };
            if let Some(text) = candidate.prompts.get(name) {
                prompt.insert("text".to_owned(), json!(text));
            }
            let seed = || self.prompts.iter().find(|prompt| prompt.name == *name);
            let demos =
                candidate.demos.get(name).filter(|demos| seed().is_none_or(|seed| seed.demos != **demos));
            if let Some(demos) = demos {
                prompt.insert("demos".to_owned(), json!(demos));
            }
        }
        config
    }

    /// The bench for judging a case. `name`: candidate and case; `spent`: collects its usage.
    pub(super) fn bench<'b>(
        &'b self,
        ports: Ports<'b>,
        sample: u32,
        name: &'b str,
        spent: &'b Arc<Mutex<Spent>>,
    ) -> CaseBench<'b> {
        CaseBench {
            plan: &self.version.plan,
            calls: &self.calls,
            settings: &self.case_settings,
            ports,
            sample,
            name,
            model: &self.decided.judge_model,
            spent,
        }
    }

    /// Usage in all lives so far.
    pub(super) fn usage(&self) -> CallUsage {
        self.calls.usage()
    }
}

/// Each case's split; empty for an evaluation. If the same cases train and decide, they count as training cases.
fn splits(cases: &[Case], optimizer: Option<&Optimizer>) -> Vec<&'static str> {
    let Some(optimizer) = optimizer else { return Vec::new() };
    let splits = split(cases, optimizer.split_settings(), &Counter::new(optimizer.settings.seed));
    let mut of = vec!["train"; cases.len()];
    let val: &[usize] = if splits.train == splits.val { &[] } else { &splits.val };
    for (places, name) in [(val, "val"), (&splits.test, "test")] {
        for place in places {
            if let Some(split) = of.get_mut(*place) {
                *split = name;
            }
        }
    }
    of
}

/// Parses the case result in a row.
pub(super) fn read_result(text: &str) -> Option<StoredResult> {
    stored_json(text).ok().and_then(|stored| serde_json::from_value(stored).ok())
}
