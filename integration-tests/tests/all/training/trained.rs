//! A training over HTTP: its requests, events, stored data and lists.

use integration_tests::{AnswerExt, TestService, events};
use serde_json::{Value, json};

use super::{
    CASES, Run, SEED, checkpoints_of, evaluation, get, kind, only, payloads, post, runs_of, steps, training,
    workflow,
};

/// Asserts the event order of a training that ended by itself.
fn assert_order(events: &[Value]) {
    let kinds = steps(events);
    assert_eq!(kinds[..2], ["run_started", "training_started"]);
    assert_eq!(kinds[kinds.len() - 2..], ["training_result", "run_completed"]);
    for once in ["run_started", "training_started", "training_result", "run_completed"] {
        only(events, once);
    }
    let epochs = payloads(events, "training_epoch_complete").into_iter();
    let epochs: Vec<u64> = epochs.map(|epoch| epoch["epoch"].as_u64().unwrap()).collect();
    assert!(epochs.iter().copied().eq(1..=3), "{epochs:?}");
    // No epoch's checkpoint comes after a later epoch's, and none is written twice.
    let written: Vec<(u64, u64)> = payloads(events, "training_checkpoint")
        .into_iter()
        .map(|checkpoint| &checkpoint["metadata"])
        .map(|of| (of["epoch"].as_u64().unwrap(), of["candidate_id"].as_u64().unwrap()))
        .collect();
    assert!(written.is_sorted_by(|one, other| one < other), "{written:?}");
    let numbers = payloads(events, "training_checkpoint").into_iter().map(|it| &it["config_version"]);
    assert!(numbers.zip(1_u64..).all(|(number, expected)| *number == expected));
}

#[tokio::test]
async fn a_training_improves_its_prompt_and_reports_every_step() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let accepted =
        post(&client, &runs_of(&workflow.id), &training(json!({"epochs": 3}))).await.expect(202).value();
    assert_eq!(
        (&accepted["kind"], &accepted["status"], &accepted["version"], &accepted["workflow_id"]),
        (&json!("training"), &json!("queued"), &json!(1), &json!(workflow.id))
    );
    assert_eq!((&accepted["dataset"]["n_cases"], &accepted["dataset"]["id"]), (&json!(24), &Value::Null));
    assert_eq!((&accepted["started_at"], &accepted["origin_run_id"]), (&Value::Null, &Value::Null));
    let optimizer = &accepted["optimizer"];
    let filled = ["name", "epochs", "checkpoint_interval", "case_timeout_seconds", "max_concurrency", "seed"];
    assert_eq!(
        filled.map(|name| optimizer[name].clone()),
        [json!("textgrad"), json!(3), json!(1), json!(30), json!(4), json!(0)]
    );

    let run = Run::existing(&client, &workflow.id, accepted["id"].as_str().unwrap());
    let events = run.events().await;
    assert_order(&events);
    let started = only(&events, "training_started");
    assert_eq!((&started["trainable_prompts"], &started["pins"]), (&json!(["rules"]), &json!([])));
    assert_eq!((&started["optimizer"], &started["version"]), (optimizer, &json!(1)));
    let all: Vec<usize> = (0..CASES.len()).collect();
    let splits = json!({"train": all, "val": all, "test": [], "test_estimate": null});
    assert_eq!(started["splits"], splits, "what the interface's request means");
    assert_eq!(started["dataset_fingerprint"].as_str().unwrap().len(), 64);
    let range = &started["estimate"]["llm_calls"];
    let [least, expected, most] = ["min", "expected", "max"].map(|name| range[name].as_u64().unwrap());
    assert!(least <= expected && expected <= most, "{range}");
    assert_eq!(started["estimate"]["cost_usd"], json!(0.0), "practice models are free");

    let result = only(&events, "training_result");
    assert_eq!(result["outcome"], "improved", "{result}");
    assert_eq!(result["stop_reason"], "epochs");
    let [seed, best] = ["seed", "best"].map(|name| result["seed_vs_best"]["val"][name].as_f64().unwrap());
    assert!(best >= seed + 0.3, "{result}");
    let rules = result["prompts"]["rules"].as_str().unwrap();
    assert!(rules != SEED && rules.contains("answer"), "{rules}");
    assert_eq!(&only(&events, "run_completed")["output"], result);
    // The curve never falls, and ends above the seed.
    let scores: Vec<f64> = payloads(&events, "training_epoch_complete")
        .into_iter()
        .map(|epoch| epoch["score"].as_f64().unwrap())
        .collect();
    assert!(scores.is_sorted() && scores[0] > seed, "{scores:?} from {seed}");

    let record = run.record().await;
    assert_eq!((&record["status"], &record["outcome"]), (&json!("succeeded"), &json!("improved")));
    assert_eq!((&record["stop_reason"], &record["error"]), (&json!("epochs"), &Value::Null));
    assert_eq!(
        (&record["usage"], &record["best_checkpoint"]),
        (&result["usage"], &result["best_checkpoint"]["id"])
    );
    assert_eq!(record["best_score"].as_f64(), result["best_checkpoint"]["score"].as_f64());
    assert!(record["started_at"].is_string() && record["finished_at"].is_string());
    let executed =
        events.iter().filter(|it| kind(it) == "training_progress" && it["payload"]["cached"] == false);
    assert_eq!(record["progress"]["done"], executed.count());
    // The practice model answers each case with one call.
    let usage = &record["usage"];
    assert_eq!(usage["by_role"]["task"], record["progress"]["done"]);
    let roles = usage["by_role"].as_object().unwrap().values().map(|calls| calls.as_u64().unwrap());
    assert_eq!(usage["llm_calls"], roles.sum::<u64>());
}

#[tokio::test]
async fn checkpoints_are_listed_and_read_as_they_were_announced() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 3}))).await;
    let stream = run.stream().await;
    let events = events(&stream);
    let announced = payloads(&events, "training_checkpoint");
    assert!(announced.len() > 2, "{:?}", steps(&events));
    let path = checkpoints_of(&workflow.id);
    for checkpoint in &announced {
        let read = get(&client, &format!("{path}/{}", checkpoint["id"].as_str().unwrap())).await;
        assert_eq!(&read.value(), *checkpoint);
        // Byte for byte: the event contains exactly the response's text.
        assert!(stream.contains(&format!("\"payload\":{}", read.text())), "{}", read.text());
        assert_eq!(checkpoint["metadata"]["summary"], checkpoint["metrics"]);
        assert_eq!(
            (&checkpoint["metadata"]["run_id"], &checkpoint["artifact_url"]),
            (&json!(run.id), &Value::Null)
        );
        let config = &checkpoint["runnable_config"]["prompts"]["rules"];
        assert_eq!((&config["requires_grad"], &config["type"]), (&json!(true), &json!("TextTensor")));
    }
    let newest_first: Vec<Value> = announced.iter().rev().map(|checkpoint| (*checkpoint).clone()).collect();
    let list = async |query: &str| get(&client, &format!("{path}{query}")).await.value();
    assert_eq!(list("").await, json!(newest_first));
    assert_eq!(list("?limit=2").await, json!(newest_first[..2]));
    assert_eq!(list("?limit=200&best=false").await, json!(newest_first));
    let best = list("?best=true").await;
    assert_eq!(best.as_array().unwrap().len(), 1, "{best}");
    assert_eq!(best[0]["id"], only(&events, "training_result")["best_checkpoint"]["id"]);
    assert_eq!(best[0]["is_best"], true);

    for (query, pointer) in [
        ("?limit=0", "/limit range"),
        ("?limit=201", "/limit range"),
        ("?limit=x", "/limit range"),
        ("?best=1", "/best type"),
    ] {
        let refused = get(&client, &format!("{path}{query}")).await;
        assert_eq!(
            (refused.refusal().as_str(), refused.problems()),
            ("422 request.invalid", vec![pointer.to_owned()])
        );
    }
    let other = t.workflow().create().await;
    assert_eq!(get(&client, &checkpoints_of(&other.id)).await.value(), json!([]));
    let known = announced[0]["id"].as_str().unwrap();
    for path in [
        format!("{path}/01890000-0000-7000-8000-000000000001"),
        format!("{path}/none"),
        format!("{}/{known}", checkpoints_of(&other.id)),
    ] {
        assert_eq!(get(&client, &path).await.refusal(), "404 checkpoint.not_found", "{path}");
    }
}

/// A worse run does not take over the best flag, and a run with other cases has a separate best.
#[tokio::test]
async fn the_best_checkpoint_is_shared_by_runs_with_equal_cases_and_evaluators() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let first = Run::start(&client, &workflow.id, &training(json!({"epochs": 2}))).await.events().await;
    let best = only(&first, "training_result")["best_checkpoint"].clone();
    let seed =
        Run::start(&client, &workflow.id, &training(json!({"name": "none", "validation_split": 0}))).await;
    let events = seed.events().await;
    let written = only(&events, "training_checkpoint");
    assert_eq!((&written["is_best"], &written["metadata"]["candidate_id"]), (&json!(false), &json!(0)));
    assert_eq!(only(&events, "training_result")["best_checkpoint"], best);
    assert_eq!(seed.record().await["best_checkpoint"], best["id"]);
    let path = checkpoints_of(&workflow.id);
    let old = get(&client, &format!("{path}/{}", best["id"].as_str().unwrap())).await.value();
    assert_eq!(old["is_best"], true, "rows do not change");
    let other = super::training_of(super::cases(8), json!({"name": "none"}));
    let other = Run::start(&client, &workflow.id, &other).await.events().await;
    assert_eq!(only(&other, "training_checkpoint")["is_best"], true);
    let both = get(&client, &format!("{path}?best=true")).await.value();
    assert_eq!(both.as_array().unwrap().len(), 2, "{both}");
}

#[tokio::test]
async fn runs_candidates_and_cases_are_listed() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let first = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    let events = first.events().await;
    let second = Run::start(&client, &workflow.id, &evaluation(3, json!({}))).await;
    second.becomes("succeeded").await;
    let list = get(&client, &runs_of(&workflow.id)).await.value();
    let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, [&json!(second.id), &json!(first.id)], "the newest first");
    let runs = get(&client, &workflow.path("/runs")).await.value();
    assert_eq!(runs["data"], json!([]), "trainings have a separate list");
    let page = get(&client, &format!("{}?limit=1&status=succeeded", runs_of(&workflow.id))).await.value();
    let rest = format!("{}?limit=1&cursor={}", runs_of(&workflow.id), page["next_cursor"].as_str().unwrap());
    assert_eq!(get(&client, &rest).await.value()["data"][0]["id"], json!(first.id));

    let candidates = get(&client, &format!("{}/candidates", first.path)).await.value();
    let announced: Vec<Value> = payloads(&events, "training_candidate").into_iter().cloned().collect();
    assert_eq!(candidates["data"], json!(announced));
    let failed =
        get(&client, &format!("{}/cases?candidate=0&failed=true&limit=200", first.path)).await.value();
    let failed = failed["data"].as_array().unwrap();
    assert!(
        !failed.is_empty() && failed.iter().all(|case| case["passed"] == false && case["candidate_id"] == 0)
    );
    let one = get(&client, &format!("{}/cases?candidate=0&limit=1&trace=true", first.path)).await.value();
    let step = &one["data"][0]["trace"][0];
    assert_eq!((&step["node"], &step["prompts_read"]), (&json!("sort"), &json!(["rules"])), "{one}");
    let call = &step["llm"][0];
    assert_eq!((&step["type"], &call["reply"]), (&json!("llm"), &step["output"]["text"]), "{one}");
    assert_eq!(call["messages"].as_array().unwrap().len(), 2, "{one}");
    assert!(step["inputs"]["messages"].is_array() && step["duration_ms"].is_u64(), "{one}");
    assert!(call["usage"]["output_tokens"].as_u64().unwrap() > 0, "{one}");
    assert!(one["next_cursor"].is_string());
    let of_case = get(&client, &format!("{}/cases?candidate=0&case=3", first.path)).await.value();
    let of_case: Vec<_> =
        of_case["data"].as_array().unwrap().iter().map(|case| &case["case_index"]).collect();
    assert!(!of_case.is_empty() && of_case.iter().all(|index| **index == json!(3)), "{of_case:?}");
    for path in ["/none", "/01890000-0000-7000-8000-000000000001"] {
        assert_eq!(
            get(&client, &format!("{}{path}", runs_of(&workflow.id))).await.refusal(),
            "404 run.not_found"
        );
    }
    // A run of another kind is not a training.
    let path = workflow.path("/runs?wait=20");
    let plain = post(&client, &path, &json!({"inputs": {"message": "x"}})).await.value();
    let plain = plain["id"].as_str().unwrap();
    assert_eq!(
        get(&client, &format!("{}/{plain}", runs_of(&workflow.id))).await.refusal(),
        "404 run.not_found"
    );
}
