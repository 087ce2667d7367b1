//! The ports in memory, and a run that a test turns by hand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::ports::{Journal, JournalError, StepOutcome, StepRecord, TextSink};
use engine::{Plan, RecordedStep, RunError, RunInfo, RunInput, execute};
use futures_util::future::BoxFuture;
use kernel::{Clock, ManualClock};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

type Waiting = (StepRecord, oneshot::Sender<Result<(), JournalError>>);

/// A journal that keeps its rows; receipts come at once, or when the test gives them.
#[derive(Default)]
pub(crate) struct MemoryJournal {
    pub(crate) rows: Mutex<Vec<StepRecord>>,
    by_hand: bool,
    waiting: Mutex<Vec<Waiting>>,
    refuse: Option<&'static str>,
}

impl MemoryJournal {
    pub(crate) fn by_hand() -> Self {
        Self { by_hand: true, ..Self::default() }
    }

    /// Refuses every row of `node`.
    pub(crate) fn refusing(node: &'static str) -> Self {
        Self { refuse: Some(node), ..Self::default() }
    }

    /// Acknowledges the rows of `node`.
    pub(crate) fn acknowledge(&self, node: &str) {
        let mut waiting = self.waiting.lock();
        let (now, later) = std::mem::take(&mut *waiting).into_iter().partition(|(row, _)| row.node == node);
        *waiting = later;
        drop(waiting);
        let now: Vec<Waiting> = now;
        assert!(!now.is_empty(), "no row of {node} waits");
        for (_, receipt) in now {
            let _ = receipt.send(Ok(()));
        }
    }

    /// `node.visit outcome` of each row.
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

/// A sink that keeps its pieces.
#[derive(Default)]
pub(crate) struct MemorySink {
    pub(crate) pieces: Mutex<Vec<String>>,
}

impl MemorySink {
    pub(crate) fn text(&self) -> String {
        self.pieces.lock().concat()
    }
}

#[async_trait]
impl TextSink for MemorySink {
    async fn write(&self, piece: &str) {
        tokio::task::yield_now().await;
        self.pieces.lock().push(piece.to_owned());
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

/// Nodes and edges as a graph; edges are `[from, to]`, or as they are written.
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

/// A run and all that it touches.
pub(crate) struct World {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) clock: ManualClock,
    pub(crate) inputs: Value,
    pub(crate) config: Map<String, Value>,
    pub(crate) recorded: Vec<RecordedStep>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(MemoryJournal::default())
    }

    pub(crate) fn with(journal: MemoryJournal) -> Self {
        Self {
            journal: Arc::new(journal),
            sink: Arc::default(),
            clock: ManualClock::new(noon()),
            inputs: json!({}),
            config: Map::new(),
            recorded: Vec::new(),
        }
    }

    pub(crate) fn inputs(mut self, inputs: Value) -> Self {
        self.inputs = inputs;
        self
    }

    pub(crate) fn config(mut self, name: &str, value: Value) -> Self {
        self.config.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn recorded(mut self, recorded: Vec<RecordedStep>) -> Self {
        self.recorded = recorded;
        self
    }

    /// Begins the run on a task of its own.
    pub(crate) fn begin(&self, plan: &Arc<Plan>) -> Begun {
        let input = RunInput {
            inputs: self.inputs.clone(),
            messages: vec![json!({"role": "user", "content": "hi"})],
            config: self.config.clone(),
            run: RunInfo {
                id: "run_1".into(),
                workflow_id: "wf_1".into(),
                thread_id: None,
                trigger: "api".into(),
            },
        };
        let (plan, journal, sink) = (Arc::clone(plan), Arc::clone(&self.journal), Arc::clone(&self.sink));
        let (clock, recorded) = (self.clock.clone(), self.recorded.clone());
        Begun(tokio::spawn(async move { execute(&plan, input, &recorded, &*journal, &*sink, &clock).await }))
    }

    /// Runs to the end, with the clock moved on whenever all wait.
    pub(crate) async fn run(&self, plan: &Arc<Plan>) -> Result<Value, RunError> {
        let begun = self.begin(plan);
        for _ in 0..100_000 {
            settle().await;
            if begun.over() {
                return begun.end().await;
            }
            self.clock.advance(Duration::from_millis(100));
        }
        panic!("the run does not end");
    }
}

pub(crate) struct Begun(tokio::task::JoinHandle<Result<Value, RunError>>);

impl Begun {
    pub(crate) fn over(&self) -> bool {
        self.0.is_finished()
    }

    pub(crate) async fn end(self) -> Result<Value, RunError> {
        self.0.await.unwrap()
    }
}

/// Lets every task go as far as it can (the test runtime has one thread).
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// What an instance that takes the run over reads from the journal's first rows.
pub(crate) fn recorded(rows: &[StepRecord]) -> Vec<RecordedStep> {
    rows.iter()
        .map(|row| RecordedStep {
            node: row.node.clone(),
            visit: row.visit,
            result: match &row.outcome {
                StepOutcome::Succeeded { result, .. } => Some(result.clone()),
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

/// The machine's clock after it was set back: wall time before `noon`, monotonic time as ever.
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
