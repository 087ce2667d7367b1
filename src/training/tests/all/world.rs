//! The test environment of a case: a scripted model, and nothing else.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::ports::{
    Credentials, DatabaseQuery, DatabaseRows, Databases, FoundChunk, ModelBudget, NoAttachments,
    NoCollections, Nowhere, Ports, Resolved, SearchIndex, Spending, WithinBudget, Workflows,
};
use engine::search::{ChunkLocation, IndexedChunk, Ranked};
use engine::{Activity, Cache, NodeError, Plan};
use kernel::{ManualClock, Secret, SeededRandom};
use models::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, Pieces,
    Price, Usage,
};
use parking_lot::Mutex;
use sandbox::{Options, Sandbox};
use serde_json::{Map, Value, json};
use training::calls::{
    BudgetLimits, CallJournal, CallKey, CallSettings, CallSink, CallUsage, Calls, EarlierCalls, Endpoints,
    RecordedCall, Role, RunPrices, UnansweredCall,
};
use training::evaluators::{Evaluator, Verdict};
use training::{Case, CaseBench, CaseContext, CaseRun, CaseSettings, judge, run_case};
use wire::ErrorCode;

/// The model's answer to a request.
pub(crate) enum Answer {
    Text(&'static str),
    Refuses(Option<Duration>),
    IsDown,
    /// Never answers.
    Hangs,
}

/// Answers by script, else with the last message; records every request.
#[derive(Default)]
pub(crate) struct TestModel {
    pub(crate) script: Mutex<VecDeque<Answer>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for TestModel {
    async fn call(&self, request: &ModelRequest, _pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        self.requests.lock().push(request.clone());
        // Lets other requests start meanwhile.
        tokio::task::yield_now().await;
        let error = |kind, retry_after| ModelError { kind, message: "no".to_owned(), retry_after };
        let scripted = self.script.lock().pop_front();
        let text = match scripted {
            None => request.messages.last().map(|message| message.content.clone()).unwrap_or_default(),
            Some(Answer::Text(text)) => text.to_owned(),
            Some(Answer::Refuses(pause)) => return Err(error(ModelErrorKind::RateLimited, pause)),
            Some(Answer::IsDown) => return Err(error(ModelErrorKind::Unavailable, None)),
            Some(Answer::Hangs) => std::future::pending().await,
        };
        let usage = Some(Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() });
        Ok(ModelAnswer { text, usage, ..ModelAnswer::default() })
    }

    /// A vector counts each letter.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        let count = |text: &str, letter| f64::from(u8::try_from(text.matches(letter).count()).unwrap());
        let vectors = request
            .texts
            .iter()
            .map(|text| ('a'..='z').map(|letter| count(text, letter)).collect())
            .collect();
        Ok(Embeddings { vectors, usage: None, model: None })
    }
}

/// Collects recorded calls.
#[derive(Clone, Default)]
pub(crate) struct Recorded(
    pub(crate) Arc<Mutex<Vec<RecordedCall>>>,
    pub(crate) Arc<Mutex<Vec<UnansweredCall>>>,
    /// Every reported number of requests in flight.
    pub(crate) Arc<Mutex<Vec<u32>>>,
);

/// The calls of earlier runs.
pub(crate) struct Earlier(pub(crate) Vec<RecordedCall>);

#[async_trait]
impl EarlierCalls for Earlier {
    async fn find(&self, key: &CallKey) -> Option<RecordedCall> {
        self.0.iter().find(|call| call.key == *key).cloned()
    }
}

impl CallSink for Recorded {
    fn record(&self, call: &RecordedCall, in_flight: Option<u32>) {
        self.0.lock().push(call.clone());
        self.2.lock().extend(in_flight);
    }

    fn record_unanswered(&self, call: &UnansweredCall, in_flight: Option<u32>) {
        self.1.lock().push(call.clone());
        self.2.lock().extend(in_flight);
    }

    fn in_flight(&self, requests: u32) {
        self.2.lock().push(requests);
    }
}

pub(crate) struct World {
    pub(crate) model: Arc<TestModel>,
    pub(crate) clock: ManualClock,
    pub(crate) recorded: Recorded,
    pub(crate) calls: Calls,
    pub(crate) settings: CaseSettings,
    pub(crate) workflows: TestWorkflows,
}

/// Prices of the model `test/m`, in dollars per million tokens.
pub(crate) fn priced(input: f64, output: f64) -> RunPrices {
    let mut prices = RunPrices::default();
    prices.add("test/m", None, Price { input, cached: None, output, text_only: false });
    prices
}

pub(crate) fn noon() -> DateTime<Utc> {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// The initial state of a run.
pub(crate) struct Begin {
    pub(crate) seed: u64,
    pub(crate) limits: BudgetLimits,
    pub(crate) concurrency: usize,
    pub(crate) recorded: Vec<RecordedCall>,
    pub(crate) earlier: Vec<RecordedCall>,
    pub(crate) prices: RunPrices,
    pub(crate) shares_answers: bool,
}

impl Default for Begin {
    fn default() -> Self {
        Self {
            seed: 0,
            limits: BudgetLimits::default(),
            concurrency: 4,
            recorded: Vec::new(),
            earlier: Vec::new(),
            prices: RunPrices::default(),
            shares_answers: true,
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Begin::default())
    }

    pub(crate) fn with(begin: Begin) -> Self {
        let (clock, recorded) = (ManualClock::new(noon()), Recorded::default());
        let settings = CallSettings {
            run: "run_1".into(),
            seed: begin.seed,
            limits: begin.limits,
            concurrency: begin.concurrency,
            answered: 0,
            prices: begin.prices,
            shares_answers: begin.shares_answers,
        };
        let journal = CallJournal::new(begin.recorded, Box::new(recorded.clone()));
        let journal = journal.with_earlier(Box::new(Earlier(begin.earlier)));
        let calls = Calls::new(
            settings,
            CallUsage::default(),
            journal,
            Endpoints::default(),
            Arc::new(clock.clone()),
            Arc::new(SeededRandom::new(1)),
        );
        let settings = CaseSettings {
            run: "run_1".into(),
            workflow: "wf_1".into(),
            accepted_at: noon(),
            trigger: "evaluation",
            inputs: Map::new(),
            mocks: None,
            may_send: false,
            limit: Duration::from_secs(30),
        };
        Self { model: Arc::default(), clock, recorded, calls, settings, workflows: TestWorkflows::default() }
    }

    pub(crate) fn scripted(self, answers: Vec<Answer>) -> Self {
        self.model.script.lock().extend(answers);
        self
    }

    /// Runs a case once.
    pub(crate) async fn run(&self, plan: &Plan, case: &Case) -> CaseRun {
        self.sample(plan, case, 0).await
    }

    pub(crate) async fn sample(&self, plan: &Plan, case: &Case, sample: u32) -> CaseRun {
        let scope = self.calls.scope(Role::Task, sample, format!("0-{}", case.index));
        self.with_ports(async |ports| run_case(plan, &Map::new(), case, &self.settings, &scope, ports).await)
            .await
    }

    /// The verdicts of a case, with `test/judge` as the judge model.
    pub(crate) async fn judged(
        &self,
        evaluators: &[Evaluator],
        case: &Case,
        ran: &CaseRun,
    ) -> Option<Vec<Verdict>> {
        let model = Map::from_iter([("model".to_owned(), json!("test/judge"))]);
        let plan = &plan(&[llm("ask", "")], "");
        self.with_ports(async |ports| {
            let (calls, settings, model) = (&self.calls, &self.settings, &model);
            let spent = Arc::default();
            let bench =
                CaseBench { plan, calls, settings, ports, sample: 0, name: "0-0", model, spent: &spent };
            judge(evaluators, case, ran, CaseContext::default(), &bench).await
        })
        .await
    }

    /// Runs a case that sees these workflows.
    pub(crate) async fn run_with(&self, plan: &Plan, case: &Case, workflows: &dyn Workflows) -> CaseRun {
        let scope = self.calls.scope(Role::Task, 0, format!("0-{}", case.index));
        let config = Map::new();
        let run = async |ports: Ports<'_>| {
            run_case(plan, &config, case, &self.settings, &scope, Ports { workflows, ..ports }).await
        };
        self.with_ports(run).await
    }

    pub(crate) async fn with_ports<T>(&self, work: impl AsyncFnOnce(Ports<'_>) -> T) -> T {
        let practice = practice::Practice::new(Arc::new(kernel::SystemClock::new()));
        let models = Models::default().with("test", Arc::<TestModel>::clone(&self.model));
        let models = models.with("practice", Arc::new(practice));
        let (sandbox, outbound, cache) = (sandbox(), outbound(), Cache::default());
        let (random, activity, budget) = (SeededRandom::new(1), Activity::default(), WithinBudget(Nothing));
        let ports = Ports {
            journal: &Nowhere,
            output: &Nowhere,
            clock: &self.clock,
            random: &random,
            models: &models,
            observer: &budget,
            sandbox: &sandbox,
            workflows: &self.workflows,
            answers: &Nothing,
            credentials: &Nothing,
            search: &Nothing,
            collections: &NoCollections,
            attachments: &NoAttachments,
            databases: &Nothing,
            outbound: &outbound,
            rehearsal: None,
            cache: &cache,
            activity: &activity,
        };
        work(ports).await
    }

    /// The same, while time passes.
    pub(crate) async fn run_while_time_passes(&self, plan: &Plan, case: &Case) -> CaseRun {
        self.while_time_passes(self.run(plan, case)).await
    }

    /// Awaits work while advancing the clock.
    pub(crate) async fn while_time_passes<T>(&self, work: impl Future<Output = T>) -> T {
        let mut running = std::pin::pin!(work);
        for _ in 0..100_000 {
            for _ in 0..10 {
                if let std::task::Poll::Ready(done) = futures_util::poll!(&mut running) {
                    return done;
                }
                tokio::task::yield_now().await;
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("the work does not end");
    }
}

/// No worker is ever started.
fn sandbox() -> Sandbox {
    Sandbox::new(Options::new(std::path::PathBuf::new()))
}

fn outbound() -> net::Client {
    static CLOSED: OnceLock<net::Client> = OnceLock::new();
    let make = || {
        let egress = net::Egress { allow: Vec::new(), own: Vec::new() };
        let guard = Arc::new(net::Guard::new(egress, Arc::new(net::SystemResolver)));
        net::Client::guarded(guard, Arc::new(kernel::SystemClock::new())).unwrap()
    };
    CLOSED.get_or_init(make).clone()
}

pub(crate) fn case(index: u32, inputs: &Value, metadata: &Value) -> Case {
    let map = |value: &Value| value.as_object().unwrap().clone();
    Case {
        id: index.to_string(),
        index,
        inputs: map(inputs),
        expected_output: Value::Null,
        metadata: map(metadata),
    }
}

pub(crate) fn asking(index: u32, message: &str) -> Case {
    case(index, &json!({"message": message}), &json!({}))
}

/// A plan that runs the nodes one after the other.
pub(crate) fn plan(nodes: &[Value], output: &str) -> Plan {
    let names: Vec<&str> = nodes.iter().map(|node| node["name"].as_str().unwrap()).collect();
    let ends = ["START"].iter().chain(&names).zip(names.iter().chain(&["END"]));
    let edges: Vec<Value> = ends.map(|(from, to)| json!({"from": from, "to": to})).collect();
    let graph = json!({"format": "graph/1", "nodes": nodes, "edges": edges, "output": output});
    engine::check(&graph).unwrap_or_else(|problems| panic!("{problems:?}"))
}

pub(crate) fn llm(name: &str, user: &str) -> Value {
    json!({"name": name, "type": "llm", "model": "test/m", "user": user})
}

/// Provides nothing from outside.
struct Nothing;

fn none<T>() -> Result<T, NodeError> {
    Err(NodeError::new(ErrorCode::NodeFailed, "there is nothing outside"))
}

/// Other workflows by handle and version; the last one is live.
#[derive(Default)]
pub(crate) struct TestWorkflows(pub(crate) Vec<(&'static str, u32, Arc<Plan>)>);

impl TestWorkflows {
    fn resolved(found: Option<&(&'static str, u32, Arc<Plan>)>) -> Result<Resolved, NodeError> {
        let Some((handle, version, plan)) = found else { return none() };
        let (version, workflow) = (format!("{handle}@{version}"), (*handle).to_owned());
        Ok(Resolved { version, workflow, plan: Arc::clone(plan), config: Arc::default() })
    }
}

#[async_trait]
impl Workflows for TestWorkflows {
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError> {
        let is_wanted = |(handle, number, _): &&(&str, u32, Arc<Plan>)| {
            *handle == workflow && version.is_none_or(|version| version == *number)
        };
        Self::resolved(self.0.iter().rev().find(is_wanted))
    }

    async fn version(&self, id: &str) -> Result<Resolved, NodeError> {
        Self::resolved(self.0.iter().find(|(handle, number, _)| format!("{handle}@{number}") == id))
    }
}

#[async_trait]
impl Credentials for Nothing {
    async fn resolve(&self, _names: &[String]) -> Result<Vec<Secret>, NodeError> {
        none()
    }

    async fn those_there(&self, _names: &[String]) -> Result<Vec<Secret>, NodeError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Databases for Nothing {
    fn password(&self, _dsn: &Secret) -> Option<Secret> {
        None
    }

    async fn query(&self, _dsn: &Secret, _query: DatabaseQuery) -> Result<DatabaseRows, NodeError> {
        none()
    }
}

#[async_trait]
impl SearchIndex for Nothing {
    async fn upsert(
        &self,
        _index: &str,
        _document: &str,
        _chunks: Vec<IndexedChunk>,
    ) -> Result<u64, NodeError> {
        none()
    }

    async fn text(
        &self,
        _index: &str,
        _terms: &[String],
        _filter: Option<&Map<String, Value>>,
        _most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        none()
    }

    async fn vector(
        &self,
        _index: &str,
        _vector: Vec<f32>,
        _filter: Option<&Map<String, Value>>,
        _most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        none()
    }

    async fn chunks(&self, _index: &str, _places: &[ChunkLocation]) -> Result<Vec<FoundChunk>, NodeError> {
        none()
    }
}

#[async_trait]
impl engine::ports::Answers for Nothing {
    async fn answer(
        &self,
        _step: engine::ports::StepKey<'_>,
    ) -> Result<engine::ports::Answer, engine::ports::JournalError> {
        Err(engine::ports::JournalError("no answers".into()))
    }

    async fn stored(
        &self,
        _step: engine::ports::StepKey<'_>,
    ) -> Result<Option<engine::ports::Answer>, engine::ports::JournalError> {
        Ok(None)
    }
}

#[async_trait]
impl ModelBudget for Nothing {
    async fn reserve(&self, _expected: &Spending) -> Result<(), NodeError> {
        Ok(())
    }

    fn release(&self, _expected: &Spending, _used: &Spending) {}
}
