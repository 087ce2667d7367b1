//! Demos that a training finds: in model requests, checkpoints, versions and results, also after `kill -9`.

use integration_tests::{AnswerExt, Client, TestService, Workflow, until};
use serde_json::{Value, json};
use store::testing::TestDatabase;

use super::kills::{assert_undisturbed, count_in_events, kill_and_resume, started};
use super::model::{ModelServer, Reply};
use super::{
    CASES, Run, SEED, checkpoints_of, get, only, payloads, post, prompts, runs_of, sorting, training,
};
use crate::crash::folder;
use crate::crash::service::Service;

/// A config whose prompt may get demos.
fn config() -> Value {
    let mut config = prompts(SEED);
    config["prompts"]["rules"]["demos_trainable"] = json!(true);
    config
}

/// The texts of messages with this role.
fn message_texts<'r>(request: &'r Value, role: &str) -> Vec<&'r str> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] == role).map(|it| it["content"].as_str().unwrap()).collect()
}

/// Knows every second case, and the labels in its demos.
fn answer(request: &Value) -> String {
    let input = *message_texts(request, "user").last().unwrap();
    let place = CASES.iter().position(|(message, _)| *message == input).unwrap_or_default();
    let label = CASES[place].1;
    let is_known = place.is_multiple_of(2) || message_texts(request, "assistant").contains(&label);
    if is_known { label } else { "unknown" }.to_owned()
}

async fn shown(client: &Client, workflow: &str, optimizer: Value) -> (Run, Vec<Value>) {
    let run = Run::start(client, workflow, &training(optimizer)).await;
    let events = run.events().await;
    (run, events)
}

/// A workflow whose model is this server.
async fn asking(t: &TestService) -> Workflow {
    t.workflow().graph(sorting("openai/m")).config(config()).create().await
}

#[tokio::test]
async fn a_training_with_fewshot_returns_demos_and_sends_them_to_the_model() {
    let models = ModelServer::start(|_, request| Reply::Text(answer(request))).await;
    let t = models.service().await;
    let (client, workflow) = (t.anonymous(), asking(&t).await);
    let (run, events) =
        shown(&client, &workflow.id, json!({"name": "fewshot", "validation_split": 0.5})).await;
    let result = only(&events, "training_result");
    assert_eq!(
        (&result["outcome"], &result["prompts"]["rules"]),
        (&json!("improved"), &json!(SEED)),
        "{result}"
    );
    let demos = result["demos"]["rules"].as_array().unwrap();
    assert!((1..=4).contains(&demos.len()), "{result}");
    let train = only(&events, "training_started")["splits"]["train"].as_array().unwrap();
    for demo in demos {
        let place = CASES.iter().position(|(message, _)| demo["inputs"] == json!({"user": message})).unwrap();
        assert!(train.contains(&json!(place)), "{demo}");
        assert_eq!(demo["output"], CASES[place].1);
    }
    assert_eq!(result["usage"]["by_role"]["optimizer"], 0, "no model writes demos");
    assert_eq!(result["usage"]["llm_calls"], models.request_count());

    // The model receives them as pairs between the system message and the case.
    let roles = |request: &Value| -> Vec<String> {
        request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["role"].as_str().unwrap().to_owned())
            .collect()
    };
    let pairs: Vec<Value> =
        demos.iter().flat_map(|it| [it["inputs"]["user"].clone(), it["output"].clone()]).collect();
    let expected = [vec!["system"], ["user", "assistant"].repeat(demos.len()), vec!["user"]].concat();
    let requests = models.requests();
    let with_pairs = requests.iter().find(|request| {
        let contents: Vec<Value> =
            request["messages"].as_array().unwrap().iter().map(|it| it["content"].clone()).collect();
        contents[1..contents.len() - 1] == pairs[..]
    });
    assert_eq!(roles(with_pairs.expect("a request with the pairs")), expected);

    // Each candidate names its demos, and its diff shows them.
    let candidates = payloads(&events, "training_candidate");
    assert!(!candidates.is_empty() && candidates.len() <= 8);
    for candidate in &candidates {
        let changed = &candidate["prompts_changed"][0];
        assert_eq!((&changed["name"], &changed["text"]), (&json!("rules"), &json!(SEED)));
        let demos = changed["demos"].as_array().unwrap();
        let added = changed["diff"].as_str().unwrap().lines().filter(|line| line.starts_with("+"));
        assert!(!demos.is_empty() && added.count() <= demos.len(), "{changed}");
    }

    // The checkpoint has the demos and the text, a version keeps them, and another training starts from them.
    let written = payloads(&events, "training_checkpoint");
    let returned =
        written.iter().rev().find(|it| it["runnable_config"]["prompts"]["rules"]["demos"] == json!(demos));
    let returned = returned.expect("a checkpoint with the demos");
    assert_eq!(returned["runnable_config"]["prompts"]["rules"]["text"], SEED);
    let versions = workflow.path("/versions");
    let version = post(&client, &versions, &json!({"checkpoint": returned["id"]})).await.expect(201);
    let number = version.value()["version"].clone();
    let saved = get(&client, &format!("{versions}/{number}")).await.value();
    assert_eq!(saved["runnable_config"]["prompts"]["rules"]["demos"], json!(demos));
    let resumes = [json!({"checkpoint_id": returned["id"]}), json!({"run_id": run.id})];
    for resume in resumes {
        let (_, events) = shown(&client, &workflow.id, json!({"name": "none", "resume": resume})).await;
        assert_eq!(only(&events, "training_result")["demos"]["rules"], json!(demos), "{resume}");
        let checkpoint = only(&events, "training_checkpoint");
        assert_eq!(checkpoint["runnable_config"], returned["runnable_config"], "{resume}");
    }
}

#[tokio::test]
async fn auto_begins_with_demos_that_help() {
    let models = ModelServer::start(|_, request| Reply::Text(answer(request))).await;
    let t = models.service().await;
    let (client, workflow) = (t.anonymous(), asking(&t).await);
    let optimizer =
        json!({"name": "auto", "epochs": 1, "validation_split": 0.5, "budget": {"max_llm_calls": 300}});
    let (_, events) = shown(&client, &workflow.id, optimizer).await;
    let result = only(&events, "training_result");
    assert_eq!(result["outcome"], "improved", "{result}");
    assert!(!result["demos"]["rules"].as_array().unwrap().is_empty(), "{result}");
    let first = &payloads(&events, "training_candidate")[0];
    assert_eq!((&first["decision"], &first["epoch"]), (&json!("accepted"), &json!(0)));
    assert!(first["prompts_changed"][0]["demos"].is_array());
    assert!(result["usage"]["llm_calls"].as_u64().unwrap() <= 300);
}

#[tokio::test]
async fn fewshot_without_a_prompt_for_demos_is_rejected_before_any_call() {
    let models = ModelServer::start(|_, request| Reply::Text(answer(request))).await;
    let t = models.service().await;
    let client = t.anonymous();
    let plain = t.workflow().graph(sorting("openai/m")).config(prompts(SEED)).create().await;
    let request = training(json!({"name": "fewshot"}));
    let refused = post(&client, &runs_of(&plain.id), &request).await;
    assert_eq!(
        (refused.status, refused.problems()),
        (422, vec!["/runnable_config/prompts no_trainable_demos".to_owned()])
    );
    // The request may contain demos, and then an invalid demo is reported.
    let mut given = request.clone();
    given["runnable_config"] = config();
    given["runnable_config"]["prompts"]["rules"]["demos"] =
        json!(vec![json!({"inputs": {}, "output": 1}); 17]);
    let refused = post(&client, &runs_of(&plain.id), &given).await;
    assert_eq!(refused.problems(), ["/runnable_config/prompts/rules/demos too_many"]);
    assert_eq!(
        (models.request_count(), get(&client, &checkpoints_of(&plain.id)).await.value()),
        (0, json!([]))
    );
}

/// A training with the practice model, which follows the demos most similar to a message.
#[tokio::test]
async fn a_kill_changes_no_demo() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-fewshot"), Some(database.dsn()));
    let client = started(&mut service).await;
    let mut body = training(json!({"name": "fewshot", "validation_split": 0.5}));
    body["runnable_config"] = config();
    let model = "practice/classify@60ms";
    let undisturbed = super::kills::workflow(&client, model).await;
    let undisturbed = Run::start(&client, &undisturbed, &body).await.events().await;
    assert!(payloads(&undisturbed, "training_candidate").len() > 2);
    let mut run = Run::start(&client, &super::kills::workflow(&client, model).await, &body).await;
    for stage in
        ["\"phase\":\"train\"", "\"type\":\"training_candidate\"", "\"type\":\"training_epoch_complete\""]
    {
        until(stage, async || count_in_events(&database, &run, stage).await > 0).await;
        kill_and_resume(&database, &mut service, &mut run).await;
    }
    assert_undisturbed(&database, &run, &undisturbed).await;
    service.stop();
}
