//! Runs that resume from an earlier journal.

use std::sync::Arc;
use std::time::Duration;

use engine::{Plan, RecordedStep};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{delay, graph, noon, plan, reply, template};
use crate::world::{SetBack, World, recorded, settle};

fn winding() -> Value {
    let nodes = json!([
        template("a", "{% if results.a is defined %}{{ results.a.text }}{% endif %}x"),
        reply("b", "b{{ results.a.text }} "),
        delay("d", 2),
        reply("j", "j{{ results.a.text|length }} "),
    ]);
    let again =
        json!({"from": "j", "cases": [{"when": "results.a.text|length < 3", "to": "a"}], "else": "END"});
    graph(nodes, json!([["START", "a"], ["a", "b"], ["a", "d"], {"from": ["b", "d"], "to": "j"}, again]))
}

#[tokio::test]
async fn a_crash_after_each_row_does_not_change_the_result() {
    let plan = plan(&winding());
    let first = World::new();
    let output = first.run(&plan).await.unwrap();
    assert_eq!(output, json!({"j": {"text": "j3 "}}));
    let rows = first.journal.rows.lock().clone();
    assert_eq!(rows.len(), 15);
    for crash in 0..=rows.len() {
        let again = World::new().recorded(recorded(&rows[..crash]));
        assert_eq!(again.run(&plan).await.unwrap(), output, "after {crash} rows");
        assert_eq!(again.sink.text(), first.sink.text(), "streamed text is written again");
        let finished = recorded(&rows[..crash]).iter().filter(|row| row.result.is_some()).count();
        let ran = recorded(&again.journal.rows.lock()).iter().filter(|row| row.result.is_some()).count();
        assert_eq!(finished + ran, 12, "finished steps do not run again");
    }
}

fn delayed(seconds: u32) -> Arc<Plan> {
    plan(&graph(json!([delay("d", seconds)]), json!([["START", "d"], ["d", "END"]])))
}

/// A journal in which the delay began at noon.
fn started_delay() -> Vec<RecordedStep> {
    vec![RecordedStep {
        node: "d".into(),
        visit: 1,
        attempt: 1,
        input_digest: [0; 32],
        result: None,
        error: None,
        note: None,
        started_at: noon(),
        finished_at: None,
    }]
}

#[tokio::test]
async fn a_resumed_delay_waits_only_for_the_remaining_time() {
    let world = World::new().recorded(started_delay());
    world.clock.advance(Duration::from_secs(7));
    let run = world.begin(&delayed(10));
    settle().await;
    world.clock.advance(Duration::from_millis(2_999));
    settle().await;
    assert!(!run.has_ended());
    world.clock.advance(Duration::from_millis(1));
    settle().await;
    assert_eq!(run.end().await, Ok(json!({"d": {"seconds": 10.0}})));
    assert!(
        world.journal.rows.lock().iter().all(|row| row.started_at == noon()),
        "the start time is unchanged"
    );
}

#[tokio::test]
async fn an_overdue_delay_does_not_wait() {
    let world = World::new().recorded(started_delay());
    world.clock.advance(Duration::from_secs(100));
    let run = world.begin(&delayed(10));
    settle().await;
    assert!(run.has_ended());
}

#[tokio::test]
async fn after_a_clock_was_set_back_a_delay_waits_at_most_its_full_length() {
    let world = World::new();
    let world = world.recorded(started_delay());
    let run = world.begin_with(&delayed(10), Arc::new(SetBack(world.clock.clone())));
    settle().await;
    assert_eq!(world.clock.sleepers(), 1);
    world.clock.advance(Duration::from_secs(10));
    settle().await;
    assert!(run.has_ended());
    assert!(run.end().await.is_ok());
}

#[tokio::test]
async fn a_failure_in_the_journal_is_final() {
    let slow = json!({"name": "d", "type": "delay", "seconds": 10, "timeout_seconds": 5});
    let plan = plan(&graph(json!([slow]), json!([["START", "d"], ["d", "END"]])));
    let first = World::new();
    let error = first.run(&plan).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeTimeout);
    let again = World::new().recorded(recorded(&first.journal.rows.lock()));
    again.clock.advance(Duration::from_secs(60));
    assert_eq!(again.run(&plan).await, Err(error), "although the delay is over by now");
    assert!(again.journal.lines().is_empty());
}

/// A small graph of any shape: a path with extra edges, joins, choices and loops.
fn small_graph() -> impl Strategy<Value = Value> {
    let node = 0..4_u8;
    let edge = (0..6_usize, 0..6_usize, 0..6_usize, 0..4_u8);
    (prop::collection::vec(node, 1..6), prop::collection::vec(edge, 0..6)).prop_map(|(kinds, extra)| {
        let count = kinds.len();
        let name = |index: usize| format!("n{}", index % count);
        let nodes: Vec<Value> = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| match kind {
                0 => template(&name(index), "{{ results|length }}"),
                1 => delay(&name(index), 0.3),
                2 => reply(&name(index), &format!("{index}:{{{{ results|length }}}} ")),
                _ => json!({"name": name(index), "type": "reply", "text": format!("{index} a b "),
                            "pieces": "words", "pause_ms": 100}),
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
                2 => json!({"from": a, "cases": [{"when": "results|length < 3", "to": b}], "else": c}),
                _ => json!([a, b]),
            });
        }
        graph(json!(nodes), json!(edges))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_crash_changes_the_outcome_of_a_run(graph in small_graph()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plan = plan(&graph);
        let first = World::new().config("recursion_limit", json!(6));
        let output = runtime.block_on(first.run(&plan));
        let rows = first.journal.rows.lock().clone();
        for crash in 0..=rows.len() {
            let again = World::new().config("recursion_limit", json!(6)).recorded(recorded(&rows[..crash]));
            prop_assert_eq!(&runtime.block_on(again.run(&plan)), &output);
            prop_assert_eq!(again.sink.text(), first.sink.text());
        }
    }
}

/// Its limit passed before the delay ended, however long the restart took.
#[tokio::test]
async fn a_limit_that_expired_before_a_delay_is_a_timeout_after_a_restart_too() {
    let mut node = delay("d", 5);
    node["timeout_seconds"] = json!(0.1);
    let plan = plan(&graph(json!([node]), json!([["START", "d"], ["d", "END"]])));
    let world = World::new().recorded(started_delay());
    world.clock.advance(Duration::from_secs(7));
    assert_eq!(world.run(&plan).await.unwrap_err().code, ErrorCode::NodeTimeout);
}
