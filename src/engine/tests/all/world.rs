//! A run under a test's control, with all its dependencies.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::ports::{
    ModelBudget, ModelObserver, Ports, Rehearsal, Spending, StepOutcome, StepRecord, WithinBudget,
};
use engine::{
    Activity, Cache, Completed, Life, Patch, Plan, RecordedStep, RunError, RunInfo, RunInput, execute, refill,
};
use kernel::{Clock, ManualClock, SeededRandom};
use models::{Model, ModelError, Models};
use sandbox::{Options, Sandbox};
use serde_json::{Map, Value, json};

use crate::attachments::MemoryAttachments;
use crate::collections::MemoryCollections;
use crate::output::MemoryOutput;
use crate::ports::*;

/// Workers from the built binary; none starts before there is code to run.
pub(crate) fn sandbox() -> Sandbox {
    let program = std::env::var_os("CALLBOARD_BIN").unwrap_or_default();
    Sandbox::new(Options { workers: 2, ..Options::new(program.into()) })
}

/// A run with all its dependencies.
pub(crate) struct World {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) sink: Arc<MemoryOutput>,
    pub(crate) model: Arc<TestModel>,
    /// Other models.
    pub(crate) models: Models,
    pub(crate) sandbox: Sandbox,
    pub(crate) workflows: MemoryWorkflows,
    pub(crate) credentials: MemoryCredentials,
    pub(crate) search: MemorySearch,
    pub(crate) collections: MemoryCollections,
    pub(crate) databases: MemoryDatabases,
    pub(crate) attachments: MemoryAttachments,
    /// Allowed addresses that are not public.
    pub(crate) allow: Vec<net::HostPort>,
    pub(crate) cache: Cache,
    pub(crate) deadline: Option<DateTime<Utc>>,
    pub(crate) patch: Option<Patch>,
    pub(crate) lives: Vec<Life>,
    pub(crate) answers: Arc<MemoryAnswers>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) observer: Arc<dyn ModelObserver>,
    pub(crate) rehearsal: Option<Arc<dyn Rehearsal>>,
    pub(crate) clock: ManualClock,
    pub(crate) inputs: Value,
    pub(crate) config: Map<String, Value>,
    pub(crate) recorded: Vec<RecordedStep>,
    /// Set for a chat turn.
    pub(crate) thread: Option<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(MemoryJournal::default())
    }

    pub(crate) fn with(journal: MemoryJournal) -> Self {
        let (model, clock) = (Arc::new(TestModel::default()), ManualClock::new(noon()));
        *model.clock.lock() = Some(clock.clone());
        Self {
            journal: Arc::new(journal),
            sink: Arc::default(),
            model,
            models: Models::default(),
            sandbox: sandbox(),
            workflows: MemoryWorkflows::default(),
            credentials: MemoryCredentials::default(),
            search: MemorySearch::default(),
            collections: MemoryCollections::default(),
            databases: MemoryDatabases::default(),
            attachments: MemoryAttachments::default(),
            allow: Vec::new(),
            cache: Cache::default(),
            lives: vec![Life { step: 1, run: "run_1".into(), accepted_at: noon(), messages: None }],
            deadline: None,
            patch: None,
            answers: Arc::default(),
            activity: Arc::default(),
            observer: Arc::new(WithinBudget(NoBudget)),
            rehearsal: None,
            clock,
            inputs: json!({}),
            config: Map::new(),
            recorded: Vec::new(),
            thread: None,
        }
    }

    /// Makes the run a chat turn.
    pub(crate) fn in_a_chat(mut self) -> Self {
        self.thread = Some("thr_1".to_owned());
        self
    }

    pub(crate) fn inputs(mut self, inputs: Value) -> Self {
        self.inputs = inputs;
        self
    }

    pub(crate) fn config(mut self, name: &str, value: Value) -> Self {
        self.config.insert(name.to_owned(), value);
        self
    }

    /// Adds another workflow; called again, its next version.
    pub(crate) fn workflow(self, handle: &str, graph: &Value) -> Self {
        self.configured(handle, graph, json!({}))
    }

    /// As [`Self::workflow`], with a runnable config.
    pub(crate) fn configured(mut self, handle: &str, graph: &Value, config: Value) -> Self {
        let config = config.as_object().unwrap().clone();
        self.workflows.0.entry(handle.to_owned()).or_default().push((plan(graph), config));
        self
    }

    /// Adds the model's next answer.
    pub(crate) fn answers(self, pieces: &[&'static str], end: Result<(), ModelError>) -> Self {
        self.model.script.lock().push_back(Scripted { pieces: pieces.to_vec(), end });
        self
    }

    /// Adds a secret to the vault.
    pub(crate) fn credential(self, name: &str, secret: &str) -> Self {
        self.credentials.0.lock().insert(name.to_owned(), secret.to_owned());
        self
    }

    /// Allows calls to this address.
    pub(crate) fn allowing(mut self, at: std::net::SocketAddr) -> Self {
        let host = net::Host::parse(&at.ip().to_string()).unwrap();
        self.allow.push(net::HostPort { host, port: at.port() });
        self
    }

    pub(crate) fn recorded(mut self, recorded: Vec<RecordedStep>) -> Self {
        self.recorded = recorded;
        self
    }

    /// Starts the run on a separate task.
    pub(crate) fn begin(&self, plan: &Arc<Plan>) -> StartedRun {
        self.begin_with(plan, Arc::new(self.clock.clone()))
    }

    /// As [`Self::begin`], with another clock.
    pub(crate) fn begin_with(&self, plan: &Arc<Plan>, clock: Arc<dyn Clock>) -> StartedRun {
        let (plan, clone, input) = (Arc::clone(plan), self.parts(), self.input());
        let recorded = self.recorded.clone();
        StartedRun(tokio::spawn(async move {
            let random = SeededRandom::new(1);
            execute(&plan, input, recorded, clone.ports(&*clock, &random)).await
        }))
    }

    /// Returns the rebuilt inputs of the recorded steps: `node visit` and the input, by name.
    pub(crate) async fn refill(&self, plan: &Arc<Plan>) -> BTreeMap<String, Value> {
        let visits = self.recorded.iter().map(|row| (row.node.clone(), row.visit)).collect();
        let (parts, random) = (self.parts(), SeededRandom::new(1));
        let ports = parts.ports(&self.clock, &random);
        let found = refill(plan, self.input(), self.recorded.clone(), visits, ports).await;
        found.into_iter().map(|found| (format!("{} {}", found.node, found.visit), found.input)).collect()
    }

    fn input(&self) -> RunInput {
        RunInput {
            inputs: self.inputs.clone(),
            messages: vec![json!({"role": "user", "content": "hi"})],
            config: self.config.clone(),
            run: RunInfo {
                id: "run_1".into(),
                workflow_id: "wf_1".into(),
                thread_id: self.thread.clone(),
                trigger: "api".into(),
            },
            lives: self.lives.clone(),
            deadline: self.deadline,
            patch: self.patch.clone(),
        }
    }

    fn parts(&self) -> Parts {
        let model: Arc<dyn Model> = self.model.clone();
        Parts {
            journal: Arc::clone(&self.journal),
            sink: Arc::clone(&self.sink),
            models: self.models.clone().with("test", model),
            sandbox: self.sandbox.clone(),
            workflows: self.workflows.clone(),
            credentials: self.credentials.clone(),
            search: self.search.clone(),
            collections: self.collections.clone(),
            databases: self.databases.clone(),
            attachments: self.attachments.clone(),
            outbound: outbound(&self.allow),
            cache: self.cache.clone(),
            answers: Arc::clone(&self.answers),
            activity: Arc::clone(&self.activity),
            observer: Arc::clone(&self.observer),
            rehearsal: self.rehearsal.clone(),
        }
    }

    /// Runs to the end in real time, as external calls require.
    pub(crate) async fn run_outside(&self, plan: &Arc<Plan>) -> Result<Value, RunError> {
        self.begin_with(plan, Arc::new(kernel::SystemClock::new())).end().await
    }

    /// Runs to the end, and advances the clock whenever all tasks wait.
    pub(crate) async fn run(&self, plan: &Arc<Plan>) -> Result<Value, RunError> {
        let run = self.begin(plan);
        for _ in 0..100_000 {
            settle().await;
            if run.has_ended() {
                return run.end().await;
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("the run does not end");
    }
}

/// The dependencies of a run on its own task.
struct Parts {
    journal: Arc<MemoryJournal>,
    sink: Arc<MemoryOutput>,
    models: Models,
    sandbox: Sandbox,
    workflows: MemoryWorkflows,
    credentials: MemoryCredentials,
    search: MemorySearch,
    collections: MemoryCollections,
    databases: MemoryDatabases,
    attachments: MemoryAttachments,
    outbound: net::Client,
    cache: Cache,
    answers: Arc<MemoryAnswers>,
    activity: Arc<Activity>,
    observer: Arc<dyn ModelObserver>,
    rehearsal: Option<Arc<dyn Rehearsal>>,
}

impl Parts {
    fn ports<'a>(&'a self, clock: &'a dyn Clock, random: &'a SeededRandom) -> Ports<'a> {
        Ports {
            journal: &*self.journal,
            output: &*self.sink,
            clock,
            random,
            models: &self.models,
            observer: &*self.observer,
            sandbox: &self.sandbox,
            workflows: &self.workflows,
            credentials: &self.credentials,
            search: &self.search,
            collections: &self.collections,
            databases: &self.databases,
            attachments: &self.attachments,
            outbound: &self.outbound,
            cache: &self.cache,
            rehearsal: self.rehearsal.as_deref(),
            answers: &*self.answers,
            activity: &self.activity,
        }
    }
}

/// Uses real time, because real servers answer. Cached: reading the machine's certificates takes longer than most
/// tests.
pub(crate) fn outbound(allow: &[net::HostPort]) -> net::Client {
    static CLOSED: OnceLock<net::Client> = OnceLock::new();
    let make = || {
        let egress = net::Egress { allow: allow.to_vec(), own: Vec::new() };
        let guard = Arc::new(net::Guard::new(egress, Arc::new(net::SystemResolver)));
        net::Client::guarded(guard, Arc::new(kernel::SystemClock::new())).unwrap()
    };
    if allow.is_empty() { CLOSED.get_or_init(make).clone() } else { make() }
}

pub(crate) struct StartedRun(tokio::task::JoinHandle<Result<Completed, RunError>>);

impl StartedRun {
    /// Drops the run in its current state.
    pub(crate) fn drop_it(&self) {
        self.0.abort();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    pub(crate) async fn end(self) -> Result<Value, RunError> {
        self.completed().await.map(|completed| completed.output)
    }

    /// The outcome with its warning.
    pub(crate) async fn completed(self) -> Result<Completed, RunError> {
        self.0.await.unwrap()
    }
}

/// Lets every task run as far as it can (the test runtime has one thread).
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Returns the rows that an instance reads when it takes the run over.
pub(crate) fn recorded(rows: &[StepRecord]) -> Vec<RecordedStep> {
    let mut last: BTreeMap<(&str, u32, u32), &StepRecord> = BTreeMap::new();
    for row in rows {
        last.insert((&row.node, row.visit, row.attempt), row);
    }
    last.into_values()
        .map(|row| RecordedStep {
            node: row.node.clone(),
            visit: row.visit,
            attempt: row.attempt,
            note: row.note.clone(),
            input_digest: row.input_digest,
            finished_at: match &row.outcome {
                StepOutcome::Started => None,
                StepOutcome::Succeeded { finished_at, .. } | StepOutcome::Failed { finished_at, .. } => {
                    Some(*finished_at)
                }
            },
            result: match &row.outcome {
                StepOutcome::Succeeded { result, .. } => Some(serde_json::from_str(result).unwrap()),
                _ => None,
            },
            error: match &row.outcome {
                StepOutcome::Failed { error, .. } => Some(error.clone()),
                _ => None,
            },
            started_at: row.started_at,
        })
        .collect()
}

/// The machine's clock after it was set back: wall time before `noon`, monotonic time unchanged.
pub(crate) struct SetBack(pub(crate) ManualClock);

impl Clock for SetBack {
    fn now(&self) -> DateTime<Utc> {
        self.0.now() - chrono::TimeDelta::days(1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) -> kernel::Sleep {
        self.0.sleep(duration)
    }
}

/// The result of a node that runs alone.
pub(crate) async fn result(node: Value, inputs: Value) -> Result<Value, RunError> {
    World::new().inputs(inputs).run(&plan(&alone(&node))).await
}

/// Returns the reasons why a graph with only this node is refused, as `pointer code` with pointers below the node.
pub(crate) fn refused(node: &Value) -> Vec<String> {
    let problems = engine::check(&alone(node)).err().unwrap_or_default();
    for problem in &problems {
        assert!(problem.suggestion.is_some(), "no suggestion: {problem:?}");
    }
    let below = |problem: &wire::FieldError| {
        format!("{} {}", problem.pointer.trim_start_matches("/nodes/0"), problem.code)
    };
    problems.iter().map(below).collect()
}

/// A budget without limits.
struct NoBudget;

#[async_trait::async_trait]
impl ModelBudget for NoBudget {
    async fn reserve(&self, _expected: &Spending) -> Result<(), engine::NodeError> {
        Ok(())
    }

    fn release(&self, _expected: &Spending, _used: &Spending) {}
}
