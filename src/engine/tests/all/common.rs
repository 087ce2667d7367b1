//! Common node fields: limits, retries, error paths, attempts with an unknown outcome, caching.

use chrono::TimeDelta;
use engine::ports::StepOutcome;
use models::{ModelError, ModelErrorKind};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, delay, graph, plan, reply, template};
use crate::world::{World, recorded, refused, settle};

fn ask(name: &str, more: Value) -> Value {
    let mut node = json!({"name": name, "type": "llm", "model": "test/x", "user": "?"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn busy() -> Result<(), ModelError> {
    Err(ModelError { kind: ModelErrorKind::Unavailable, message: "busy".into(), retry_after: None })
}

/// The waits in milliseconds between the attempts of a node that always fails.
async fn waits(retry: Value) -> Vec<i64> {
    let mut world = World::new();
    for _ in 0..20 {
        world = world.answers(&[], busy());
    }
    world.run(&plan(&alone(&ask("a", json!({"retry": retry}))))).await.unwrap_err();
    let rows = world.journal.rows.lock();
    let ends = rows.iter().map(|row| match &row.outcome {
        StepOutcome::Failed { finished_at, .. } => *finished_at,
        _ => panic!("{row:?}"),
    });
    rows.iter().skip(1).zip(ends).map(|(next, end)| (next.started_at - end).num_milliseconds()).collect()
}

#[tokio::test]
async fn waits_between_attempts_grow_as_configured() {
    assert_eq!(waits(json!({"jitter": false})).await, [500, 1_000]);
    assert_eq!(
        waits(json!({"jitter": false, "max_attempts": 6, "initial_delay_seconds": 1, "backoff": 3,
                     "max_delay_seconds": 10}))
        .await,
        [1_000, 3_000, 9_000, 10_000, 10_000]
    );
    assert_eq!(waits(json!({"jitter": false, "backoff": 1, "max_attempts": 4})).await, [500, 500, 500]);
    assert_eq!(waits(json!({"jitter": false, "initial_delay_seconds": 0})).await, [0, 0]);
    assert_eq!(waits(json!({"max_attempts": 1})).await, Vec::<i64>::new());
    let jittered =
        waits(json!({"max_attempts": 20, "initial_delay_seconds": 6, "max_delay_seconds": 6})).await;
    assert_eq!(jittered.len(), 19);
    // The test's clock moves in tenths of a second.
    assert!(jittered.iter().all(|wait| (3_000..=6_100).contains(wait)), "{jittered:?}");
    assert!(jittered.iter().any(|wait| *wait != jittered[0]), "{jittered:?}");
}

#[tokio::test]
async fn a_deterministic_failure_is_not_retried() {
    let mut node = template("a", "{{ inputs.x }}");
    node["retry"] = json!({"max_attempts": 5});
    let world = World::new();
    world.run(&plan(&alone(&node))).await.unwrap_err();
    assert_eq!(world.journal.lines(), ["1 a.1 failed"]);
}

#[tokio::test]
async fn a_failure_in_another_branch_ends_the_wait_for_a_retry() {
    let world = World::new().answers(&[], busy());
    let nodes = json!([
        ask("again", json!({"retry": {"initial_delay_seconds": 3600, "max_delay_seconds": 3600}})),
        ask("bad", json!({"model": "test/x/", "timeout_seconds": 0.5, "retry": {"max_attempts": 1}})),
    ]);
    let world = world.answers(&["late"], Ok(()));
    let error =
        world.run(&plan(&graph(nodes, json!([["START", "again"], ["START", "bad"]])))).await.unwrap_err();
    assert_eq!(
        (error.code, error.node.as_deref()),
        (ErrorCode::NodeTimeout, Some("bad")),
        "not the waiting one"
    );
    assert_eq!(world.clock.sleepers(), 0);
}

#[tokio::test]
async fn on_error_chooses_the_next_node_after_a_failure() {
    let bad = |on_error: Value| {
        let mut node = template("bad", "{{ inputs.x }}");
        node["on_error"] = on_error;
        node["state"] = json!({"written": 1});
        node
    };
    let ran = async |on_error: Value| {
        let nodes =
            json!([bad(on_error), template("next", ""), template("rescue", "{{ results.bad.error.code }}")]);
        let mut graph =
            graph(nodes, json!([["START", "bad"], ["bad", "next"], ["next", "END"], ["rescue", "END"]]));
        graph["state"] = json!({"written": {"merge": "sum"}});
        if graph["nodes"][0]["on_error"].get("to").is_none() {
            graph["edges"].as_array_mut().unwrap().push(json!({"from": "START", "to": "rescue"}));
            graph["nodes"][2]["template"] = json!("");
        }
        graph["output"] = json!({"ran": "{{ results | list | sort }}", "bad": "{{ results.bad }}",
                                 "rescue": "{{ results.rescue | default(none) }}", "written": "{{ state.written }}"});
        World::new().run(&plan(&graph)).await
    };
    let error = ran(json!("fail")).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("bad")));
    let went_on = ran(json!("continue")).await.unwrap();
    assert_eq!((&went_on["ran"], &went_on["written"]), (&json!(["bad", "next", "rescue"]), &json!(0)));
    assert_eq!(went_on["bad"]["error"]["code"], json!("node.failed"));
    assert!(went_on["bad"]["error"]["message"].as_str().unwrap().contains("inputs.x"));
    let diverted = ran(json!({"to": "rescue"})).await.unwrap();
    assert_eq!(diverted["ran"], json!(["bad", "rescue"]), "the edges of the node are not followed");
    assert_eq!(diverted["rescue"], json!({"text": "node.failed"}));
}

#[tokio::test]
async fn on_error_may_lead_to_the_end() {
    let mut node = template("bad", "{{ inputs.x }}");
    node["on_error"] = json!({"to": "END"});
    let nodes = json!([node, template("next", "")]);
    let output =
        World::new().run(&plan(&graph(nodes, json!([["START", "bad"], ["bad", "next"]])))).await.unwrap();
    assert_eq!(output["bad"]["error"]["code"], json!("node.failed"));
    assert_eq!(output.as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn a_node_that_leads_elsewhere_does_not_complete_a_join() {
    let mut bad = template("bad", "{{ inputs.x }}");
    bad["on_error"] = json!({"to": "rescue"});
    let nodes = json!([bad, template("good", ""), template("join", ""), template("rescue", "r")]);
    let edges = json!([["START", "bad"], ["START", "good"], {"from": ["bad", "good"], "to": "join"}, ["rescue", "END"]]);
    let world = World::new();
    let output = world.run(&plan(&graph(nodes, edges))).await.unwrap();
    assert_eq!(output, json!({"rescue": {"text": "r"}}));
    assert_eq!(world.journal.lines(), ["1 bad.1 failed", "1 good.1 succeeded", "2 rescue.1 succeeded"]);
}

#[tokio::test]
async fn an_attempt_interrupted_by_a_crash_is_repeated_or_failed() {
    for (on_unknown, calls) in [(json!(null), 1), (json!("retry"), 1), (json!("fail"), 0)] {
        let node = ask("a", json!({"on_unknown": on_unknown, "state": {}}));
        let nodes = json!([
            node,
            reply(
                "after",
                "{% if results.a.error is defined %}{{ results.a.error.code }}{% else %}fine{% endif %}"
            )
        ]);
        let mut graph = graph(nodes, json!([["START", "a"], ["a", "after"]]));
        graph["nodes"][0]["on_error"] = json!("continue");
        let graph = plan(&graph);
        let first = World::new().answers(&["x"], Ok(()));
        let run = first.begin(&graph);
        settle().await;
        run.drop_it();
        let rows = first.journal.rows.lock().clone();
        assert_eq!(
            rows.len(),
            usize::from(calls == 0),
            "only steps that must not be repeated are recorded before they start"
        );
        let again = World::new().recorded(recorded(&rows));
        again.run(&graph).await.unwrap();
        assert_eq!(again.model.requests.lock().len(), calls);
        assert_eq!(again.sink.text(), if calls == 0 { "node.outcome_unknown" } else { "fine" });
        let noted = again.journal.rows.lock();
        assert!(calls == 1 || noted[0].started_at == rows[0].started_at);
    }
}

#[tokio::test]
async fn waits_and_containers_continue_after_a_crash_for_every_on_unknown() {
    for policy in ["fail", "ask"] {
        let mut wait = delay("wait", 3_600);
        let mut each = json!({"name": "each", "type": "for_each", "items": [1],
            "body": {"type": "delay", "seconds": 7_200, "on_unknown": policy}});
        for node in [&mut wait, &mut each] {
            node["on_unknown"] = json!(policy);
        }
        let nodes = json!([wait, each]);
        let graph = plan(&graph(nodes, json!([["START", "wait"], ["START", "each"]])));
        let first = World::new();
        let run = first.begin(&graph);
        settle().await;
        assert!(first.activity.idle().is_some(), "it only waits");
        run.drop_it();
        let rows = first.journal.rows.lock().clone();
        let later = World::new().recorded(recorded(&rows));
        let run = later.begin(&graph);
        settle().await;
        assert!(later.activity.idle().is_some(), "{policy}: {:?}", later.journal.lines());
        assert!(later.journal.rows.lock().iter().all(|row| row.question.is_none()));
        run.drop_it();
    }
}

#[tokio::test]
async fn an_attempt_interrupted_by_a_crash_asks_a_question() {
    for (answer, calls, end) in [("retry", 1, "fine"), ("fail", 0, "node.outcome_unknown")] {
        let node = ask("a", json!({"on_unknown": "ask", "on_error": "continue", "state": {}}));
        let reply_text = "{{ results.a.error.code if results.a.error is defined else 'fine' }}";
        let graph =
            plan(&graph(json!([node, reply("after", reply_text)]), json!([["START", "a"], ["a", "after"]])));
        let first = World::new().answers(&["x"], Ok(()));
        let run = first.begin(&graph);
        settle().await;
        run.drop_it();
        let mut rows = first.journal.rows.lock().clone();
        assert_eq!(rows.len(), 1, "its start is noted");
        // A run that only asks.
        let asking = World::new().recorded(recorded(&rows));
        let run = asking.begin(&graph);
        settle().await;
        run.drop_it();
        settle().await;
        let question_rows = asking.journal.rows.lock().clone();
        assert_eq!(
            (question_rows.len(), question_rows[0].question.as_ref().unwrap().key.as_str()),
            (1, "unknown:a")
        );
        assert_eq!(asking.activity.idle(), None, "dropped, it waits for nothing");
        rows.extend(question_rows);
        let again = World::new().recorded(recorded(&rows));
        again.answers.give("a.1~1", json!(answer));
        again.run(&graph).await.unwrap();
        assert_eq!(again.model.requests.lock().len(), calls);
        assert_eq!(again.sink.text(), end);
        // Cut at any row, the question is not repeated, and nothing is done twice.
        let written = again.journal.rows.lock().clone();
        let failed =
            written.iter().position(|row| matches!(row.outcome, StepOutcome::Failed { .. })).unwrap();
        rows.extend(written[..=failed].iter().cloned());
        let third = World::new().recorded(recorded(&rows));
        third.run(&graph).await.unwrap();
        assert_eq!((third.model.requests.lock().len(), third.sink.text().as_str()), (calls, end));
    }
}

#[tokio::test]
async fn a_patch_changes_the_state_before_its_step_and_repeats_no_recorded_step() {
    let counting = |name: &str| {
        let mut node = template(name, "{{ state.n }}");
        node["state"] = json!({"n": 1});
        node
    };
    let nodes = json!([counting("a"), counting("b"), counting("c")]);
    let mut document = graph(nodes, json!([["START", "a"], ["a", "b"], ["b", "c"], ["c", "END"]]));
    document["state"] = json!({"n": {"merge": "sum"}});
    document["output"] = json!("{{ state.n }}");
    let graph = plan(&document);
    let first = World::new();
    assert_eq!(first.run(&graph).await, Ok(json!(3)));
    let state = |n: i32| json!({"n": n}).as_object().unwrap().clone();
    for (step, expected) in [(1, json!(13)), (2, json!(12)), (3, json!(11)), (4, json!(3))] {
        let rows = first.journal.rows.lock().clone();
        let kept: Vec<_> = rows.into_iter().filter(|row| row.step < step).collect();
        let mut again = World::new().recorded(recorded(&kept));
        again.patch = Some(engine::Patch { step, state: state(10) });
        assert_eq!(again.run(&graph).await, Ok(expected), "before step {step}");
        assert_eq!(again.journal.rows.lock().len(), 3 - kept.len());
    }
    assert!(graph.check_patch(&state(1), "/patch").is_empty());
    let problems = graph.check_patch(json!({"m": 1, "zebra": 2}).as_object().unwrap(), "/patch");
    let lines: Vec<String> = problems
        .iter()
        .map(|p| format!("{} {} {}", p.pointer, p.code, p.suggestion.as_ref().unwrap()))
        .collect();
    assert_eq!(
        lines,
        ["/patch/m unknown_channel did you mean 'n'?", "/patch/zebra unknown_channel channels: n"]
    );
}

#[tokio::test]
async fn a_timeout_counts_from_the_first_known_start() {
    let slow = json!({"name": "d", "type": "delay", "seconds": 100, "timeout_seconds": 10});
    let graph = plan(&alone(&slow));
    let first = World::new();
    let run = first.begin(&graph);
    settle().await;
    run.drop_it();
    let again = World::new().recorded(recorded(&first.journal.rows.lock()));
    again.clock.advance(std::time::Duration::from_secs(9));
    let run = again.begin(&graph);
    settle().await;
    assert!(!run.has_ended());
    again.clock.advance(std::time::Duration::from_secs(1));
    settle().await;
    assert_eq!(run.end().await.unwrap_err().code, ErrorCode::NodeTimeout);
}

#[tokio::test]
async fn only_successful_pure_results_are_cached() {
    let mut node = json!({"name": "a", "type": "transform", "path": "$.n", "input": "{{ inputs }}", "cache_seconds": 60});
    let world = World::new().inputs(json!({"n": 1}));
    for _ in 0..3 {
        assert_eq!(world.run(&plan(&alone(&node))).await, Ok(json!(1)));
    }
    node["path"] = json!("$.m");
    assert_eq!(
        world.run(&plan(&alone(&node))).await,
        Ok(json!(null)),
        "another node, although the input is the same"
    );
    assert_eq!(world.journal.lines(), ["1 a.1 succeeded"; 4], "each visit has its row");
    let failing = json!({"name": "a", "type": "assert", "when": "inputs.n > 1", "cache_seconds": 60});
    for _ in 0..2 {
        assert!(world.run(&plan(&alone(&failing))).await.is_err());
    }
}

#[tokio::test]
async fn rows_contain_attempts_and_their_times() {
    let world = World::new().answers(&["half"], busy()).answers(&["ok"], Ok(()));
    world.run(&plan(&alone(&ask("a", json!({"retry": {"jitter": false}}))))).await.unwrap();
    let rows = world.journal.rows.lock();
    assert_eq!(rows.iter().map(|row| (row.visit, row.attempt)).collect::<Vec<_>>(), [(1, 1), (1, 2)]);
    assert_eq!(rows[0].input_digest, rows[1].input_digest);
    assert_eq!(rows[1].started_at - rows[0].started_at, TimeDelta::milliseconds(1_500));
}

#[test]
fn common_fields_have_limits() {
    let with = |name: &str, value: Value| {
        let mut node = delay("n", 1);
        node[name] = value;
        refused(&node)
    };
    for (name, value, problem) in [
        ("timeout_seconds", json!(86_401), "/timeout_seconds range"),
        ("timeout_seconds", json!(0.0005), "/timeout_seconds range"),
        ("retry", json!({"max_attempts": 21}), "/retry/max_attempts range"),
        ("retry", json!({"initial_delay_seconds": -1}), "/retry/initial_delay_seconds range"),
        ("retry", json!({"max_delay_seconds": 3_601}), "/retry/max_delay_seconds range"),
        ("retry", json!({"backoff": 0.5}), "/retry/backoff range"),
        ("retry", json!({"backoff": 11}), "/retry/backoff range"),
        ("on_error", json!("ignore"), "/on_error choice"),
        ("on_error", json!({"to": "n"}), "/on_error/to self"),
        ("on_unknown", json!(true), "/on_unknown choice"),
        ("cache_seconds", json!(60), "/cache_seconds not_pure"),
        ("description", json!(["x"]), "/description type"),
        ("state", json!({"no": 1}), "/state/no unknown_channel"),
    ] {
        assert_eq!(with(name, value.clone()), [problem], "{name} = {value}");
    }
    let mut pure = template("n", "");
    pure["cache_seconds"] = json!(2_592_001);
    assert_eq!(refused(&pure), ["/cache_seconds range"]);
    for (name, value) in
        [("description", json!("For people.")), ("on_unknown", json!("fail")), ("retry", json!({}))]
    {
        assert_eq!(with(name, value), Vec::<String>::new());
    }
}
