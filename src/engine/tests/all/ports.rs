//! The ports in memory, and small graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::ports::{
    Answer, Answers, Credentials, DatabaseQuery, DatabaseRows, Databases, FoundChunk, Journal, JournalError,
    Resolved, SearchIndex, StepKey, StepOutcome, StepRecord, Workflows,
};
use engine::search::{ChunkLocation, IndexedChunk, Ranked};
use engine::{NodeError, Plan};
use futures_util::future::BoxFuture;
use kernel::{Clock, ManualClock};
use models::{Model, ModelAnswer, ModelError, ModelRequest, Pieces};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::{Notify, oneshot, watch};

type PendingReceipt = (StepRecord, oneshot::Sender<Result<(), JournalError>>);

/// A journal that keeps its rows; receipts arrive at once, or when the test sends them.
#[derive(Default)]
pub(crate) struct MemoryJournal {
    pub(crate) rows: Mutex<Vec<StepRecord>>,
    by_hand: bool,
    waiting: Mutex<Vec<PendingReceipt>>,
    refuse: Option<&'static str>,
    /// Whether the run's start is not yet stored, and its result.
    early: bool,
    start: watch::Sender<Option<Result<(), JournalError>>>,
}

impl MemoryJournal {
    pub(crate) fn by_hand() -> Self {
        Self { by_hand: true, ..Self::default() }
    }

    /// Refuses every row of `node`.
    pub(crate) fn refusing(node: &'static str) -> Self {
        Self { refuse: Some(node), ..Self::default() }
    }

    /// Creates a journal whose run has not stored its start yet.
    pub(crate) fn early() -> Self {
        Self { early: true, ..Self::default() }
    }

    /// Sets whether the start is stored.
    pub(crate) fn start_is(&self, stored: Result<(), JournalError>) {
        self.start.send_replace(Some(stored));
    }

    /// Acknowledges the rows of `node`.
    pub(crate) fn acknowledge(&self, node: &str) {
        let mut waiting = self.waiting.lock();
        let (now, later) = std::mem::take(&mut *waiting).into_iter().partition(|(row, _)| row.node == node);
        *waiting = later;
        drop(waiting);
        let now: Vec<PendingReceipt> = now;
        assert!(!now.is_empty(), "no row of {node} waits");
        for (_, receipt) in now {
            let _ = receipt.send(Ok(()));
        }
    }

    /// Lists rows as `node.visit outcome`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.rows.lock().iter().map(line).collect()
    }
}

fn line(row: &StepRecord) -> String {
    let outcome = match row.outcome {
        StepOutcome::Started => "started",
        StepOutcome::Succeeded { .. } => "succeeded",
        StepOutcome::Failed { .. } => "failed",
    };
    format!("{} {}.{} {outcome}", row.step, row.node, row.visit)
}

impl Journal for MemoryJournal {
    fn started(&self) -> Option<BoxFuture<'_, Result<(), JournalError>>> {
        let mut start = self.start.subscribe();
        self.early.then(|| -> BoxFuture<'_, _> {
            Box::pin(async move { start.wait_for(Option::is_some).await.unwrap().clone().unwrap() })
        })
    }

    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>> {
        if self.refuse == Some(row.node.as_str()) {
            return Box::pin(async { Err(JournalError("the lease is gone".into())) });
        }
        self.rows.lock().push(row.clone());
        if !self.by_hand {
            return Box::pin(async { Ok(()) });
        }
        let (give, receipt) = oneshot::channel();
        self.waiting.lock().push((row, give));
        Box::pin(async { receipt.await.unwrap_or_else(|_| Err(JournalError("gone".into()))) })
    }
}

/// Answers given by a test, by `node.visit~attempt`.
#[derive(Default)]
pub(crate) struct MemoryAnswers {
    given: Mutex<BTreeMap<String, Answer>>,
    changed: Notify,
}

impl MemoryAnswers {
    pub(crate) fn give(&self, step: &str, value: Value) {
        let answer = Answer { value, by: Some("ada@example.com".into()), at: noon() };
        self.given.lock().insert(step.to_owned(), answer);
        self.changed.notify_waiters();
    }
}

#[async_trait]
impl Answers for MemoryAnswers {
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError> {
        let key = format!("{}.{}~{}", step.node, step.visit, step.attempt);
        loop {
            let changed = self.changed.notified();
            if let Some(answer) = self.given.lock().get(&key) {
                return Ok(answer.clone());
            }
            changed.await;
        }
    }

    async fn stored(&self, step: StepKey<'_>) -> Result<Option<Answer>, JournalError> {
        let key = format!("{}.{}~{}", step.node, step.visit, step.attempt);
        Ok(self.given.lock().get(&key).cloned())
    }
}

/// A scripted model call: pieces with a second before each, then its end.
#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) pieces: Vec<&'static str>,
    pub(crate) end: Result<(), ModelError>,
}

/// `test/<anything>`: answers from a script, and then with `<model>: <last message>`.
#[derive(Default)]
pub(crate) struct TestModel {
    pub(crate) script: Mutex<VecDeque<Scripted>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    /// Calls in progress.
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) clock: Mutex<Option<ManualClock>>,
}

#[async_trait]
impl Model for TestModel {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        self.requests.lock().push(request.clone());
        let _open = Open::new(&self.open);
        let scripted = self.script.lock().pop_front();
        let clock = self.clock.lock().clone();
        let Some(scripted) = scripted else {
            let last = request.messages.last().map(|message| message.content.as_str()).unwrap_or_default();
            let text = format!("{}: {last}", request.model);
            pieces.piece(&text).await;
            return Ok(ModelAnswer { text, ..ModelAnswer::default() });
        };
        for piece in &scripted.pieces {
            if let Some(clock) = &clock {
                clock.sleep(Duration::from_secs(1)).await;
            }
            pieces.piece(piece).await;
        }
        scripted.end.map(|()| ModelAnswer { text: scripted.pieces.concat(), ..ModelAnswer::default() })
    }
}

struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Workflow versions, from 1, by handle; a version's id is `<handle>@<version>`.
#[derive(Default, Clone)]
pub(crate) struct MemoryWorkflows(pub(crate) BTreeMap<String, Vec<Version>>);

type Version = (Arc<Plan>, Map<String, Value>);

#[async_trait]
impl Workflows for MemoryWorkflows {
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError> {
        let latest = self.0.get(workflow).map_or(0, Vec::len);
        let version = version.map_or(latest, |version| usize::try_from(version).unwrap());
        self.version(&format!("{workflow}@{version}")).await
    }

    async fn version(&self, id: &str) -> Result<Resolved, NodeError> {
        let (handle, version) = id.split_once('@').unwrap();
        let version: usize = version.parse().unwrap();
        let found = self.0.get(handle).and_then(|versions| versions.get(version.checked_sub(1)?));
        let (plan, config) =
            found.ok_or_else(|| NodeError::failed(format!("there is no workflow '{id}'")))?;
        Ok(Resolved {
            version: id.to_owned(),
            workflow: handle.to_owned(),
            plan: Arc::clone(plan),
            config: Arc::new(config.clone()),
        })
    }
}

/// A vault in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryCredentials(pub(crate) Arc<Mutex<BTreeMap<String, String>>>);

#[async_trait]
impl Credentials for MemoryCredentials {
    async fn resolve(&self, names: &[String]) -> Result<Vec<kernel::Secret>, NodeError> {
        let known = self.0.lock();
        let secret = |name: &String| {
            let missing = || NodeError::new(wire::ErrorCode::CredentialMissing, format!("no '{name}'"));
            known.get(name).map(|secret| kernel::Secret::from(secret.clone())).ok_or_else(missing)
        };
        names.iter().map(secret).collect()
    }

    async fn those_there(&self, names: &[String]) -> Result<Vec<kernel::Secret>, NodeError> {
        let known = self.0.lock();
        Ok(names.iter().filter_map(|name| known.get(name).cloned().map(kernel::Secret::from)).collect())
    }
}

/// A database in memory that echoes each query.
#[derive(Clone, Default)]
pub(crate) struct MemoryDatabases(pub(crate) Arc<Mutex<Vec<(String, DatabaseQuery)>>>);

#[async_trait]
impl Databases for MemoryDatabases {
    fn password(&self, dsn: &kernel::Secret) -> Option<kernel::Secret> {
        let (_, behind) = dsn.expose_secret().split_once("://")?;
        let (_, password) = behind.split_once('@')?.0.split_once(':')?;
        Some(kernel::Secret::from(password.to_owned()))
    }

    async fn query(&self, dsn: &kernel::Secret, query: DatabaseQuery) -> Result<DatabaseRows, NodeError> {
        self.0.lock().push((dsn.expose_secret().to_owned(), query.clone()));
        match query.sql.as_str() {
            "FAIL" => Err(NodeError::new(wire::ErrorCode::PostgresFailed, dsn.expose_secret())),
            _ => Ok(DatabaseRows { rows: query.parameters, count: 2 }),
        }
    }
}

/// One index in memory, "there"; its text score counts matching words.
#[derive(Clone, Default)]
pub(crate) struct MemorySearch(pub(crate) Arc<Mutex<BTreeMap<String, Vec<IndexedChunk>>>>);

impl MemorySearch {
    fn ranked(
        &self,
        index: &str,
        filter: Option<&Map<String, Value>>,
        score: impl Fn(&IndexedChunk) -> f64,
    ) -> Result<Vec<Ranked>, NodeError> {
        if index != "there" {
            return Err(NodeError::new(wire::ErrorCode::IndexNotFound, format!("no '{index}'")));
        }
        let mut best = engine::search::Best::new(200);
        for (document, chunks) in (0..).zip(self.0.lock().values()) {
            for (number, chunk) in (0..).zip(chunks) {
                let fits =
                    filter.into_iter().flatten().all(|(name, value)| chunk.metadata.get(name) == Some(value));
                if fits && score(chunk) > 0.0 {
                    best.add(ChunkLocation { document, number }, score(chunk));
                }
            }
        }
        Ok(best.sorted())
    }
}

#[async_trait]
impl SearchIndex for MemorySearch {
    async fn upsert(&self, index: &str, document: &str, chunks: Vec<IndexedChunk>) -> Result<u64, NodeError> {
        if index == "full" {
            return Err(NodeError::new(wire::ErrorCode::IndexFull, "full"));
        }
        let had = self.0.lock().insert(document.to_owned(), chunks);
        Ok(had.map_or(0, |had| u64::try_from(had.len()).unwrap()))
    }

    async fn text(
        &self,
        index: &str,
        terms: &[String],
        filter: Option<&Map<String, Value>>,
        _most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        let known = |chunk: &IndexedChunk| terms.iter().filter_map(|term| chunk.terms.get(term)).sum::<u32>();
        self.ranked(index, filter, |chunk| f64::from(known(chunk)))
    }

    async fn vector(
        &self,
        index: &str,
        vector: Vec<f32>,
        filter: Option<&Map<String, Value>>,
        _most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        let near = |own: &Vec<f32>| engine::search::cosine(&vector, &engine::search::packed(own));
        self.ranked(index, filter, |chunk| chunk.vector.as_ref().map_or(0.0, near))
    }

    async fn chunks(&self, _index: &str, places: &[ChunkLocation]) -> Result<Vec<FoundChunk>, NodeError> {
        let known = self.0.lock();
        let found = |place: &ChunkLocation| {
            let (document, chunks) = known.iter().nth(usize::try_from(place.document).unwrap()).unwrap();
            let chunk = &chunks[usize::try_from(place.number).unwrap()];
            let metadata = Value::Object(chunk.metadata.clone());
            FoundChunk { place: *place, document: document.clone(), text: chunk.text.clone(), metadata }
        };
        Ok(places.iter().map(found).collect())
    }
}

pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

pub(crate) fn plan(graph: &Value) -> Arc<Plan> {
    match engine::check(graph) {
        Ok(plan) => Arc::new(plan),
        Err(problems) => panic!("{problems:#?}"),
    }
}

/// Builds a graph from nodes and edges; edges are `[from, to]` or in full form.
pub(crate) fn graph(nodes: Value, edges: Value) -> Value {
    let edges: Vec<Value> = edges
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| match edge {
            Value::Array(pair) => json!({"from": pair[0], "to": pair[1]}),
            other => other.clone(),
        })
        .collect();
    json!({"format": "graph/1", "nodes": nodes, "edges": edges})
}

pub(crate) fn template(name: &str, template: &str) -> Value {
    json!({"name": name, "type": "template", "template": template})
}

pub(crate) fn delay(name: &str, seconds: impl Into<Value>) -> Value {
    json!({"name": name, "type": "delay", "seconds": seconds.into()})
}

pub(crate) fn reply(name: &str, text: &str) -> Value {
    json!({"name": name, "type": "reply", "text": text})
}

/// A graph with only this node, whose result is the output.
pub(crate) fn alone(node: &Value) -> Value {
    let name = node["name"].as_str().unwrap();
    let mut graph = graph(json!([node]), json!([["START", name], [name, "END"]]));
    graph["output"] = json!(format!("{{{{ results.{name} }}}}"));
    graph
}
