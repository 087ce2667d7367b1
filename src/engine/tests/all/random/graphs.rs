//! Random graphs, and a model whose answers depend only on the request.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::{StepOutcome, StepRecord};
use kernel::{Clock, ManualClock};
use models::{Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Pieces};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::ports::{delay, graph, reply, template};

/// `say/<anything>`: a call's answer depends on its key and its number of failures; its time depends on `timing`.
pub(super) struct Oracle {
    answers: u64,
    timing: u64,
    clock: ManualClock,
    /// Failed attempts by key, including those before a restart.
    failed: Mutex<BTreeMap<String, u32>>,
    called: Mutex<BTreeSet<String>>,
}

impl Oracle {
    pub(super) fn new(answers: u64, timing: u64, rows: &[StepRecord], clock: &ManualClock) -> Self {
        let mut failed = BTreeMap::new();
        for row in rows.iter().filter(|row| matches!(row.outcome, StepOutcome::Failed { .. })) {
            *failed.entry(format!("run_1-{}-{}", row.node, row.visit)).or_default() += 1;
        }
        let called = Mutex::default();
        Self { answers, timing, clock: clock.clone(), failed: Mutex::new(failed), called }
    }

    pub(super) fn called(&self) -> BTreeSet<String> {
        self.called.lock().clone()
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[async_trait]
impl Model for Oracle {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let key = request.idempotency_key.clone().unwrap_or_default();
        let before = self.failed.lock().get(&key).copied().unwrap_or_default();
        self.called.lock().insert(key.clone());
        let content = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        let answer = hash((self.answers, &key, &content, before));
        let wait = || self.clock.sleep(Duration::from_millis(100 * (hash((self.timing, &key, before)) % 7)));
        wait().await;
        pieces.piece("so ").await;
        let kind = match answer % 8 {
            0 => Some(ModelErrorKind::Rejected),
            1 | 2 => Some(ModelErrorKind::Unavailable),
            _ => None,
        };
        if let Some(kind) = kind {
            *self.failed.lock().entry(key).or_default() += 1;
            return Err(ModelError { kind, message: format!("no: {answer}"), retry_after: None });
        }
        wait().await;
        let text = format!("so {}", answer % 10);
        pieces.piece(&text[3..]).await;
        Ok(ModelAnswer { text, ..ModelAnswer::default() })
    }
}

fn ask(name: &str, stream: bool) -> Value {
    json!({"name": name, "type": "llm", "model": "say/x", "user": "{{ results | length }}", "stream": stream,
           "retry": {"max_attempts": 3, "initial_delay_seconds": 0.2}})
}

/// The workflow that others call: it asks a model, replies, loops and may fail.
pub(super) fn inner() -> Value {
    let nodes = json!([ask("a", true), ask("b", false), reply("c", "({{ state.n }})"), delay("d", 0.2)]);
    let again = json!({"from": ["b", "c"], "cases": [{"when": "state.n < 2", "to": "a"}], "else": "d"});
    let mut graph = graph(nodes, json!([["START", "a"], ["a", "b"], ["a", "c"], again, ["d", "END"]]));
    graph["nodes"][0]["on_error"] = json!("continue");
    graph["nodes"][2]["state"] = json!({"n": 1});
    graph["state"] = json!({"n": {"merge": "sum"}});
    graph["output"] = json!({"n": "{{ state.n }}", "results": "{{ results }}"});
    graph
}

/// Builds a node of this kind.
fn node(name: &str, kind: u8, more: u8) -> Value {
    let each = |body: Value| {
        // If one of several concurrent entries fails, timing decides which others still finish and which failure is
        // reported.
        let (policy, concurrency) =
            if more.is_multiple_of(4) { ("fail", 1) } else { ("continue", 1 + more % 3) };
        json!({"name": name, "type": "for_each", "items": [1, 2, 3], "concurrency": concurrency, "body": body,
               "on_item_error": policy})
    };
    let body = |mut node: Value| {
        node.as_object_mut().unwrap().remove("name");
        node
    };
    match kind {
        0 => template(name, "{{ results | length }}"),
        1 => ask(name, false),
        2 => ask(name, true),
        3 => delay(name, f64::from(more % 5) / 10.0),
        4 => {
            json!({"name": name, "type": "reply", "text": format!("{name} says {{{{ results | length }}}} "),
                    "pieces": "words", "pause_ms": 100})
        }
        5 => each(body(ask("", more.is_multiple_of(2)))),
        6 => each(body(match more % 3 {
            0 => reply("", "{{ item }}, "),
            1 => delay("", 0.2),
            _ => json!({"type": "assert", "when": "item != 2"}),
        })),
        7 => {
            json!({"name": name, "type": "sub_workflow", "workflow": "inner", "inputs": {"n": "{{ results | length }}"},
                    "retry": {"max_attempts": 1 + more % 2}})
        }
        8 => each(json!({"type": "sub_workflow", "workflow": "inner"})),
        9 => json!({"name": name, "type": "assert", "when": format!("results | length != {}", more % 4)}),
        _ => json!({"name": name, "type": "reply", "text": "and ", "new_message": true}),
    }
}

/// A valid graph of any shape: a path with extra edges, joins, choices and loops.
pub(super) fn random_graph() -> impl Strategy<Value = Value> {
    let node = (0..11_u8, any::<u8>(), 0..6_u8, 0..8_usize, 0..4_u8);
    let edge = (0..8_usize, 0..8_usize, 0..8_usize, 0..5_u8);
    (prop::collection::vec(node, 1..7), prop::collection::vec(edge, 0..6)).prop_map(|(kinds, extra)| {
        let count = kinds.len();
        let name = |index: usize| format!("n{}", index % count);
        let nodes: Vec<Value> = kinds
            .iter()
            .enumerate()
            .map(|(index, (kind, more, on_error, to, writes))| {
                let mut node = self::node(&name(index), *kind, *more);
                node["on_error"] = match on_error {
                    0 => json!("fail"),
                    1 if to % count != index => json!({"to": name(*to)}),
                    _ => json!("continue"),
                };
                node["state"] = match writes {
                    0 => json!({}),
                    1 => json!({"log": name(index), "n": "{{ state.n + 1 }}"}),
                    2 => json!({"log": format!("{{{{ results.{} }}}}", name(index)), "last": name(index)}),
                    _ => json!({"n": index, "least": index, "most": "{{ results | length }}",
                                "map": {name(index): "{{ state.log | length }}"}}),
                };
                node
            })
            .collect();
        let mut edges = vec![json!(["START", "n0"])];
        edges.extend((1..count).map(|index| json!([name(index - 1), name(index)])));
        edges.push(json!([name(count - 1), "END"]));
        for (a, b, c, shape) in extra {
            let (a, b, c) = (name(a), name(b), name(c));
            edges.push(match shape {
                0 => json!([a, "END"]),
                1 if a != b => json!({"from": [a, b], "to": c}),
                2 => json!({"from": a, "cases": [{"when": "state.n % 3 == 1", "to": b}], "else": c}),
                3 => json!({"from": a, "cases": [{"when": "state.log | length < 3", "to": b}, {"when": "true", "to": "END"}]}),
                _ => json!([a, b]),
            });
        }
        let mut graph = graph(json!(nodes), json!(edges));
        graph["state"] = json!({"log": {"merge": "append"}, "n": {"merge": "sum"}, "least": {"merge": "min"},
                                "most": {"merge": "max"}, "map": {"merge": "merge"}, "last": {}});
        graph["output"] = json!({"state": "{{ state }}", "results": "{{ results }}"});
        graph
    })
}

/// A random graph with a few members removed, misspelt or changed in type.
pub(super) fn wild_graph() -> impl Strategy<Value = Value> {
    let change = (any::<prop::sample::Index>(), 0..8_u8);
    (random_graph(), prop::collection::vec(change, 0..3)).prop_map(|(mut graph, changes)| {
        for (place, kind) in changes {
            let mut pointers = Vec::new();
            crate::panics::pointers(&graph, "", &mut pointers);
            let at = place.get(&pointers).clone();
            let Some(value) = graph.pointer_mut(&at) else { continue };
            match (kind, value) {
                (0, value) => *value = Value::Null,
                (1, value) => *value = json!(-1),
                (2, Value::String(text)) => text.push('x'),
                (3, Value::String(text)) => *text = format!("{{{{ {text} }}}}"),
                (4, Value::Object(members)) => {
                    members.insert("more".to_owned(), json!(1));
                }
                (5, Value::Array(items)) => items.truncate(1),
                (6, Value::Array(items)) => items.extend(items.clone()),
                (_, _) => {}
            }
        }
        graph
    })
}
