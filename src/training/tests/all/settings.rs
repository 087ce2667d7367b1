//! Request settings for answers and prices: shared, from earlier runs, or neither; list prices or own prices.

use std::time::Duration;

use futures_util::FutureExt;
use models::Price;
use serde_json::{Value, json};
use training::CaseRun;
use training::calls::{BudgetLimits, RecordedCall, RunPrices, nanodollars};
use training::request::read_evaluation;

use crate::world::{Answer, Begin, World, asking, llm, plan};

fn one() -> engine::Plan {
    plan(&[llm("ask", "{{ inputs.message }}")], "{{ results.ask.text }}")
}

fn sent(world: &World) -> usize {
    world.model.requests.lock().len()
}

/// Prices of the model `test/test` at the operator's endpoint.
fn prices() -> RunPrices {
    let price = json!({"input": 1_000, "output": 10_000});
    let evaluation = json!({"dataset": {"cases": [{"inputs": {}}]},
        "evaluators": [{"id": "e", "entrypoint": "builtin:exact_match"}],
        "models": {"judge": {"model": "openai/own", "prices": price}}});
    let mut problems = Vec::new();
    let read = read_evaluation(&evaluation, "", &mut problems);
    read.unwrap_or_else(|| panic!("{problems:?}")).settings.models.prices()
}

#[test]
fn request_prices_override_list_prices() {
    let prices = prices();
    let own = Price { input: 1_000.0, cached: None, output: 10_000.0, text_only: false };
    assert_eq!(prices.find("openai/own", None), Some(own));
    assert_eq!(prices.find("openai/own", Some("https://models.example/v1")), None);
    assert_eq!(prices.find("openai/gpt-4.1-mini", None), models::list_price("openai/gpt-4.1-mini"));
}

#[tokio::test]
async fn a_case_whose_model_has_no_price_has_no_cost() {
    let world = World::new();
    let ran = world.run(&one(), &asking(0, "x")).await;
    assert_eq!((ran.cost, world.calls.usage().cost_usd), (None, 0.0));
    let still = plan(&[json!({"name": "say", "type": "template", "template": "x"})], "x");
    assert_eq!(world.run(&still, &asking(0, "x")).await.cost, Some(0), "no unknown outcome without a call");
    let practice = json!({"name": "ask", "type": "llm", "model": "practice/assistant", "user": "x"});
    assert_eq!(world.run(&plan(&[practice], "x"), &asking(0, "x")).await.cost, Some(0));
}

/// A world whose model has this price.
fn priced(limits: BudgetLimits) -> World {
    World::with(Begin { limits, prices: crate::world::priced(1_000.0, 10_000.0), ..Begin::default() })
}

#[tokio::test]
async fn call_cost_is_reserved_before_and_settled_after_the_call() {
    // A call reports 10 input and 2 output tokens, and may have 1,024.
    let each = nanodollars(10.0 * 0.001 + 2.0 * 0.01);
    let world = priced(BudgetLimits { max_cost: Some(each + nanodollars(10.3)), ..BudgetLimits::default() });
    let first = world.run(&one(), &asking(0, "a")).await;
    assert_eq!((first.error, first.cost), (None, Some(each)));
    assert_eq!(nanodollars(world.calls.usage().cost_usd), each);
    // The rest pays for one more call with the largest answer.
    assert_eq!(world.run(&one(), &asking(1, "b")).await.error, None);
    let short = priced(BudgetLimits { max_cost: Some(nanodollars(10.2)), ..BudgetLimits::default() });
    assert!(short.run(&one(), &asking(0, "a")).await.error.is_some());
    assert_eq!((sent(&short), short.calls.usage().llm_calls), (0, 0), "nothing is sent that might cost more");
}

async fn twice(world: &World) -> Vec<CaseRun> {
    let mut runs = Vec::new();
    for index in 0..2 {
        runs.push(world.run(&one(), &asking(index, "same")).await);
    }
    runs
}

#[tokio::test]
async fn without_a_cache_answers_are_not_shared_but_a_resumed_run_sends_nothing() {
    let world = World::with(Begin { shares_answers: false, ..Begin::default() });
    let runs = twice(&world).await;
    assert_eq!((sent(&world), world.calls.usage().cached_calls), (2, 0));
    let recorded = world.recorded.0.lock().clone();
    let resumed = World::with(Begin { shares_answers: false, recorded, ..Begin::default() });
    assert_eq!(twice(&resumed).await, runs);
    assert_eq!(sent(&resumed), 0);
    // A case that is executed again in the same process finds its own answers.
    assert_eq!(resumed.run(&one(), &asking(0, "same")).await.output, "same");
    assert_eq!(sent(&resumed), 0);
}

#[tokio::test]
async fn an_answer_of_an_earlier_run_is_recorded_and_free() {
    let first = World::with(Begin { prices: crate::world::priced(1.0, 1.0), ..Begin::default() });
    let before = first.run(&one(), &asking(0, "same")).await;
    let earlier = first.recorded.0.lock().clone();
    let limits = BudgetLimits { max_llm_calls: Some(0), ..BudgetLimits::default() };
    let begin = || Begin { prices: crate::world::priced(1.0, 1.0), limits, ..Begin::default() };
    let later = World::with(Begin { earlier, ..begin() });
    let ran = later.run(&one(), &asking(0, "same")).await;
    // The case keeps its cost, the run pays nothing.
    assert_eq!((&ran.output, ran.cost), (&before.output, before.cost));
    let usage = later.calls.usage();
    assert_eq!((sent(&later), usage.llm_calls, usage.cached_calls, usage.cost_usd), (0, 0, 1, 0.0));
    let recorded: Vec<RecordedCall> = later.recorded.0.lock().clone();
    assert_eq!(recorded.iter().map(|call| call.attempts).collect::<Vec<_>>(), [0]);
    // A resumed run no longer depends on the earlier one.
    let resumed = World::with(Begin { recorded, ..begin() });
    assert_eq!(resumed.run(&one(), &asking(0, "same")).await.output, ran.output);
    assert_eq!(sent(&resumed), 0);
    // Without a hit the budget counts.
    assert!(resumed.run(&one(), &asking(1, "other")).await.error.is_some());
}

#[tokio::test]
async fn a_replayed_call_takes_its_recorded_time() {
    let world = World::new();
    let first = world.run(&one(), &asking(0, "same")).await;
    assert_eq!(first.duration, Duration::ZERO);
    let mut recorded = world.recorded.0.lock().clone();
    recorded[0].duration = Duration::from_secs(3);
    let world = World::with(Begin { recorded, ..Begin::default() });
    assert_eq!(world.run(&one(), &asking(1, "same")).await.duration, Duration::from_secs(3));
}

#[tokio::test]
async fn long_requests_are_recorded_as_in_flight() {
    let world = World::new().scripted(vec![Answer::Hangs, Answer::Hangs]);
    let (a, b) = (asking(0, "a"), asking(1, "b"));
    let plan = one();
    let mut both = Box::pin(futures_util::future::join(world.run(&plan, &a), world.run(&plan, &b)));
    let mut in_flight = Vec::new();
    for _ in 0..40 {
        assert!((&mut both).now_or_never().is_none());
        tokio::task::yield_now().await;
        in_flight.clone_from(&world.recorded.2.lock());
        if in_flight.is_empty() && sent(&world) == 2 {
            world.clock.advance(Duration::from_millis(100));
        }
    }
    assert_eq!(in_flight, [1, 2], "once each");
    drop(both);
    assert_eq!(*world.recorded.2.lock(), [1, 2, 1, 0], "including the rows of cancelled calls");
    assert_eq!(world.recorded.1.lock().len(), 2);
    // A request that is answered at once is not recorded as in flight.
    world.run(&plan, &asking(2, "c")).await;
    assert_eq!(world.recorded.2.lock().len(), 4);
}

#[test]
fn one_model_has_one_price() {
    let optimizer = |prices: Value| {
        json!({"dataset": {"cases": [{"inputs": {}}]},
        "evaluators": [{"id": "e", "entrypoint": "builtin:exact_match"}],
        "optimizer": {"models": {"optimizer": {"model": "openai/own", "prices": {"input": 1, "output": 2}}, "judge": prices}}})
    };
    for (judge, expected) in [
        (json!({"model": "openai/own", "prices": {"input": 1, "output": 2}}), &[][..]),
        (
            json!({"model": "openai/own", "base_url": "https://models.example", "prices": {"input": 1, "output": 3}}),
            &[],
        ),
        (
            json!({"model": "openai/own", "prices": {"input": 1, "output": 3}}),
            &["/optimizer/models/judge/prices conflict"],
        ),
    ] {
        let mut problems = Vec::new();
        training::request::read_training(&optimizer(judge.clone()), "", &mut problems);
        let found: Vec<String> = problems.iter().map(|it| format!("{} {}", it.pointer, it.code)).collect();
        assert_eq!(found, expected, "{judge}");
    }
}
