//! Random graphs: each is refused with reasons or runs to its end; neither timing nor a crash changes its result.

mod graphs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::ports::{StepOutcome, StepRecord};
use engine::{Plan, RunError};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::plan;
use crate::world::{World, recorded};
use graphs::{Oracle, inner, random_graph, wild_graph};

const STEPS: u32 = 8;
/// Maximum crash points per run.
const CRASHES: usize = 24;

/// The number of cases, unless `PROPTEST_CASES` is set.
fn cases(usual: u32) -> ProptestConfig {
    let configured = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: configured.unwrap_or(usual), ..ProptestConfig::default() }
}

struct Ran {
    end: Result<Value, RunError>,
    text: String,
    rows: Vec<StepRecord>,
    called: BTreeSet<String>,
}

/// Runs a graph after these earlier rows. `answers` seeds the answers, and `timing` their order.
fn run(plan: &Arc<Plan>, answers: u64, timing: u64, rows: &[StepRecord]) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut world = world(timing, rows);
    let oracle = Arc::new(Oracle::new(answers, timing, rows, &world.clock));
    world.models = models::Models::default().with("say", oracle.clone());
    let end = runtime.block_on(world.run(plan));
    let rows = world.journal.rows.lock().clone();
    Ran { end, text: world.sink.text(), rows, called: oracle.called() }
}

fn world(timing: u64, rows: &[StepRecord]) -> World {
    World::new()
        .workflow("inner", &inner())
        .config("recursion_limit", json!(STEPS))
        .config("max_concurrency", json!(1 + timing % 5))
        .recorded(recorded(rows))
}

/// Returns the rebuilt inputs of these rows' steps.
fn refill(plan: &Arc<Plan>, timing: u64, rows: &[StepRecord]) -> BTreeMap<String, Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(world(timing, rows).refill(plan))
}

type AttemptOutcomes = BTreeMap<(String, u32, u32), String>;

/// Lists ended attempts in the journal, without times.
///
/// Skips steps inside a failed attempt: which of them still finish depends on timing.
fn ended(rows: &[StepRecord]) -> AttemptOutcomes {
    let outcome = |row: &StepRecord| match &row.outcome {
        StepOutcome::Started => None,
        StepOutcome::Succeeded { result, .. } => Some(result.clone()),
        StepOutcome::Failed { error, .. } => Some(error.to_string()),
    };
    let failed: Vec<String> = rows
        .iter()
        .filter(|row| matches!(row.outcome, StepOutcome::Failed { .. }))
        .map(|row| {
            let visit = if row.visit > 1 { format!("#{}", row.visit) } else { String::new() };
            let attempt = if row.attempt > 1 { format!("~{}", row.attempt) } else { String::new() };
            format!("{}{visit}{attempt}", row.node)
        })
        .collect();
    let inside = |row: &StepRecord, outer: &String| {
        row.node.strip_prefix(outer).is_some_and(|rest| rest.starts_with(['/', '[']))
    };
    rows.iter()
        .filter(|row| !failed.iter().any(|outer| inside(row, outer)))
        .filter_map(|row| {
            let line = format!("{} {:?} {}", row.step, row.input_digest, outcome(row)?);
            Some(((row.node.clone(), row.visit, row.attempt), line))
        })
        .collect()
}

/// Lists rows that differ between two journals or are missing in one.
fn other_than(one: &AttemptOutcomes, two: &AttemptOutcomes) -> Vec<String> {
    let names: BTreeSet<_> = one.keys().chain(two.keys()).collect();
    let other = names.into_iter().filter(|name| one.get(name) != two.get(name));
    other.map(|name| format!("{name:?}: {:?} / {:?}", one.get(name), two.get(name))).collect()
}

fn done(rows: &[StepRecord]) -> BTreeSet<(&str, u32)> {
    let succeeded = |row: &&StepRecord| matches!(row.outcome, StepOutcome::Succeeded { .. });
    rows.iter().filter(succeeded).map(|row| (row.node.as_str(), row.visit)).collect()
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_graph_is_rejected_with_reasons_or_ends(graph in wild_graph(), answers: u64) {
        match engine::check(&graph) {
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(graph.pointer(&problem.pointer).is_some() || problem.code == "required", "{:?}", problem);
                    prop_assert!(problem.suggestion.is_some(), "{:?}", problem);
                }
            }
            Ok(plan) => {
                let ran = run(&Arc::new(plan), answers, 0, &[]);
                prop_assert!(ran.rows.iter().all(|row| row.step <= STEPS));
                if let Err(error) = ran.end {
                    prop_assert!(error.code != ErrorCode::Internal, "{}", error);
                    prop_assert!(error.node.is_some() || error.code == ErrorCode::RunRecursionLimit || error.code == ErrorCode::NodeFailed);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn timing_does_not_change_the_result(graph in random_graph(), answers: u64, timings in prop::collection::vec(any::<u64>(), 1..4)) {
        let plan = plan(&graph);
        let first = run(&plan, answers, 0, &[]);
        for timing in timings {
            let again = run(&plan, answers, timing, &[]);
            // In a failed run, which other steps still finish depends on timing.
            prop_assert_eq!(first.end.is_ok(), again.end.is_ok());
            if first.end.is_ok() {
                prop_assert_eq!(&first.end, &again.end);
                prop_assert_eq!(&first.text, &again.text);
                prop_assert_eq!(other_than(&ended(&first.rows), &ended(&again.rows)), Vec::<String>::new());
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn inputs_are_reconstructed_from_the_journal(graph in random_graph(), answers: u64, timing: u64) {
        let plan = plan(&graph);
        let ran = run(&plan, answers, timing, &[]);
        let found = refill(&plan, timing, &ran.rows);
        for row in ran.rows.iter().filter(|row| row.input_digest != [0; 32]) {
            prop_assert!(found.contains_key(&format!("{} {}", row.node, row.visit)), "{} {}", row.node, row.visit);
        }
    }
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn a_crash_after_any_row_does_not_change_the_result(
        graph in random_graph(),
        answers: u64,
        timing: u64,
        other: u64,
        crashes in prop::collection::vec(any::<prop::sample::Index>(), CRASHES),
    ) {
        let plan = plan(&graph);
        let first = run(&plan, answers, timing, &[]);
        // Testing a crash after each row of a long run would take minutes.
        let crashes: BTreeSet<usize> = if first.rows.len() <= CRASHES {
            (0..=first.rows.len()).collect()
        } else {
            crashes.iter().map(|crash| crash.index(first.rows.len() + 1)).collect()
        };
        for crash in crashes {
            let rows = &first.rows[..crash];
            let again = run(&plan, answers, other, rows);
            prop_assert_eq!(first.end.is_ok(), again.end.is_ok(), "after {} rows", crash);
            if first.end.is_ok() {
                prop_assert_eq!(&first.end, &again.end, "after {} rows", crash);
                prop_assert_eq!(&first.text, &again.text, "after {} rows", crash);
            }
            for (node, visit) in done(rows) {
                prop_assert!(!again.rows.iter().any(|row| row.node == node && row.visit == visit), "{} runs again", node);
                prop_assert!(!again.called.contains(&format!("run_1-{node}-{visit}")), "{} is called again", node);
            }
        }
    }
}
