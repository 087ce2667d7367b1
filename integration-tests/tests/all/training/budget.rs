//! Budgets: strict, exact, and shared by all roles.

use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::TestService;
use serde_json::{Value, json};

use super::model::{ModelServer, Reply, is_of_optimizer, wants_prompt};
use super::{Run, SEED, evaluation, only, payloads, training, workflow};

/// Tokens that the model reports per call.
const CALL: u64 = 7;

/// A model that is always wrong, and an optimizer that always proposes another text.
async fn hopeless_model() -> ModelServer {
    let texts = AtomicUsize::new(0);
    let reply = move |_, request: &Value| {
        let text = match (is_of_optimizer(request), wants_prompt(request)) {
            (_, true) => {
                let number = texts.fetch_add(1, Ordering::SeqCst);
                format!("<new_prompt>Sort the message well, in way {number}.</new_prompt>")
            }
            (true, _) => "It is too vague.".to_owned(),
            _ => "nothing".to_owned(),
        };
        // Long enough for calls to overlap.
        Reply::After(5, text)
    };
    ModelServer::start(reply).await
}

fn calls(usage: &Value) -> u64 {
    usage["llm_calls"].as_u64().unwrap()
}

/// Asserts that a run's usage equals the requests that the endpoint received, each counted once.
fn assert_exact(usage: &Value, sent: usize) {
    assert_eq!(usage["llm_calls"], sent, "{usage}");
    let roles = usage["by_role"].as_object().unwrap().values();
    assert_eq!(roles.map(|calls| calls.as_u64().unwrap()).sum::<u64>(), calls(usage), "{usage}");
    assert_eq!((&usage["retries"], &usage["lost_calls"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn a_training_sends_no_more_requests_than_its_budget_allows() {
    for (limit, concurrency) in [(80, 1), (100, 4), (177, 8)] {
        let model = hopeless_model().await;
        let t = model.service().await;
        let workflow = workflow(&t, "openai/test").await;
        let optimizer =
            json!({"epochs": 50, "max_concurrency": concurrency, "budget": {"max_llm_calls": limit}});
        let run = Run::start(&t.anonymous(), &workflow.id, &training(optimizer)).await;
        let events = run.events().await;
        let record = run.record().await;
        assert_eq!((&record["status"], &record["stop_reason"]), (&json!("succeeded"), &json!("budget")));
        assert_exact(&record["usage"], model.request_count());
        let used = calls(&record["usage"]);
        assert!(used <= limit && used > limit / 2, "{used} of {limit}");
        // All roles share the permits of the run, and the budget.
        assert!(model.most() <= concurrency, "{} calls at the same time", model.most());
        assert!(record["usage"]["by_role"]["optimizer"].as_u64().unwrap() > 0);
        let result = only(&events, "training_result");
        assert_eq!((&result["outcome"], &result["usage"]), (&json!("no_significant_gain"), &record["usage"]));
        assert_eq!(result["prompts"]["rules"], SEED, "the seed comes back");
        let left = &payloads(&events, "training_progress").last().unwrap()["progress"]["budget_left"];
        assert!(left["llm_calls"].as_u64().unwrap() <= limit && left["tokens"].is_null(), "{left}");
        // The returned prompts always have a checkpoint.
        let written = payloads(&events, "training_checkpoint").into_iter();
        assert!(written.map(|it| &it["metadata"]["candidate_id"]).any(|candidate| *candidate == 0));
    }
}

#[tokio::test]
async fn a_budget_ends_at_the_same_case_with_any_concurrency() {
    let mut executed = Vec::new();
    for concurrency in [1, 8] {
        let model = hopeless_model().await;
        let t = model.service().await;
        let workflow = workflow(&t, "openai/test").await;
        let budget = json!({"max_llm_calls": 111});
        let optimizer = json!({"epochs": 50, "max_concurrency": concurrency, "budget": budget});
        let run = Run::start(&t.anonymous(), &workflow.id, &training(optimizer)).await;
        let events = run.events().await;
        let mut keys: Vec<String> = payloads(&events, "training_progress")
            .into_iter()
            .map(|case| format!("{} {} {}", case["candidate_id"], case["case_index"], case["sample"]))
            .collect();
        keys.sort();
        executed.push(keys);
    }
    assert_eq!(executed[0], executed[1]);
}

#[tokio::test]
async fn a_token_budget_counts_the_usage_reported_by_the_endpoint() {
    let model = hopeless_model().await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    // Each call reserves 1,024 tokens for its reply, and uses seven.
    let optimizer = json!({"epochs": 50, "budget": {"max_tokens": 5_000}});
    let run = Run::start(&t.anonymous(), &workflow.id, &training(optimizer)).await;
    let record = run.becomes("succeeded").await;
    assert_eq!(record["stop_reason"], "budget");
    let usage = &record["usage"];
    let tokens = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!((tokens, &usage["estimated"]), (CALL * calls(usage), &json!(false)));
    assert!(tokens <= 5_000, "{usage}");
    assert_exact(usage, model.request_count());
}

/// Reservations of calls in flight are not spent: a budget that pays for all cases one by one also pays for concurrent
/// ones.
#[tokio::test]
async fn a_token_budget_covers_the_same_cases_with_any_concurrency() {
    for concurrency in [1, 4, 8] {
        let model = hopeless_model().await;
        let t = model.service().await;
        let workflow = workflow(&t, "openai/test").await;
        // 24 cases use 168 tokens. Each of them reserves more than 1,000.
        let more = json!({"max_concurrency": concurrency, "budget": {"max_tokens": 3_000}});
        let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(24, more)).await;
        let record = run.becomes("succeeded").await;
        assert_eq!(
            (&record["stop_reason"], model.request_count()),
            (&Value::Null, 24),
            "{concurrency} at the same time"
        );
    }
}

#[tokio::test]
async fn an_evaluation_ends_with_its_budget_and_scores_the_executed_cases() {
    let model = hopeless_model().await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let run =
        Run::start(&t.anonymous(), &workflow.id, &evaluation(24, json!({"budget": {"max_llm_calls": 10}})))
            .await;
    let events = run.events().await;
    let result = only(&events, "evaluation_result");
    assert_eq!((&result["stop_reason"], &result["n_cases"]), (&json!("budget"), &json!(10)));
    let executed = payloads(&events, "evaluation_progress").into_iter();
    let mut executed: Vec<u64> = executed.map(|case| case["case_index"].as_u64().unwrap()).collect();
    executed.sort_unstable();
    assert!(executed.into_iter().eq(0..10), "the first ones");
    assert_exact(&run.record().await["usage"], model.request_count());
    assert_eq!(model.request_count(), 10);
}

/// The time budget counts active time; at its end, the run returns its result so far.
#[tokio::test]
async fn a_training_ends_at_its_time_limit() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@200ms").await;
    let optimizer = json!({"epochs": 50, "budget": {"max_seconds": 2.5}});
    let run = Run::start(&t.anonymous(), &workflow.id, &training(optimizer)).await;
    let record = run.becomes("succeeded").await;
    assert_eq!(record["stop_reason"], "max_seconds");
    let events = run.events().await;
    let done = payloads(&events, "training_progress").len();
    assert!(done > 0 && done < 60, "{done}");
}

/// Equal requests share one reply, which is free.
#[tokio::test]
async fn equal_requests_are_sent_once() {
    let model = hopeless_model().await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let mut cases = super::cases(4);
    cases.extend(super::cases(4));
    let body = json!({"evaluation": {"dataset": {"cases": cases}, "evaluators": super::label()}});
    let run = Run::start(&t.anonymous(), &workflow.id, &body).await;
    let usage = run.becomes("succeeded").await["usage"].clone();
    assert_eq!(
        (model.request_count(), &usage["llm_calls"], &usage["cached_calls"]),
        (4, &json!(4), &json!(4))
    );
}

/// For a model without a price in the price table, the request's prices count.
#[tokio::test]
async fn a_money_budget_uses_the_prices_of_the_request() {
    let model = hopeless_model().await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let prices = json!({"input": 1_000, "output": 1_000});
    let optimizer = json!({"epochs": 50, "budget": {"max_cost": 2},
                           "models": {"judge": {"model": "openai/test", "prices": prices}}});
    let run = Run::start(&t.anonymous(), &workflow.id, &training(optimizer)).await;
    let record = run.becomes("succeeded").await;
    assert_eq!(record["stop_reason"], "budget");
    let usage = &record["usage"];
    let (cost, tokens) = (usage["cost_usd"].as_f64().unwrap(), CALL * calls(usage));
    assert!((cost - f64::from(u32::try_from(tokens).unwrap()) / 1_000.0).abs() < 1e-9, "{usage}");
    assert!(cost <= 2.0 && cost > 0.3, "{usage}");
    assert_exact(usage, model.request_count());
}
