//! Evaluations: each case once, and their score.

use integration_tests::{AnswerExt, Socket, TestService};
use serde_json::{Value, json};

use super::{Run, evaluation, get, kind, message, only, payloads, post, steps, workflow};

/// Asserts the events of an evaluation with the first `count` cases.
fn assert_evaluated(events: &[Value], count: usize) {
    assert_eq!(kind(&events[0]), "run_started");
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["evaluation_result", "run_completed"]);
    let cases = payloads(events, "evaluation_progress");
    let mut indices: Vec<u64> = cases.iter().map(|case| case["case_index"].as_u64().unwrap()).collect();
    indices.sort_unstable();
    assert!(indices.into_iter().eq(0..u64::try_from(count).unwrap()), "each case once");
    for case in &cases {
        // An evaluation has neither epochs nor candidates.
        assert_eq!((case.get("epoch"), case.get("candidate_id")), (None, None), "{case}");
        let verdict = &case["evaluations"]["label"];
        let expected = super::CASES[usize::try_from(case["case_index"].as_u64().unwrap()).unwrap()].1;
        let is_right = case["output"] == expected;
        assert_eq!(
            (&verdict["passed"], &verdict["score"]),
            (&json!(is_right), &json!(f64::from(u8::from(is_right))))
        );
        assert_eq!(
            (&case["case_id"], &case["cached"]),
            (&json!(case["case_index"].to_string()), &json!(false))
        );
    }
    let right = cases.iter().filter(|case| case["evaluations"]["label"]["passed"] == true).count();
    let share = f64::from(u32::try_from(right).unwrap()) / f64::from(u32::try_from(count).unwrap());
    let result = only(events, "evaluation_result");
    let scores = [&result["score"], &result["pass_rate"], &result["summary"]["label"]];
    assert!(scores.iter().all(|score| (score.as_f64().unwrap() - share).abs() < 1e-9), "{result}: {share}");
    assert_eq!((&result["n_cases"], &result["usage"]["llm_calls"]), (&json!(count), &json!(count)));
    assert_eq!(&only(events, "run_completed")["output"], result);
}

#[tokio::test]
async fn an_evaluation_executes_every_case_once_over_http() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let run = Run::start(&client, &workflow.id, &evaluation(10, json!({"max_concurrency": 3}))).await;
    let events = run.events().await;
    assert_evaluated(&events, 10);
    let record = run.record().await;
    assert_eq!((&record["kind"], &record["status"]), (&json!("evaluation"), &json!("succeeded")));
    assert_eq!(record["best_score"], only(&events, "evaluation_result")["score"]);
    assert_eq!((&record["optimizer"], &record["dataset"]["n_cases"]), (&Value::Null, &json!(10)));
    let list = get(&client, &super::checkpoints_of(&workflow.id)).await.value();
    assert_eq!(list, json!([]), "an evaluation writes no checkpoint");
    let cases = get(&client, &format!("{}/cases?limit=200", run.path)).await.value();
    assert_eq!(cases["data"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn an_evaluation_executes_every_case_once_over_the_websocket() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&message("evaluate_workflow", "e", &evaluation(6, json!({})))).await;
    let received = socket.until("run_completed").await;
    assert!(received.iter().all(|message| message["request_id"] == "e"));
    assert_evaluated(&received, 6);
    let run = Run::existing(&t.anonymous(), &workflow.id, received[0]["run_id"].as_str().unwrap());
    assert_eq!(run.events().await.len(), received.len());
    socket.close().await;
}

#[tokio::test]
async fn the_label_of_the_cases_in_a_request_is_in_the_record_and_the_report() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let mut request = evaluation(2, json!({}));
    request["evaluation"]["dataset"]["id"] = json!("desks of May");
    let run = Run::start(&client, &workflow.id, &request).await;
    run.becomes("succeeded").await;
    for path in ["", "/report"] {
        let dataset = get(&client, &format!("{}{path}", run.path)).await.value()["dataset"].clone();
        assert_eq!(
            (&dataset["id"], &dataset["version"]),
            (&json!("desks of May"), &Value::Null),
            "{path}: {dataset}"
        );
    }
}

#[tokio::test]
async fn evaluations_and_trainings_use_the_live_version_after_a_rollback() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let second = json!({"graph": super::sorting("practice/reply")});
    post(&client, &workflow.path("/versions"), &second).await.expect(201);
    post(&client, &workflow.path("/versions/1/live"), &json!({})).await.expect(200);
    for request in [evaluation(1, json!({})), super::training(json!({"name": "none"}))] {
        let run = Run::start(&client, &workflow.id, &request).await;
        assert_eq!(run.record().await["version"], 1, "{request}");
        assert_eq!(run.becomes("succeeded").await["version"], 1);
    }
}

#[tokio::test]
async fn the_first_cases_are_executed_the_requested_number_of_times() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let more = json!({"max_cases": 3, "repeats": 2});
    let run = Run::start(&client, &workflow.id, &evaluation(10, more)).await;
    let events = run.events().await;
    let mut samples: Vec<(u64, u64)> = payloads(&events, "evaluation_progress")
        .into_iter()
        .map(|case| (case["case_index"].as_u64().unwrap(), case["sample"].as_u64().unwrap()))
        .collect();
    samples.sort_unstable();
    assert_eq!(samples, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(run.record().await["dataset"]["n_cases"], 3);
}

#[tokio::test]
async fn case_inputs_override_the_inputs_of_the_request() {
    let t = TestService::start().await;
    let tell =
        json!({"name": "tell", "type": "template", "template": "{{ inputs.greeting }} {{ inputs.name }}"});
    let graph = integration_tests::graphs::chain(&[tell], Some(json!("{{ results.tell.text }}")));
    let workflow = t.workflow().graph(graph).create().await;
    let cases = json!([{"id": "a", "inputs": {"name": "Ada"}, "expected_output": "Hello Ada"},
                       {"id": "b", "inputs": {"name": "Bob", "greeting": "Bye"}, "expected_output": "Bye Bob"}]);
    let request = json!({"dataset": {"cases": cases}, "evaluators": super::label()});
    let body = json!({"inputs": {"greeting": "Hello", "name": "Ada"}, "evaluation": request});
    let events = Run::start(&t.anonymous(), &workflow.id, &body).await.events().await;
    assert_eq!(only(&events, "evaluation_result")["score"], 1.0, "{:?}", steps(&events));
    assert_eq!(only(&events, "evaluation_result")["usage"]["llm_calls"], 0);
    let ids =
        payloads(&events, "evaluation_progress").into_iter().map(|case| case["case_id"].as_str().unwrap());
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b"]);
}

#[tokio::test]
async fn a_case_that_times_out_has_an_error_and_no_score() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@3000ms").await;
    let more = json!({"case_timeout_seconds": 1});
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(2, more)).await;
    let events = run.events().await;
    for case in payloads(&events, "evaluation_progress") {
        assert_eq!((&case["error"]["code"], &case["output"]), (&json!("case_timeout"), &Value::Null));
        let verdict = &case["evaluations"]["label"];
        assert_eq!((&verdict["score"], &verdict["passed"]), (&json!(0.0), &json!(false)));
        assert!(verdict["reason"].is_string(), "{verdict}");
    }
    assert_eq!(run.record().await["status"], "succeeded");
    assert_eq!(only(&events, "evaluation_result")["score"], 0.0);
}

/// Evaluation progress has the same split and phase as training progress.
#[tokio::test]
async fn evaluation_progress_omits_only_the_epoch_and_the_candidate() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let members = |payload: &Value| -> Vec<String> { payload.as_object().unwrap().keys().cloned().collect() };
    let evaluated = Run::start(&client, &workflow.id, &evaluation(1, json!({}))).await.events().await;
    let trained = super::training_of(super::cases(1), json!({"name": "none"}));
    let trained = Run::start(&client, &workflow.id, &trained).await.events().await;
    let mut expected = members(payloads(&trained, "training_progress")[0]);
    expected.retain(|member| !["epoch", "candidate_id"].contains(&member.as_str()));
    assert_eq!(members(payloads(&evaluated, "evaluation_progress")[0]), expected);
}

#[tokio::test]
async fn an_evaluation_with_a_graph_executes_a_draft() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let mut body = evaluation(2, json!({}));
    let always = json!({"name": "always", "type": "template", "template": "shipping"});
    body["graph_config"] =
        integration_tests::graphs::chain(&[always], Some(json!("{{ results.always.text }}")));
    let answer = post(&client, &super::runs_of(&workflow.id), &body).await.value();
    assert_eq!(answer["version"], Value::Null, "a draft has no number");
    let run = Run::existing(&client, &workflow.id, answer["id"].as_str().unwrap());
    assert_eq!(only(&run.events().await, "evaluation_result")["score"], 1.0);
    let stored = get(&client, &workflow.path("")).await.value();
    assert_eq!((&stored["latest_version"], &stored["live_version"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn the_id_of_inline_cases_is_a_label_in_the_record() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    for (id, more) in [(json!("monday"), json!({"id": "monday"})), (Value::Null, json!({}))] {
        let mut body = evaluation(3, json!({}));
        let dataset = body["evaluation"]["dataset"].as_object_mut().unwrap();
        dataset.extend(more.as_object().cloned().unwrap());
        let run = Run::start(&client, &workflow.id, &body).await;
        let used = run.becomes("succeeded").await["dataset"].clone();
        assert_eq!(
            (&used["id"], &used["version"], &used["n_cases"]),
            (&id, &Value::Null, &json!(3)),
            "{used}"
        );
    }
}
