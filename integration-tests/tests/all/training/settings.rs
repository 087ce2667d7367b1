//! Reused replies, and valid workflow inputs.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::{
    Run, cases, evaluation, get, label, post, prompts, runs_of, sorting, training, training_of, workflow,
};

async fn constant_model(text: &'static str) -> ModelServer {
    ModelServer::start(move |_, _| Reply::Text(text.to_owned())).await
}

async fn usage(run: &Run) -> Value {
    run.becomes("succeeded").await["usage"].clone()
}

#[tokio::test]
async fn equal_requests_are_all_sent_without_a_cache() {
    let model = constant_model("shipping").await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let mut twice = cases(4);
    twice.extend(cases(4));
    let body = json!({"evaluation": {"dataset": {"cases": twice}, "evaluators": label(), "cache": "off"}});
    let used = usage(&Run::start(&t.anonymous(), &workflow.id, &body).await).await;
    assert_eq!((model.request_count(), &used["llm_calls"], &used["cached_calls"]), (8, &json!(8), &json!(0)));
}

#[tokio::test]
async fn a_workflow_cache_contains_only_answers_of_its_earlier_runs() {
    let model = constant_model("shipping").await;
    let t = model.service().await;
    let (client, first) = (t.anonymous(), workflow(&t, "openai/test").await);
    let shared = evaluation(4, json!({"cache": "workflow"}));
    let run = Run::start(&client, &first.id, &shared).await;
    let scored = run.becomes("succeeded").await;
    assert_eq!((model.request_count(), &scored["usage"]["llm_calls"]), (4, &json!(4)));
    let again = Run::start(&client, &first.id, &shared).await;
    let record = again.becomes("succeeded").await;
    let used = &record["usage"];
    assert_eq!((model.request_count(), &used["llm_calls"], &used["cached_calls"]), (4, &json!(0), &json!(4)));
    assert_eq!((&used["input_tokens"], &used["output_tokens"]), (&json!(0), &json!(0)), "they are free");
    assert_eq!(record["best_score"], scored["best_score"]);
    // They are stored as calls of this run, which no longer depends on the earlier one.
    let rows = format!("SELECT count(*) FROM training_calls WHERE run_id = '{}' AND attempts = 0", again.id);
    assert_eq!(t.scalar(&rows).await, "4");
    // Another seed makes another request; the cache is not used without the setting, or in another workflow.
    usage(&Run::start(&client, &first.id, &evaluation(4, json!({"cache": "workflow", "seed": 7}))).await)
        .await;
    assert_eq!(model.request_count(), 8);
    usage(&Run::start(&client, &first.id, &evaluation(4, json!({}))).await).await;
    assert_eq!(model.request_count(), 12);
    let other = workflow(&t, "openai/test").await;
    usage(&Run::start(&client, &other.id, &shared).await).await;
    assert_eq!(model.request_count(), 16);
}

/// A workflow with an input schema.
async fn strict(t: &TestService) -> integration_tests::Workflow {
    let mut graph = sorting("practice/classify");
    graph["inputs"] =
        json!({"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}});
    t.workflow().graph(graph).config(prompts(super::SEED)).create().await
}

#[tokio::test]
async fn inputs_outside_the_schema_are_rejected_before_the_start() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), strict(&t).await);
    let mut some = cases(5);
    some[1]["inputs"] = json!({"text": "Hi"});
    some[3]["inputs"]["message"] = json!(7);
    for path in [runs_of(&workflow.id), format!("{}?dry_run=true", runs_of(&workflow.id))] {
        let refused = post(&client, &path, &training_of(some.clone(), json!({}))).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{}", refused.text());
        let places: Vec<String> =
            refused.problems().iter().map(|it| it.split(' ').next().unwrap().to_owned()).collect();
        let at = "/training/dataset/cases";
        assert_eq!(places, [format!("{at}/1/inputs"), format!("{at}/3/inputs/message")]);
    }
    // The message's inputs are defaults for those of each case.
    some[3]["inputs"] = json!({});
    let mut body = training_of(some, json!({}));
    body["inputs"] = json!({"message": "Where is it?"});
    post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &body).await.expect(200);
    t.assert_no_rows("runs").await;
}

#[tokio::test]
async fn wrong_cases_of_a_stored_dataset_are_reported_by_id() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), strict(&t).await);
    let wrong: Vec<Value> =
        (0..30).map(|n| json!({"id": format!("c{n}"), "inputs": {"text": "Hi"}})).collect();
    post(&client, &workflow.path("/datasets"), &json!({"name": "wrong", "cases": wrong})).await.expect(201);
    let mut body = training(json!({}));
    body["training"]["dataset"] = json!({"id": "wrong"});
    let refused = post(&client, &runs_of(&workflow.id), &body).await;
    let problems = refused.value()["detail"]["errors"].as_array().unwrap().clone();
    // The first problems, and their total number.
    assert_eq!(problems.len(), 21);
    assert_eq!(problems[2]["pointer"], "/training/dataset/id");
    assert!(problems[2]["message"].as_str().unwrap().starts_with("case 'c2': inputs"), "{}", problems[2]);
    assert!(problems[20]["message"].as_str().unwrap().contains("30 of 30 cases"), "{}", problems[20]);
    assert_eq!(get(&client, &runs_of(&workflow.id)).await.value()["data"], json!([]));
}

#[tokio::test]
async fn a_csv_with_semicolons_is_rejected_with_the_reason() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let path = workflow.path("/datasets?name=sorted");
    let text = "message;expected_output\nWhere is my parcel?;shipping\n";
    let refused = client.send("POST", &path, &[("content-type", "text/csv")], text).await.unwrap();
    assert_eq!(refused.problems(), ["/lines/1 delimiter"], "{}", refused.text());
    t.assert_no_rows("datasets").await;
}
