//! Inspects a graph: its problems, its warnings and the names that its caller looks up, all within one deadline.

mod code;
mod providers;

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock as _, SystemClock};
use sandbox::{Sandbox, SandboxError};
use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::addresses::address_warnings;
use crate::compile::{self, CredentialUse, credentials, place, warnings};
use crate::effects::references;
use crate::execute::Plan;
use crate::graph::Graph;
use crate::graph::parse::{read_graph, too_large};
use crate::meter::{self, Excess};
use crate::references::Reference;

/// Maximum time of an inspection: waiting, compiling, and checking code.
const TIME: Duration = Duration::from_secs(5);

/// All findings about a graph.
pub struct Inspection {
    /// The plan, or all problems.
    pub checked: Result<Plan, Problems>,
    /// Warnings about joins; empty if the graph has problems.
    pub joins: Problems,
    /// Warnings about addresses that receive a secret.
    pub addresses: Problems,
    /// The secrets that the graph names, in node order.
    pub credentials: Vec<CredentialUse>,
    /// The workflows that the graph names, in node order.
    pub references: Vec<Reference>,
}

/// The end of an inspection.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    /// Started with the inspection.
    clock: SystemClock,
    limit: Duration,
}

impl Deadline {
    fn new(limit: Duration) -> Self {
        Self { clock: SystemClock::new(), limit }
    }

    /// The time that is left.
    pub(super) fn left(self) -> Duration {
        self.limit.saturating_sub(self.clock.monotonic())
    }

    /// The problem of a graph whose inspection reached the deadline.
    pub(super) fn too_slow(self, pointer: &str) -> FieldError {
        let message = format!("the check took longer than {} s", self.limit.as_secs_f64());
        FieldError::new(pointer, "too_slow", message).suggest("split the workflow")
    }

    /// The problem of a graph whose inspection reached a limit.
    fn exceeded(self, excess: Excess) -> FieldError {
        match excess {
            Excess::Time(_) => self.too_slow(""),
            _ => FieldError::new("", "too_slow", "the check needs too much memory")
                .suggest("shorten the names, or split the workflow"),
        }
    }
}

/// The findings that need no worker.
struct Compiled {
    inspection: Inspection,
    /// The graph; `None` if it is unreadable or the check reached a limit.
    graph: Option<Graph>,
    /// Problems with model providers.
    problems: Problems,
}

impl Compiled {
    fn failed(problem: FieldError) -> Self {
        let inspection = Inspection {
            checked: Err(vec![problem]),
            joins: Problems::new(),
            addresses: Problems::new(),
            credentials: Vec::new(),
            references: Vec::new(),
        };
        Self { inspection, graph: None, problems: Problems::new() }
    }
}

/// Checks a graph, its code and its model providers, and collects its warnings and names. Ends after 5 s, which include
/// the wait for a thread or a worker. A graph that needs more has the problem `too_slow`.
///
/// # Errors
/// [`SandboxError`] if no thread or worker can check the graph now.
pub async fn inspect(document: Arc<Value>, sandbox: &Sandbox) -> Result<Inspection, SandboxError> {
    inspect_within(TIME, document, sandbox).await
}

async fn inspect_within(
    limit: Duration,
    document: Arc<Value>,
    sandbox: &Sandbox,
) -> Result<Inspection, SandboxError> {
    let deadline = Deadline::new(limit);
    let work = move |left| {
        let compiled = meter::within(left, || compiled(&document, deadline));
        // The caller gets its document back without a copy.
        drop(document);
        compiled
    };
    let compiled = match sandbox.compute_within(deadline.left(), work).await {
        Err(SandboxError::Timeout(_)) => Compiled::failed(deadline.too_slow("")),
        compiled => compiled?,
    };
    let Compiled { mut inspection, graph, mut problems } = compiled;
    if let Some(graph) = graph {
        problems.extend(code::check(graph, sandbox, deadline).await?);
    }
    if !problems.is_empty() {
        let mut all = inspection.checked.err().unwrap_or_default();
        all.extend(problems);
        all.sort_by_cached_key(|problem| (place(&problem.pointer), problem.code.clone()));
        inspection.checked = Err(all);
    }
    Ok(inspection)
}

fn compiled(document: &Value, deadline: Deadline) -> Compiled {
    // Nothing else may copy or search it.
    if let Some(problem) = too_large(document) {
        return Compiled::failed(problem);
    }
    let checked = compile::check(document);
    // Its problems are in `checked`.
    let graph = read_graph(document, &mut Problems::new());
    let problems = graph.as_ref().map(providers::check).unwrap_or_default();
    let credentials = credentials(document);
    let addresses = address_warnings(document, &credentials);
    let (joins, references) = (warnings(document), references(document));
    match meter::excess() {
        Some(excess) => Compiled::failed(deadline.exceeded(excess)),
        None => {
            let inspection = Inspection { checked, joins, addresses, credentials, references };
            Compiled { inspection, graph, problems }
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbox::Options;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn sandbox() -> Sandbox {
        Sandbox::new(Options::new(std::env::var_os("CALLBOARD_BIN").unwrap_or_default().into()))
    }

    fn graph(modules: &Value) -> Arc<Value> {
        let node = json!({"name": "n", "type": "template", "template": "{{ inputs.x }}"});
        let edges = json!([{"from": "START", "to": "n"}, {"from": "n", "to": "END"}]);
        Arc::new(json!({"format": "graph/1", "modules": modules, "nodes": [node], "edges": edges}))
    }

    fn lines(inspection: Inspection) -> Vec<String> {
        let problems = inspection.checked.err().unwrap_or_default();
        problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
    }

    #[tokio::test]
    async fn a_check_that_reaches_its_deadline_is_too_slow() {
        let sandbox = sandbox();
        let ended = inspect_within(Duration::ZERO, graph(&json!({})), &sandbox).await;
        assert_eq!(lines(ended.unwrap()), [" too_slow"]);
        let ended = meter::within(Duration::ZERO, || compiled(&graph(&json!({})), Deadline::new(TIME)));
        let problem = ended.inspection.checked.err().unwrap().remove(0);
        assert_eq!(problem.message, "the check took longer than 5 s");
    }

    #[tokio::test]
    async fn values_are_counted_before_a_graph_is_compiled() {
        let sandbox = Sandbox::new(Options::new("/nonexistent".into()));
        let mut large = Value::clone(&graph(&json!({})));
        let headers = json!({"a": vec!["[[x]]"; 250_000]});
        large["nodes"] = json!([{"name": "n", "type": "http_request", "headers": headers}]);
        let ended = inspect(Arc::new(large), &sandbox).await.unwrap();
        assert!(ended.credentials.is_empty());
        assert_eq!(lines(ended), [" too_large"]);
    }

    #[tokio::test]
    async fn code_is_checked_within_the_deadline_of_the_whole_check() {
        let clock = SystemClock::new();
        let modules = json!({"a.js": "for (;;) {}", "b.js": "for (;;) {}", "c.js": "for (;;) {}"});
        let ended = inspect_within(Duration::from_millis(500), graph(&modules), &sandbox()).await;
        let lines = lines(ended.unwrap());
        assert!(lines.len() == 1 && lines[0].ends_with(" too_slow"), "{lines:?}");
        assert!(clock.monotonic() < Duration::from_secs(2), "{:?}", clock.monotonic());
    }

    #[tokio::test]
    async fn a_check_waits_for_a_thread_until_its_deadline() {
        let sandbox = sandbox();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(parking_lot::Mutex::new(held));
        let mut busy = Vec::new();
        for owner in [1, 1, 2, 3] {
            let (sandbox, held) = (sandbox.for_owner(Uuid::from_u128(owner)), Arc::clone(&held));
            busy.push(tokio::spawn(async move { sandbox.compute(move || held.lock().recv()).await }));
            tokio::task::yield_now().await;
        }
        let other = sandbox.for_owner(Uuid::from_u128(4));
        let ended = inspect_within(Duration::from_millis(200), graph(&json!({})), &other).await;
        assert!(matches!(ended.err(), Some(SandboxError::Busy { .. })));
        drop(release);
        for ended in busy {
            ended.await.unwrap();
        }
        assert!(inspect(graph(&json!({})), &other).await.unwrap().checked.is_ok());
    }
}
