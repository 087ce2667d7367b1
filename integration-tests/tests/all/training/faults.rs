//! Models that reject requests, fail, or are missing.

use std::collections::HashSet;

use integration_tests::{AnswerExt, TestService};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::model::{ModelServer, Reply, is_of_optimizer, last_message};
use super::{CASES, Run, evaluation, kind, only, payloads, steps, training_of, workflow};

/// The correct label for the request's message.
fn right(request: &Value) -> String {
    let label = CASES.iter().find(|(message, _)| *message == last_message(request)).map(|(_, label)| *label);
    label.unwrap_or("unknown").to_owned()
}

fn assert_no_case_failed(events: &[Value]) {
    for case in payloads(events, "evaluation_progress") {
        assert_eq!(
            (case.get("error"), &case["evaluations"]["label"]["score"]),
            (None, &json!(1.0)),
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_rate_limited_model_lowers_the_concurrency_but_no_score() {
    let model = ModelServer::start(|number, request| match number {
        1..=5 => Reply::Refused(429, Some(1)),
        _ => Reply::Text(right(request)),
    })
    .await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(8, json!({}))).await;
    let events = run.events().await;
    assert_no_case_failed(&events);
    assert!(!steps(&events).contains(&"training_warning"), "{:?}", steps(&events));
    let result = only(&events, "evaluation_result");
    assert_eq!((&result["score"], &result["usage"]["retries"]), (&json!(1.0), &json!(5)));
    assert_eq!((&result["usage"]["llm_calls"], model.request_count()), (&json!(13), 13));
}

/// A 503 has the same meaning as a 429, with or without `Retry-After`.
#[tokio::test]
async fn an_overloaded_model_lowers_the_concurrency_but_no_score() {
    for seconds in [Some(1), None] {
        // As many rejections as the attempts of a failing call.
        let model = ModelServer::start(move |number, request| match number {
            1..=3 => Reply::Refused(503, seconds),
            _ => Reply::Text(right(request)),
        })
        .await;
        let t = model.service().await;
        let workflow = workflow(&t, "openai/test").await;
        let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(1, json!({}))).await;
        let events = run.events().await;
        assert_no_case_failed(&events);
        assert_eq!(
            (run.record().await["usage"]["retries"].clone(), model.request_count()),
            (json!(3), 4),
            "{seconds:?}"
        );
    }
}

#[tokio::test]
async fn a_failed_request_is_sent_again_and_counted() {
    let seen: Mutex<HashSet<String>> = Mutex::default();
    let reply = move |_, request: &Value| match seen.lock().insert(last_message(request).to_owned()) {
        true => Reply::Refused(500, None),
        false => Reply::Text(right(request)),
    };
    let model = ModelServer::start(reply).await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(6, json!({}))).await;
    let events = run.events().await;
    assert_no_case_failed(&events);
    let usage = run.record().await["usage"].clone();
    assert_eq!((&usage["llm_calls"], &usage["retries"], model.request_count()), (&json!(12), &json!(6), 12));
    assert_eq!(usage["by_role"]["task"], 12, "each attempt is of its role");
}

/// A request that the model rejects as invalid is not repeated.
#[tokio::test]
async fn a_rejected_request_fails_only_its_case() {
    let model = ModelServer::start(|_, request| match right(request).as_str() {
        "billing" => Reply::Refused(400, None),
        label => Reply::Text(label.to_owned()),
    })
    .await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(6, json!({}))).await;
    let events = run.events().await;
    let failed =
        payloads(&events, "evaluation_progress").into_iter().filter(|case| case.get("error").is_some());
    assert_eq!(failed.count(), 2, "the cases 2 and 3");
    assert_eq!((model.request_count(), &run.record().await["usage"]["retries"]), (6, &json!(0)));
    assert_eq!(run.record().await["status"], "succeeded");
}

/// A service whose model address has no listener.
async fn service_without_models() -> TestService {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    TestService::builder().set("SERVICE_MODEL_BASE_URL", format!("http://{address}/v1")).start().await
}

#[tokio::test]
async fn an_unavailable_endpoint_fails_its_cases_and_the_run_completes() {
    let t = service_without_models().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "openai/test").await);
    let evaluated = Run::start(&client, &workflow.id, &evaluation(4, json!({}))).await;
    let trained = training_of(super::cases(4), json!({"epochs": 1}));
    let trained = Run::start(&client, &workflow.id, &trained).await;
    for (run, progress) in [(&evaluated, "evaluation_progress"), (&trained, "training_progress")] {
        let events = run.events().await;
        assert_eq!(kind(events.last().unwrap()), "run_completed");
        let warnings = payloads(&events, "training_warning").into_iter();
        let warnings: Vec<&Value> =
            warnings.filter(|warning| warning["code"] == "endpoint_failing").collect();
        assert_eq!(warnings.len(), 1, "once: {:?}", steps(&events));
        for case in payloads(&events, progress) {
            let verdict = &case["evaluations"]["label"];
            assert_eq!(
                (&case["error"]["code"], &verdict["score"]),
                (&json!("model.unavailable"), &json!(0.0))
            );
        }
        let record = run.record().await;
        assert_eq!((&record["status"], record["best_score"].as_f64()), (&json!("succeeded"), Some(0.0)));
    }
    let result = trained.events().await;
    let result = only(&result, "training_result");
    assert_eq!(
        (&result["outcome"], &result["prompts"]["rules"]),
        (&json!("no_significant_gain"), &json!(super::SEED))
    );
    // Such failures teach nothing, so the optimizer model was never called.
    assert_eq!(result["usage"]["by_role"]["optimizer"], 0);
}

#[tokio::test]
async fn an_unavailable_optimizer_keeps_the_seed_and_the_run_completes() {
    let model = ModelServer::start(|_, request| match is_of_optimizer(request) {
        true => Reply::Refused(500, None),
        false => Reply::Text("nothing".to_owned()),
    })
    .await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let body = training_of(
        super::cases(4),
        json!({"epochs": 1, "minibatch_size": 1, "name": "gepa", "validation_split": 0.5}),
    );
    let run = Run::start(&t.anonymous(), &workflow.id, &body).await;
    let events = run.events().await;
    assert_eq!(kind(events.last().unwrap()), "run_completed");
    let codes = payloads(&events, "training_warning").into_iter().map(|it| it["code"].as_str().unwrap());
    assert!(codes.collect::<Vec<_>>().contains(&"endpoint_failing"));
    assert_eq!(payloads(&events, "training_candidate").len(), 0);
    assert_eq!(only(&events, "training_result")["prompts"]["rules"], super::SEED);
    assert_eq!(run.record().await["usage"]["llm_calls"], model.request_count());
}

/// An optimizer reply without a prompt is requested once more; then its proposal is skipped.
#[tokio::test]
async fn an_unusable_rewrite_causes_a_warning_and_its_calls_count() {
    let model = ModelServer::start(|_, request| match is_of_optimizer(request) {
        true => Reply::Text("I'm sorry, I cannot help with that.".to_owned()),
        false => Reply::Text("nothing".to_owned()),
    })
    .await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let body = training_of(super::cases(4), json!({"epochs": 1}));
    let run = Run::start(&t.anonymous(), &workflow.id, &body).await;
    let events = run.events().await;
    let codes = payloads(&events, "training_warning").into_iter().map(|it| it["code"].as_str().unwrap());
    assert_eq!(codes.collect::<Vec<_>>(), ["few_cases", "unparsable_rewrite"]);
    assert_eq!(payloads(&events, "training_candidate").len(), 0);
    // Four critiques, and two rewrite attempts.
    assert_eq!(run.record().await["usage"]["by_role"]["optimizer"], 6);
    assert_eq!(run.control("cancel").await.refusal(), "409 run.not_active");
}
