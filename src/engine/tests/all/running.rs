//! Runs: order, concurrency, joins, branches, loops, limits, failures.

use std::time::Duration;

use engine::ports::{JournalError, StepOutcome};
use kernel::Clock;
use models::{ModelError, ModelErrorKind};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{MemoryJournal, alone, delay, graph, noon, plan, reply, template};
use crate::world::{World, settle};

/// Runs nodes and edges to the end; returns output and journal.
async fn ran(nodes: Value, edges: Value, inputs: Value) -> (Value, Vec<String>) {
    let world = World::new().inputs(inputs);
    let output = world.run(&plan(&graph(nodes, edges))).await.unwrap();
    (output, world.journal.lines())
}

#[tokio::test]
async fn steps_run_in_order_and_write_rows() {
    let nodes = json!([template("a", "A"), template("b", "{{ results.a.text }}B"), delay("c", 1)]);
    let edges = json!([["START", "a"], ["a", "b"], ["b", "c"], ["c", "END"], ["b", "END"]]);
    let (output, rows) = ran(nodes, edges, json!({})).await;
    assert_eq!(output, json!({"b": {"text": "AB"}, "c": {"seconds": 1.0}}));
    assert_eq!(rows, ["1 a.1 succeeded", "2 b.1 succeeded", "3 c.1 started", "3 c.1 succeeded"]);
}

#[tokio::test]
async fn no_step_depends_on_an_unacknowledged_row() {
    let world = World::with(MemoryJournal::by_hand());
    let nodes = json!([template("a", "A"), reply("b", "said"), template("c", "C")]);
    let edges = json!([["START", "a"], ["START", "c"], {"from": ["a", "c"], "to": "b"}, ["b", "END"]]);
    let run = world.begin(&plan(&graph(nodes, edges)));
    settle().await;
    assert_eq!(world.journal.lines(), ["1 a.1 succeeded", "1 c.1 succeeded"]);
    world.journal.acknowledge("a");
    settle().await;
    assert_eq!(world.sink.text(), "", "the row of c is not acknowledged yet");
    world.journal.acknowledge("c");
    settle().await;
    assert_eq!(world.sink.text(), "said");
    assert!(run.has_ended(), "nothing depends on the last row, so nothing waits for it");
    assert_eq!(run.end().await, Ok(json!({"b": {"text": "said"}})));
}

/// A run may execute before its start is stored, as long as only its own rows depend on it.
#[tokio::test]
async fn external_effects_wait_for_the_stored_start() {
    let outside = [
        json!({"name": "out", "type": "llm", "model": "test/x", "user": "why?"}),
        json!({"name": "out", "type": "http_request", "method": "POST", "url": "http://127.0.0.1:1/", "idempotent": true}),
        json!({"name": "out", "type": "index_search", "index": "notes", "query": "why"}),
    ];
    for node in outside {
        let nodes = json!([reply("said", "first"), node]);
        let plan = plan(&graph(nodes, json!([["START", "said"], ["said", "out"], ["out", "END"]])));
        let world = World::with(MemoryJournal::early()).answers(&["so"], Ok(()));
        let run = world.begin(&plan);
        settle().await;
        assert_eq!(world.sink.text(), "first", "internal steps do not wait");
        assert!(!run.has_ended() && world.model.requests.lock().is_empty());
        world.journal.start_is(Err(JournalError("refused".into())));
        settle().await;
        assert!(run.has_ended() && world.model.requests.lock().is_empty());
        assert_eq!(run.end().await.unwrap_err().code, ErrorCode::Internal);
    }
    let node = json!({"name": "out", "type": "llm", "model": "test/x", "user": "why?"});
    let world = World::with(MemoryJournal::early()).answers(&["so"], Ok(()));
    world.journal.start_is(Ok(()));
    world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(world.model.requests.lock().len(), 1);
}

#[tokio::test]
async fn a_delay_starts_after_its_row_is_acknowledged() {
    let world = World::with(MemoryJournal::by_hand());
    let run = world.begin(&plan(&graph(json!([delay("d", 1)]), json!([["START", "d"], ["d", "END"]]))));
    settle().await;
    assert_eq!((world.journal.lines(), world.clock.sleepers()), (vec!["1 d.1 started".to_owned()], 0));
    world.journal.acknowledge("d");
    settle().await;
    assert_eq!(world.clock.sleepers(), 1);
    world.clock.advance(Duration::from_secs(1));
    settle().await;
    assert!(run.has_ended());
}

#[tokio::test]
async fn a_rejected_journal_row_is_an_internal_error() {
    for refused in ["a", "d"] {
        let world = World::with(MemoryJournal::refusing(refused));
        let nodes = json!([template("a", ""), delay("d", 1), template("z", "")]);
        let edges = json!([["START", "a"], ["a", "d"], ["d", "z"]]);
        let error = world.run(&plan(&graph(nodes, edges))).await.unwrap_err();
        assert_eq!((error.code, error.node), (ErrorCode::Internal, None));
    }
}

#[tokio::test]
async fn fan_out_is_concurrent_and_keeps_the_file_order() {
    let world = World::new();
    let nodes = json!([
        reply("last", "3"),
        {"name": "slow", "type": "reply", "text": "a b", "pieces": "words", "pause_ms": 1000},
        {"name": "quick", "type": "reply", "text": "c d", "pieces": "words", "pause_ms": 500},
        delay("one", 1),
        delay("two", 1),
    ]);
    let names = ["two", "quick", "slow", "one"];
    let mut edges: Vec<Value> = names.iter().map(|name| json!(["START", name])).collect();
    edges.push(json!({"from": names, "to": "last"}));
    edges.push(json!(["last", "END"]));
    let run = world.begin(&plan(&graph(nodes, json!(edges))));
    settle().await;
    assert_eq!(world.clock.sleepers(), 4);
    world.clock.advance(Duration::from_millis(500));
    settle().await;
    assert_eq!(
        (world.sink.text().as_str(), world.clock.sleepers()),
        ("a ", 3),
        "quick is held until slow has ended"
    );
    world.clock.advance(Duration::from_millis(500));
    settle().await;
    assert!(run.has_ended(), "all of it took one second");
    assert_eq!(world.sink.text(), "a bc d3");
}

#[tokio::test]
async fn a_join_waits_for_branches_of_different_lengths() {
    let nodes = json!([template("a", ""), template("b", ""), template("c", ""), template("j", "j")]);
    let edges =
        json!([["START", "a"], ["START", "b"], ["b", "c"], {"from": ["a", "c"], "to": "j"}, ["j", "END"]]);
    let (output, rows) = ran(nodes, edges, json!({})).await;
    assert_eq!(output, json!({"j": {"text": "j"}}));
    assert_eq!(rows, ["1 a.1 succeeded", "1 b.1 succeeded", "2 c.1 succeeded", "3 j.1 succeeded"]);
}

#[tokio::test]
async fn edges_of_the_same_step_share_one_visit() {
    let nodes = json!([template("a", ""), template("b", ""), template("j", "")]);
    let (_, rows) = ran(
        nodes.clone(),
        json!([["START", "a"], ["START", "b"], ["a", "j"], ["b", "j"], ["a", "j"]]),
        json!({}),
    )
    .await;
    assert_eq!(rows, ["1 a.1 succeeded", "1 b.1 succeeded", "2 j.1 succeeded"]);
    let (_, rows) = ran(nodes, json!([["START", "a"], ["a", "b"], ["a", "j"], ["b", "j"]]), json!({})).await;
    assert_eq!(rows, ["1 a.1 succeeded", "2 b.1 succeeded", "2 j.1 succeeded", "3 j.2 succeeded"]);
}

#[tokio::test]
async fn a_join_in_a_loop_starts_again_each_time() {
    let nodes = json!([
        template("s", ""),
        template("a", ""),
        template("b", ""),
        template("j", "{% if results.j is defined %}{{ results.j.text }}{% endif %}x"),
    ]);
    let again =
        json!({"from": "j", "cases": [{"when": "results.j.text|length < 3", "to": "s"}], "else": "END"});
    let edges = json!([["START", "s"], ["s", "a"], ["s", "b"], {"from": ["a", "b"], "to": "j"}, again]);
    let (output, rows) = ran(nodes, edges, json!({})).await;
    assert_eq!(output, json!({"j": {"text": "xxx"}}));
    assert_eq!(rows.len(), 12);
    assert_eq!(rows.last().unwrap(), "9 j.3 succeeded");
}

#[tokio::test]
async fn the_first_true_case_wins() {
    let nodes = json!([template("a", ""), template("one", "1"), template("two", "2"), template("rest", "r")]);
    let cases = json!([{"when": "inputs.n > 10", "to": "one"}, {"when": "inputs.n > 5", "to": "two"}]);
    let ends = |cases: Value| json!([["START", "a"], cases, ["one", "END"], ["two", "END"], ["rest", "END"]]);
    let chosen = ends(json!({"from": "a", "cases": cases, "else": "rest"}));
    for (n, expected) in [(11, "one"), (6, "two"), (1, "rest")] {
        let (output, _) = ran(nodes.clone(), chosen.clone(), json!({"n": n})).await;
        assert_eq!(output.as_object().unwrap().keys().collect::<Vec<_>>(), [expected]);
    }
    let mut edges = ends(json!({"from": "a", "cases": cases}));
    edges.as_array_mut().unwrap().push(json!({"from": "a", "cases": [{"when": "false", "to": "rest"}]}));
    let (output, rows) = ran(nodes, edges, json!({"n": 1})).await;
    assert_eq!((output, rows), (json!({}), vec!["1 a.1 succeeded".to_owned()]), "the branch ends quietly");
}

#[tokio::test]
async fn start_may_choose_and_may_lead_to_the_end() {
    let nodes = json!([template("a", "A"), template("b", "B")]);
    let choice = json!({"from": "START", "cases": [{"when": "inputs.n == 1", "to": "a"}], "else": "b"});
    let edges = json!([choice, ["a", "END"], ["b", "END"]]);
    assert_eq!(ran(nodes.clone(), edges.clone(), json!({"n": 1})).await.0, json!({"a": {"text": "A"}}));
    assert_eq!(ran(nodes.clone(), edges.clone(), json!({"n": 2})).await.0, json!({"b": {"text": "B"}}));
    assert_eq!(ran(json!([]), json!([["START", "END"]]), json!({})).await, (json!({}), vec![]));
    let error = World::new().run(&plan(&graph(nodes, edges))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_ref()), (ErrorCode::NodeFailed, None), "no node is at fault");
    assert!(error.message.contains("inputs.n == 1"), "{error}");
}

#[tokio::test]
async fn a_failing_condition_names_its_node() {
    let choice = json!({"from": "a", "cases": [{"when": "inputs.nobody == 1", "to": "END"}]});
    let world = World::new();
    let error = world
        .run(&plan(&graph(json!([template("a", "")]), json!([["START", "a"], choice]))))
        .await
        .unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("a")));
}

fn counting(until: u32) -> Value {
    let text = "{% if results.n is defined %}{{ results.n.text|int + 1 }}{% else %}1{% endif %}";
    let again = json!({"from": "n", "cases": [{"when": format!("results.n.text|int < {until}"), "to": "n"}], "else": "END"});
    graph(json!([template("n", text)]), json!([["START", "n"], again]))
}

#[tokio::test]
async fn loops_end_by_condition_or_by_limit() {
    let world = World::new();
    assert_eq!(world.run(&plan(&counting(50))).await, Ok(json!({"n": {"text": "50"}})));
    assert_eq!(world.journal.lines().last().unwrap(), "50 n.50 succeeded");
    let world = World::new();
    let error = world.run(&plan(&counting(51))).await.unwrap_err();
    assert_eq!((error.code, error.node), (ErrorCode::RunRecursionLimit, None));
    assert_eq!(world.journal.lines().len(), 50);
    let world = World::new().config("recursion_limit", json!(3));
    assert_eq!(world.run(&plan(&counting(3))).await, Ok(json!({"n": {"text": "3"}})));
    let error = world.run(&plan(&counting(4))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RunRecursionLimit);
    let world = World::new().config("recursion_limit", json!(250));
    assert!(world.run(&plan(&counting(250))).await.is_ok());
    for wrong in [json!(0), json!(251), json!(-1), json!("9"), json!(1.5), json!(u64::MAX)] {
        let world = World::new().config("recursion_limit", wrong);
        let error = world.run(&plan(&counting(1))).await.unwrap_err();
        assert!(error.message.contains("from 1 to 250"), "{error}");
        assert!(world.journal.lines().is_empty());
    }
}

#[tokio::test]
async fn a_slow_node_times_out() {
    let slow = json!({"name": "slow", "type": "delay", "seconds": 10, "timeout_seconds": 2.5});
    let (world, edges) = (World::new(), json!([["START", "slow"], ["slow", "END"]]));
    let run = world.begin(&plan(&graph(json!([slow]), edges)));
    settle().await;
    world.clock.advance(Duration::from_millis(2_499));
    settle().await;
    assert!(!run.has_ended());
    world.clock.advance(Duration::from_millis(1));
    settle().await;
    let error = run.end().await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeTimeout, Some("slow")));
    assert_eq!(error.message, "took longer than 2.5 s");
    assert_eq!(world.journal.lines(), ["1 slow.1 started", "1 slow.1 failed"]);
    assert_eq!(world.clock.sleepers(), 0, "the delay is cancelled");
}

#[tokio::test]
async fn an_unrenderable_template_fails_its_node() {
    let world = World::new();
    let nodes = json!([template("bad", "{{ inputs.missing }}"), template("next", "")]);
    let error =
        world.run(&plan(&graph(nodes, json!([["START", "bad"], ["bad", "next"]])))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("bad")));
    assert!(error.message.contains("inputs.missing"), "{error}");
    assert_eq!(world.journal.lines(), ["1 bad.1 failed"]);
}

#[tokio::test]
async fn a_failure_lets_working_nodes_finish_and_ends_waits() {
    let world = World::new();
    let nodes = json!([
        delay("wait", 9),
        {"name": "slow", "type": "reply", "text": "a b", "pieces": "words", "pause_ms": 1000},
        template("early", "{{ inputs.nothing }}"),
        template("next", ""),
    ]);
    let edges = json!([["START", "wait"], ["START", "early"], ["START", "slow"], ["slow", "next"]]);
    let error = world.run(&plan(&graph(nodes, edges))).await.unwrap_err();
    assert_eq!(error.node.as_deref(), Some("early"));
    assert_eq!(world.journal.lines(), ["1 wait.1 started", "1 early.1 failed", "1 slow.1 succeeded"]);
    assert_eq!(world.sink.text(), "a b");
    assert_eq!(
        world.clock.now(),
        noon() + chrono::TimeDelta::milliseconds(1_000),
        "no task waits for the wait"
    );
}

#[tokio::test]
async fn of_two_failed_nodes_the_first_in_the_file_is_reported() {
    let world = World::new().answers(&["half"], Err(rejected())).answers(&[], Err(rejected()));
    let ask = |name: &str| json!({"name": name, "type": "llm", "model": "test/x", "user": "?"});
    let edges = json!([["START", "late"], ["START", "early"]]);
    let error = world.run(&plan(&graph(json!([ask("late"), ask("early")]), edges))).await.unwrap_err();
    assert_eq!(world.journal.lines(), ["1 early.1 failed", "1 late.1 failed"]);
    assert_eq!(error.node.as_deref(), Some("late"), "also when another failed sooner");
}

fn rejected() -> ModelError {
    ModelError { kind: ModelErrorKind::Rejected, message: "no".into(), retry_after: None }
}

#[tokio::test]
async fn output_keeps_types() {
    let mut graph = graph(json!([template("a", "A")]), json!([["START", "a"], ["a", "END"]]));
    graph["output"] = json!({
        "list": "{{ inputs.list }}", "text": "n={{ inputs.n }}", "n": "{{ inputs.n }}", "null": "{{ none }}",
        "fixed": [1, true], "result": "{{ results.a }}", "config": "{{ config.x }}", "run": "{{ run.trigger }}",
        "said": "{{ messages[0].content }}", "map": "{{ {'a': {'b': 1}} }}", "thread": "{{ run.thread_id }}",
    });
    let world = World::new().inputs(json!({"list": [1, {"a": null}], "n": 3})).config("x", json!(0.5));
    assert_eq!(
        world.run(&plan(&graph)).await.unwrap(),
        json!({
            "list": [1, {"a": null}], "text": "n=3", "n": 3, "null": null, "fixed": [1, true],
            "result": {"text": "A"}, "config": 0.5, "run": "api", "said": "hi", "map": {"a": {"b": 1}},
            "thread": null,
        })
    );
    graph["output"] = json!("{{ results.a.text.b }}");
    let error = World::new().run(&plan(&graph)).await.unwrap_err();
    assert_eq!((error.code, error.node.as_ref()), (ErrorCode::NodeFailed, None));
    assert!(error.message.starts_with("output: "), "{error}");
}

#[tokio::test]
async fn without_an_output_field_nodes_that_reached_end_are_the_output() {
    let nodes = json!([template("a", "A"), template("b", "B"), template("c", "C"), template("d", "D")]);
    let edges = json!([
        ["START", "a"], ["START", "b"], ["START", "c"], ["c", "d"], {"from": ["a", "b"], "to": "END"}, ["a", "END"],
    ]);
    let (output, _) = ran(nodes, edges, json!({})).await;
    assert_eq!(output, json!({"a": {"text": "A"}, "b": {"text": "B"}}));
}

#[tokio::test]
async fn rows_contain_the_input_digest_and_the_times() {
    let world = World::new();
    let edges = json!([["START", "a"], ["START", "b"], ["START", "c"], ["a", "END"]]);
    let nodes = json!([template("a", "{{ 'x' }}"), template("b", "x"), template("c", "{{ 1 }}")]);
    world.run(&plan(&graph(nodes, edges))).await.unwrap();
    let rows = world.journal.rows.lock();
    assert_eq!(rows[0].input_digest, rows[1].input_digest);
    assert_ne!(rows[0].input_digest, rows[2].input_digest);
    assert_eq!((rows[0].attempt, rows[0].started_at), (1, noon()));
    assert_eq!(
        rows[2].outcome,
        StepOutcome::Succeeded { result: r#"{"text":"1"}"#.to_owned(), finished_at: noon() }
    );
}

#[tokio::test]
async fn a_delay_reads_its_length_from_a_template() {
    for (seconds, expected) in [("{{ inputs.n }}", 2.0), ("{{ inputs.n }}0", 20.0), ("3", 3.0)] {
        let nodes = json!([delay("d", seconds)]);
        let (output, _) = ran(nodes, json!([["START", "d"], ["d", "END"]]), json!({"n": 2})).await;
        assert_eq!(output, json!({"d": {"seconds": expected}}));
    }
    for wrong in [json!("soon"), json!(-1), json!(null), json!("inf"), json!(1e300)] {
        let nodes = json!([delay("d", "{{ inputs.n }}")]);
        let world = World::new().inputs(json!({"n": wrong}));
        let error = world.run(&plan(&graph(nodes, json!([["START", "d"]])))).await.unwrap_err();
        assert!(error.message.contains("not a delay"), "{error}");
    }
}

#[tokio::test]
async fn a_sub_workflow_runs_inside_its_node_on_the_same_journal() {
    let inner = json!({
        "format": "graph/1",
        "nodes": [template("greet", "Hello {{ inputs.who }}"), reply("say", "{{ results.greet.text }}!")],
        "edges": [{"from": "START", "to": "greet"}, {"from": "greet", "to": "say"}],
        "output": {"said": "{{ results.say.text }}"},
    });
    let call = json!({"name": "call", "type": "sub_workflow", "workflow": "greeter", "inputs": {"who": "{{ inputs.name }}"}});
    let outer = graph(
        json!([call, template("after", "{{ results.call.said }}")]),
        json!([["START", "call"], ["call", "after"], ["after", "END"]]),
    );
    let world = World::new().workflow("greeter", &inner).inputs(json!({"name": "Ada"}));
    let output = world.run(&plan(&outer)).await.unwrap();
    assert_eq!(output, json!({"after": {"text": "Hello Ada!"}}));
    assert_eq!(world.sink.text(), "Hello Ada!");
    let rows = world.journal.rows.lock();
    let ended: Vec<&str> = rows
        .iter()
        .filter(|row| !matches!(row.outcome, StepOutcome::Started))
        .map(|row| row.node.as_str())
        .collect();
    assert_eq!(ended, ["call/greet", "call/say", "call", "after"]);
}
