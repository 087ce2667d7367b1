//! External services as evaluators: their requests, valid responses, and rejections.

use std::time::Duration;

use integration_tests::{AnswerExt, Client, TestService, until};
use kernel::{Clock, SystemClock};
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::{Value, json};
use wire::CreateCredential;

use super::judge::{JudgeReply, JudgeServer, SECRET, vault_keys};
use super::{Run, evaluation, only, payloads, post, runs_of, training, workflow};

/// A service with the credential `judge`, which may call the judge.
pub(super) async fn service(judge: &JudgeServer) -> (TestService, Client) {
    let t = TestService::builder()
        .set("SERVICE_VAULT_KEYS", vault_keys())
        .set("SERVICE_EGRESS_ALLOW", judge.allow())
        .start()
        .await;
    let client = t.anonymous();
    let credential =
        CreateCredential { name: "judge".into(), secret: SECRET.into(), provider: None, description: None };
    client.create_credential(&credential).await.unwrap();
    (t, client)
}

pub(super) fn by_service(url: &str) -> Value {
    json!([{"id": "judge", "entrypoint": "http:judge", "config": {"url": url, "tone": "kind"}}])
}

/// An evaluation of the first cases by the judge service.
fn judged_evaluation(count: usize, url: &str) -> Value {
    let mut body = evaluation(count, json!({}));
    body["evaluation"]["evaluators"] = by_service(url);
    body
}

async fn verdicts(client: &Client, workflow: &str, body: &Value) -> Vec<Value> {
    let run = Run::start(client, workflow, body).await;
    let events = run.events().await;
    assert_eq!(run.record().await["status"], "succeeded");
    let mut cases = payloads(&events, "evaluation_progress");
    cases.sort_by_key(|case| (case["case_index"].as_u64(), case["sample"].as_u64()));
    cases.into_iter().map(|case| case["evaluations"]["judge"].clone()).collect()
}

#[tokio::test]
async fn a_judge_service_receives_a_signed_case_and_returns_the_verdict() {
    let judge = JudgeServer::start(|_, context| {
        let score =
            if context["case"]["index"] == 0 { json!(0.25) } else { json!({"score": 1, "reason": SECRET}) };
        JudgeReply::Late(200, score)
    })
    .await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let mut body = judged_evaluation(3, &judge.url());
    body["evaluation"]["repeats"] = json!(2);
    let found = verdicts(&client, &workflow.id, &body).await;
    let scores: Vec<&Value> = found.iter().map(|verdict| &verdict["score"]).collect();
    assert_eq!(scores, [0.25, 0.25, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(found[2]["reason"], "[redacted]", "a repeated secret is not shown");
    let requests = judge.requests();
    for request in &requests {
        let signed = format!("{}.{}", request.header("x-timestamp").unwrap(), request.body);
        let signature =
            hex::decode(request.header("x-signature").unwrap().strip_prefix("sha256=").unwrap()).unwrap();
        assert!(verify(&Key::new(HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes(), &signature).is_ok());
        let context = request.json();
        let mut members: Vec<&str> = context.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        let all = "case config duration_ms expected_output inputs metadata output output_text trace usage";
        assert_eq!(members.join(" "), all);
        assert_eq!(
            (&context["config"]["tone"], &context["trace"][0]["node"]),
            (&json!("kind"), &json!("sort"))
        );
    }
    let mut keys: Vec<&str> =
        requests.iter().map(|request| request.header("idempotency-key").unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((requests.len(), keys.len()), (6, 6), "each sample of each case has its own key");
    for table in ["training_cases", "training_runs", "stream_events_kept", "runs"] {
        let rows = t.scalar(&format!("SELECT coalesce(string_agg(r::text, ' '), '') FROM {table} r")).await;
        assert!(!rows.contains("canary-of-the-judge"), "{table}");
    }
}

#[tokio::test]
async fn a_failed_service_request_is_retried_with_the_same_key() {
    let judge = JudgeServer::start(|number, _| match number {
        1 => JudgeReply::Text(500, "not now".to_owned()),
        _ => JudgeReply::Verdict(json!(true)),
    })
    .await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let found = verdicts(&client, &workflow.id, &judged_evaluation(1, &judge.url())).await;
    assert_eq!((&found[0]["score"], &found[0]["error"]), (&json!(1.0), &Value::Null));
    let requests = judge.requests();
    assert_eq!(requests.len(), 2);
    let key = |number: usize| requests[number].header("idempotency-key").unwrap();
    assert_eq!(key(0), key(1));
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn an_invalid_verdict_is_an_error_without_the_secret() {
    let answers = || {
        [
            (JudgeReply::Text(404, format!("nothing for {SECRET}")), "answered 404: nothing for [redacted]"),
            (JudgeReply::Text(200, format!("\"{}\"", "x".repeat(1 << 20))), "larger than"),
            (JudgeReply::Text(200, "fine".to_owned()), "is not JSON"),
            (JudgeReply::Verdict(json!("fine")), "a boolean, a number or an object, not a text"),
            (JudgeReply::Verdict(json!({"reason": "fine"})), "no `score`"),
        ]
    };
    let judge = JudgeServer::start(move |_, context| {
        let place = usize::try_from(context["case"]["index"].as_u64().unwrap()).unwrap();
        answers()[place].0.clone()
    })
    .await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let found = verdicts(&client, &workflow.id, &judged_evaluation(5, &judge.url())).await;
    for (verdict, (_, expected)) in found.iter().zip(answers()) {
        let error = verdict["error"].as_str().unwrap();
        assert!(error.contains(expected) && !error.contains("canary"), "{error}");
        assert_eq!(verdict["score"], 0.0);
    }
    assert_eq!(judge.requests().len(), 10, "each is tried once more");
}

#[tokio::test]
async fn a_cancel_ends_a_request_in_flight() {
    let judge = JudgeServer::start(|_, _| JudgeReply::Nothing).await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let run = Run::start(&client, &workflow.id, &judged_evaluation(1, &judge.url())).await;
    until("the judge is called", async || judge.requests().len() == 1).await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let record = run.controlled("cancel").await;
    assert!(clock.monotonic() - begun < Duration::from_secs(2));
    assert_eq!(record["status"], "cancelled");
    until("the connection is closed", async || judge.gone() == 1).await;
    let events = run.events().await;
    assert_eq!(only(&events, "evaluation_result")["n_cases"], 0);
}

#[tokio::test]
async fn invalid_service_settings_are_rejected_before_the_first_request() {
    let judge = JudgeServer::start(|_, _| JudgeReply::Verdict(json!(1))).await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let with = |entrypoint: &str, config: Value| {
        let mut body = training(json!({}));
        body["training"]["evaluators"] = json!([{"id": "judge", "entrypoint": entrypoint, "config": config}]);
        body
    };
    let own = format!("http://{}/healthz", t.address());
    for (entrypoint, config, problem) in [
        ("http:judge", json!({}), "config/url required"),
        ("http:judge", json!({"url": "judge"}), "config/url url"),
        ("http:judge", json!({"url": "http://169.254.169.254/latest"}), "config/url egress_refused"),
        ("http:judge", json!({"url": "http://localhost:9/"}), "config/url egress_refused"),
        ("http:judge", json!({"url": own}), "config/url egress_refused"),
        ("http:other", json!({"url": judge.url()}), "entrypoint unknown_credential"),
        ("http:", json!({"url": judge.url()}), "entrypoint evaluator_not_found"),
    ] {
        let refused = post(&client, &runs_of(&workflow.id), &with(entrypoint, config)).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{}", refused.text());
        assert_eq!(refused.problems(), [format!("/training/evaluators/0/{problem}")], "{}", refused.text());
    }
    assert!(judge.requests().is_empty());
    t.assert_no_rows("training_runs").await;
}

#[tokio::test]
async fn a_service_needs_a_vault() {
    let judge = JudgeServer::start(|_, _| JudgeReply::Verdict(json!(1))).await;
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify").await;
    let path = format!("{}?dry_run=true", runs_of(&workflow.id));
    let refused = post(&t.anonymous(), &path, &judged_evaluation(1, &judge.url())).await;
    let problems = [
        "/evaluation/evaluators/0/entrypoint unknown_credential",
        "/evaluation/evaluators/0/config/url egress_refused",
    ];
    assert_eq!(refused.problems(), problems, "{}", refused.text());
}
