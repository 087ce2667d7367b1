//! Training reports and curves, and rescored results.

use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::{Value, json};

use super::{Run, SEED, evaluation, get, label, post, training, workflow};

#[tokio::test]
async fn reports_in_every_format_describe_the_improvement() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await.id);
    let run = Run::start(&client, &workflow, &training(json!({"epochs": 3}))).await;
    let record = run.becomes("succeeded").await;
    let report = get(&client, &format!("{}/report", run.path)).await.value();
    assert_eq!(
        (&report["run"], &report["outcome"], &report["kind"]),
        (&json!(run.id), &json!("improved"), &json!("training"))
    );
    assert_eq!(report["score"], record["best_score"]);
    assert_eq!(report["curve"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(report["prompts"][0]["seed"], SEED);
    assert!(report["prompts"][0]["diff"].as_str().unwrap().contains("\n+ "), "{report}");
    assert!(report["candidates"]["accepted"].as_u64().unwrap() > 0);
    assert_eq!(report["checkpoints"].as_array().unwrap().len(), {
        let checkpoints = get(&client, &super::checkpoints_of(&workflow)).await.value();
        checkpoints.as_array().unwrap().len()
    });
    assert_eq!(report["splits"]["train_and_val"], 24);
    let page = get(&client, &format!("{}/report?format=html", run.path)).await;
    assert_eq!(page.header("content-type").unwrap(), "text/html; charset=utf-8");
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(page.text().starts_with("<!DOCTYPE html>") && page.text().contains("<svg"));
    let curve = get(&client, &format!("{}/curve.svg", run.path)).await;
    assert_eq!(curve.header("content-type").unwrap(), "image/svg+xml");
    assert!(curve.text().starts_with("<svg") || curve.text().starts_with("<?xml"), "{}", curve.text());
    for unknown in ["pdf", "text"] {
        let refused = get(&client, &format!("{}/report?format={unknown}", run.path)).await;
        assert_eq!(refused.problems(), ["/format choice"], "{unknown}");
    }
    let other = super::workflow(&t, "practice/classify").await.id;
    for at in ["report", "curve.svg"] {
        let foreign = format!("{}/{}/{at}", super::runs_of(&other), run.id);
        assert_eq!(get(&client, &foreign).await.refusal(), "404 run.not_found");
    }
}

#[tokio::test]
async fn evaluations_and_active_runs_have_reports() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@200ms").await.id);
    let run = Run::start(&client, &workflow, &evaluation(6, json!({"max_concurrency": 1}))).await;
    let early = get(&client, &format!("{}/report", run.path)).await.value();
    assert_eq!(early["verdict"], "The evaluation has no result yet.", "{early}");
    let record = run.becomes("succeeded").await;
    let report = get(&client, &format!("{}/report", run.path)).await.value();
    assert_eq!(
        (&report["score"], &report["summary"]["label"]),
        (&record["best_score"], &record["best_score"])
    );
    assert!(report["verdict"].as_str().unwrap().starts_with("The mean score is"), "{report}");
    // For an evaluation, the picture shows the distribution of scores.
    let counts: Vec<u64> =
        report["distribution"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (10, 6), "{report}");
    let curve = get(&client, &format!("{}/curve.svg", run.path)).await.text();
    assert!(curve.contains("Results by score") && curve.contains(&counts[9].to_string()), "{curve}");
    let page = get(&client, &format!("{}/report?format=html", run.path)).await.text();
    assert!(page.contains("Results by score") && !page.contains("No epoch has ended"), "{page}");
    let name = get(&client, &format!("/api/workflows/{workflow}")).await.value()["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!((&report["workflow_name"], &report["dataset_name"]), (&json!(name), &Value::Null));
    assert!(page.contains(&name), "{page}");
}

/// Rescores the results of a run.
async fn rescored(run: &Run, workflow: &str, body: Value) -> Run {
    let answer = post(&run.client, &format!("{}/rescore", run.path), &body).await.expect(202);
    assert_eq!(answer.value()["origin_run_id"], run.id);
    Run::existing(&run.client, workflow, answer.value()["id"].as_str().unwrap())
}

#[tokio::test]
async fn rescoring_results_calls_no_model() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await.id);
    let run = Run::start(&client, &workflow, &training(json!({"epochs": 3}))).await;
    let result = run.becomes("succeeded").await;
    let compared = super::only(&run.events().await, "training_result")["seed_vs_best"].clone();
    // The same evaluators give the same scores, for the seed and for the best candidate.
    let seed = rescored(&run, &workflow, json!({"evaluators": label(), "candidate": "seed"})).await;
    let seed = seed.becomes("succeeded").await;
    assert_eq!((&seed["usage"]["llm_calls"], &seed["dataset"]["n_cases"]), (&json!(0), &json!(24)));
    let again = rescored(&run, &workflow, json!({"evaluators": label()})).await;
    let best = again.becomes("succeeded").await;
    let gain = best["best_score"].as_f64().unwrap() - seed["best_score"].as_f64().unwrap();
    assert!(gain > 0.3, "{seed} {best} {compared}");
    assert_eq!((&best["kind"], &best["usage"]["llm_calls"]), (&json!("evaluation"), &json!(0)));
    assert_eq!(best["best_score"], result["best_score"]);
    // Other evaluators give other scores, and an evaluation can be rescored, too.
    let brief = json!([{"id": "brief", "entrypoint": "builtin:length", "config": {"max": 100}}]);
    let other = rescored(&again, &workflow, json!({"evaluators": brief})).await;
    let shown = get(&client, &format!("{}/cases?limit=1&trace=true", other.path)).await;
    assert_eq!(other.becomes("succeeded").await["best_score"], 1.0);
    assert_eq!(shown.status, 200);
    let cases = get(&client, &format!("{}/cases?limit=200&trace=true", other.path)).await.value();
    let first = &cases["data"][0];
    assert_eq!(first["evaluations"].as_object().unwrap().keys().collect::<Vec<_>>(), ["brief"]);
    assert!(!first["trace"].as_array().unwrap().is_empty(), "{first}");
    for (body, problem) in [
        (json!({}), "/evaluators required"),
        (json!({"evaluators": []}), "/evaluators type"),
        (json!({"evaluators": label(), "candidate": "worst"}), "/candidate choice"),
        (json!({"evaluators": label(), "candidate": 999}), "/candidate no_results"),
        (
            json!({"evaluators": [{"id": "judge", "entrypoint": "builtin:llm_judge", "config": {"rubric": "Good?"}}]}),
            "/evaluators/0 evaluator_needs_model",
        ),
    ] {
        let answer = post(&client, &format!("{}/rescore", run.path), &body).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.problems().join(", ").as_str()),
            ("422 request.invalid", problem)
        );
    }
    let slow = super::workflow(&t, "practice/classify@1000ms").await.id;
    let unfinished = Run::start(&client, &slow, &evaluation(6, json!({}))).await;
    let early = post(&client, &format!("{}/rescore", unfinished.path), &json!({"evaluators": label()})).await;
    assert_eq!(early.refusal(), "409 run.not_ended");
    // All samples of each case.
    let twice = Run::start(&client, &workflow, &evaluation(4, json!({"repeats": 2}))).await;
    let score = twice.becomes("succeeded").await["best_score"].clone();
    let again = rescored(&twice, &workflow, json!({"evaluators": label()})).await;
    assert_eq!(again.becomes("succeeded").await["best_score"], score);
    let cases = get(&client, &format!("{}/cases?limit=200", again.path)).await.value();
    assert_eq!(cases["data"].as_array().unwrap().len(), 8);
    // Only once per key.
    let keyed = [JSON, ("idempotency-key", "again")];
    let body = json!({"evaluators": label()}).to_string();
    let path = format!("{}/rescore", run.path);
    let (first, second) =
        (t.send("POST", &path, &keyed, &body).await, t.send("POST", &path, &keyed, &body).await);
    assert_eq!((first.status, &first.value()["id"]), (202, &second.value()["id"]));
}

/// Empty rows, duplicate rows, and a column that only looks like `expected_output`.
#[tokio::test]
async fn weak_datasets_are_reported_before_the_start_and_in_the_report() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await.id);
    let csv = "message,Expected_Output\nWhere is my parcel?,shipping\nWhere is my parcel?,shipping\n,\n";
    let path = format!("/api/workflows/{workflow}/datasets?name=weak");
    client.send("POST", &path, &[("content-type", "text/csv")], csv).await.unwrap().expect(201);
    let body = json!({"training": {"dataset": {"id": "weak"}, "evaluators": label(), "optimizer": {"name": "none"}}});
    let plan = post(&client, &format!("{}?dry_run=true", super::runs_of(&workflow)), &body).await.value();
    let codes = |warnings: &Value| -> Vec<Value> {
        warnings.as_array().unwrap().iter().map(|warning| warning["code"].clone()).collect()
    };
    let expected = ["few_cases", "empty_cases", "duplicate_cases", "input_looks_like_column"];
    assert_eq!(codes(&plan["warnings"]), expected, "{plan}");
    let run = Run::start(&client, &workflow, &body).await;
    let events = run.events().await;
    let place = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
    assert!(place("training_warning") < place("training_progress"), "{events:?}");
    let report = get(&client, &format!("{}/report", run.path)).await.value();
    assert_eq!(codes(&report["warnings"])[..4], expected, "{report}");
    assert!(report["warnings"][3]["message"].as_str().unwrap().contains("'Expected_Output'"), "{report}");
}
