//! Calls of a run: seeds, shared answers, budgets, endpoint failures.

use std::time::Duration;

use serde_json::{Value, json};
use training::calls::{Amount, BudgetLimits, Reply};
use training::{CaseError, CaseRun};

use crate::world::{Answer, Begin, World, asking, case, llm, plan};

fn two() -> engine::Plan {
    plan(
        &[llm("first", "{{ inputs.message }}"), llm("second", "{{ results.first.text }}!")],
        "{{ results.second.text }}",
    )
}

/// The requests to the model, without redundant keys.
fn sent(world: &World) -> Vec<Value> {
    world.model.requests.lock().iter().map(|request| serde_json::to_value(request).unwrap()).collect()
}

async fn ran(world: &World) -> (Vec<CaseRun>, Vec<Value>) {
    let plan = two();
    let mut runs = Vec::new();
    for index in 0..3 {
        runs.push(world.run(&plan, &asking(index, &format!("case {index}"))).await);
    }
    (runs, sent(world))
}

#[tokio::test]
async fn two_runs_with_one_seed_send_the_same_bytes() {
    let (first, second) = (ran(&World::new()).await, ran(&World::new()).await);
    assert_eq!(first, second);
    assert_eq!(first.0[2].output, "case 2!");
    let keys = |world: &World| -> Vec<String> {
        world.model.requests.lock().iter().map(|request| request.idempotency_key.clone().unwrap()).collect()
    };
    let (one, two) = (World::new(), World::new());
    assert_eq!((ran(&one).await, keys(&one)), (ran(&two).await, keys(&two)));
    let other = ran(&World::with(Begin { seed: 7, ..Begin::default() })).await;
    assert_ne!(first.1, other.1);
    // Each place in the graph has its own seed, for all cases.
    let seeds: Vec<&Value> = first.1.iter().map(|request| &request["seed"]).collect();
    assert_eq!((seeds[0], seeds[1]), (seeds[2], seeds[3]));
    assert_ne!(seeds[0], seeds[1]);
    assert!(seeds.iter().all(|seed| seed.as_u64().unwrap() < 1 << 53));
}

#[tokio::test]
async fn each_run_has_the_same_time_and_ids_in_templates() {
    let say = json!({"name": "say", "type": "template", "template": "{{ now() }} {{ uuid() }}"});
    let plan = plan(
        &[
            json!({"name": "wait", "type": "delay", "seconds": 60}),
            say,
            llm("ask", "{{ now() }} {{ uuid() }}"),
        ],
        "{{ results.say.text }} {{ results.ask.text }}",
    );
    let first = World::new();
    let done = first.run(&plan, &asking(0, "x")).await;
    let second = World::new();
    second.clock.advance(Duration::from_secs(3_600));
    let again = second.run(&plan, &asking(0, "x")).await;
    assert_eq!((&done.output, sent(&first)), (&again.output, sent(&second)));
    assert!(done.output.as_str().unwrap().starts_with("2026-03-01T12:00:00"), "{}", done.output);
}

#[tokio::test]
async fn equal_requests_share_one_answer_and_repeats_do_not() {
    let world = World::new();
    let plan = plan(&[llm("ask", "{{ inputs.message }}")], "{{ results.ask.text }}");
    let (a, b) = (asking(0, "same"), asking(1, "same"));
    let (a, b) = futures_util::join!(world.run(&plan, &a), world.run(&plan, &b));
    assert_eq!((a.output, b.output), (json!("same"), json!("same")));
    let usage = world.calls.usage();
    assert_eq!((usage.llm_calls, usage.cached_calls, usage.by_role.task), (1, 1, 1));
    world.sample(&plan, &asking(0, "same"), 1).await;
    assert_eq!(world.calls.usage().llm_calls, 2);
    let requests = world.model.requests.lock();
    assert_ne!(requests[0].seed, requests[1].seed);
}

#[tokio::test]
async fn a_node_seed_replaces_the_run_seed() {
    let mut node = llm("ask", "x");
    node["seed"] = json!(5);
    let seeds = async |seed| {
        let world = World::with(Begin { seed, ..Begin::default() });
        world.run(&plan(&[node.clone()], "x"), &asking(0, "x")).await;
        let requests = world.model.requests.lock();
        requests[0].seed
    };
    assert_eq!(seeds(1).await, seeds(2).await);
    assert_ne!(seeds(1).await, Some(5), "repeats differ nonetheless");
}

#[tokio::test]
async fn recorded_calls_are_answered_without_a_request() {
    let world = World::new();
    let (runs, _) = ran(&world).await;
    let recorded = world.recorded.0.lock().clone();
    assert_eq!(recorded.len(), 6);
    assert!(recorded.iter().all(|call| matches!(&call.reply, Reply::Answer(_)) && call.attempts == 1));
    let resumed = World::with(Begin { recorded, ..Begin::default() });
    let (again, sent) = ran(&resumed).await;
    assert_eq!((runs, sent), (again, vec![]));
    // They keep the counts from the process that made them.
    assert_eq!((resumed.calls.usage().llm_calls, resumed.calls.usage().cached_calls), (0, 0));
}

#[tokio::test]
async fn a_budget_is_never_exceeded() {
    for (limits, calls) in [
        (BudgetLimits { max_llm_calls: Some(3), ..BudgetLimits::default() }, 3),
        // Each call reserves the maximum answer, and uses 12.
        (BudgetLimits { max_tokens: Some(1_060), ..BudgetLimits::default() }, 3),
        (BudgetLimits { max_llm_calls: Some(0), ..BudgetLimits::default() }, 0),
    ] {
        let world = World::with(Begin { limits, ..Begin::default() });
        let (runs, sent) = ran(&world).await;
        let counted = usize::try_from(world.calls.usage().llm_calls).unwrap();
        assert_eq!((sent.len(), counted), (calls, calls), "{limits:?}");
        let exhausted = runs.iter().filter(|ran| ran.error == Some(CaseError::Exhausted)).count();
        assert_eq!(exhausted, 3 - calls / 2, "{runs:?}");
    }
}

#[tokio::test]
async fn a_node_cannot_hide_a_spent_budget() {
    let mut node = llm("ask", "x");
    node["on_error"] = json!("continue");
    let limits = BudgetLimits { max_llm_calls: Some(0), ..BudgetLimits::default() };
    let world = World::with(Begin { limits, ..Begin::default() });
    let ran = world.run(&plan(&[node], "done"), &asking(0, "x")).await;
    assert_eq!((ran.error, ran.output), (Some(CaseError::Exhausted), Value::Null));
}

#[tokio::test]
async fn a_rate_limit_is_a_pause_not_a_failure() {
    let answers =
        vec![Answer::Refuses(None), Answer::Refuses(Some(Duration::from_secs(50))), Answer::Text("late")];
    let world = World::new().scripted(answers);
    let ran = world
        .run_while_time_passes(&plan(&[llm("ask", "x")], "{{ results.ask.text }}"), &asking(0, "x"))
        .await;
    assert_eq!((ran.output, ran.error), (json!("late"), None));
    // Pauses do not count as the case's time, which is at most 30 s.
    assert!(ran.duration < Duration::from_secs(5), "{:?}", ran.duration);
    let usage = world.calls.usage();
    assert_eq!((usage.llm_calls, usage.retries, usage.input_tokens), (3, 2, 10));
    assert_eq!(
        world.recorded.0.lock()[0].used,
        Amount { calls: 3, input_tokens: 10, output_tokens: 2, nanodollars: 0 }
    );
}

#[tokio::test]
async fn a_pause_does_not_count_for_the_node_timeout() {
    let mut node = llm("ask", "x");
    node["timeout_seconds"] = json!(5);
    let world =
        World::new().scripted(vec![Answer::Refuses(Some(Duration::from_secs(60))), Answer::Text("late")]);
    let ran = world.run_while_time_passes(&plan(&[node], "{{ results.ask.text }}"), &asking(0, "x")).await;
    assert_eq!((ran.output, ran.error), (json!("late"), None));
}

#[tokio::test]
async fn a_rate_limit_of_an_earlier_call_does_not_count_for_a_later_one() {
    let plan = plan(&[llm("ask", "{{ inputs.message }}")], "{{ results.ask.text }}");
    let world = World::new().scripted(vec![Answer::Refuses(None), Answer::Hangs]);
    assert_eq!(world.run_while_time_passes(&plan, &asking(0, "a")).await.error, Some(CaseError::Timeout));
    world.clock.advance(Duration::from_secs(7_200));
    world.model.script.lock().extend([Answer::Refuses(None), Answer::Text("there")]);
    assert_eq!(world.run_while_time_passes(&plan, &asking(1, "b")).await.output, "there");
}

#[tokio::test]
async fn an_unavailable_endpoint_is_called_three_times() {
    let answers = (0..3).map(|_| Answer::IsDown).collect();
    let world = World::new().scripted(answers);
    let ran = world.run_while_time_passes(&plan(&[llm("ask", "x")], "x"), &asking(0, "x")).await;
    let Some(CaseError::Failed(error)) = &ran.error else { panic!("{ran:?}") };
    assert_eq!((error.code.as_str(), error.node.as_deref()), ("model.unavailable", Some("ask")));
    // Node attempts do not multiply them.
    assert_eq!((world.calls.usage().llm_calls, world.calls.usage().retries), (3, 2));
    assert!(world.recorded.0.lock().is_empty(), "a failure is not an answer");
    let unanswered: Vec<(u32, u64)> =
        world.recorded.1.lock().iter().map(|call| (call.attempts, call.used.calls)).collect();
    assert_eq!(unanswered, [(3, 3)], "its requests count after a crash, too");
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let world = World::with(Begin { concurrency: 2, ..Begin::default() })
        .scripted((0..9).map(|_| Answer::Hangs).collect());
    let plan = plan(&[llm("ask", "{{ inputs.message }}")], "x");
    let cases: Vec<_> = (0..5).map(|index| asking(index, &format!("{index}"))).collect();
    let mut running: futures_util::stream::FuturesUnordered<_> =
        cases.iter().map(|case| world.run(&plan, case)).collect();
    for _ in 0..50 {
        assert!(futures_util::poll!(futures_util::StreamExt::next(&mut running)).is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!(world.model.requests.lock().len(), 2);
}

#[tokio::test]
async fn a_cancelled_call_counts_with_its_input() {
    let world = World::new().scripted(vec![Answer::Hangs]);
    let ran = world
        .run_while_time_passes(
            &plan(&[llm("ask", "x".repeat(400).as_str())], "x"),
            &case(0, &json!({}), &json!({})),
        )
        .await;
    assert_eq!(ran.error, Some(CaseError::Timeout));
    let usage = world.calls.usage();
    assert_eq!(
        (usage.llm_calls, usage.input_tokens, usage.output_tokens, usage.estimated),
        (1, 100, 0, true)
    );
    let unanswered = world.recorded.1.lock();
    assert_eq!(
        (unanswered[0].attempts, unanswered[0].used.calls, unanswered[0].used.input_tokens),
        (1, 1, 100)
    );
}
