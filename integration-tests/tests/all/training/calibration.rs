//! Judge models are compared with people on recorded outputs, before any execution.

use integration_tests::{AnswerExt, TestService, until};
use serde_json::{Value, json};
use store::testing::TestDatabase;

use super::kills::{assert_undisturbed, count_in_events, kill_and_resume, started, workflow};
use super::model::{ModelServer, Reply, is_of_optimizer, last_message};
use super::{Run, SEED, get, kind, only, payloads, prompts, sorting, training_of};
use crate::crash::folder;
use crate::crash::service::Service;

/// `count` cases with recorded outputs. People like every second one; `liked`: whether its text is one that the judge
/// likes.
fn recorded(count: usize, liked: impl Fn(usize) -> bool) -> Vec<Value> {
    let case = |place: usize| {
        let output = if liked(place) { "kind words" } else { "cold words" };
        json!({"inputs": {"message": format!("message {place}")},
               "metadata": {"output": output, "human": {"passed": place.is_multiple_of(2)}}})
    };
    (0..count).map(case).collect()
}

/// A task with cold replies, and a judge that likes kind ones.
async fn models() -> ModelServer {
    models_after(0).await
}

/// Like [`models`], with replies after this many milliseconds.
async fn models_after(millis: u64) -> ModelServer {
    ModelServer::start(move |_, request| {
        let text = match (request["model"] == "judge", is_of_optimizer(request)) {
            (true, _) => {
                let score = if last_message(request).contains("kind words") { 0.9 } else { 0.1 };
                json!({"reasoning": "x", "score": score, "feedback": "be kind"}).to_string()
            }
            (false, true) => "<new_prompt>Say kind words.</new_prompt>".to_owned(),
            (false, false) => "cold words".to_owned(),
        };
        if millis == 0 { Reply::Text(text) } else { Reply::After(millis, text) }
    })
    .await
}

/// A training request that calibrates `tone`.
fn request(cases: Vec<Value>, mut optimizer: Value) -> Value {
    optimizer["models"] = json!({"judge": {"model": "openai/judge"}});
    let mut body = training_of(cases, optimizer);
    body["training"]["evaluators"] = json!([
        {"id": "tone", "entrypoint": "builtin:llm_judge", "config": {"rubric": "Is it kind?"}},
        {"id": "length", "entrypoint": "builtin:length", "config": {"min": 1}, "role": "metric_only"},
    ]);
    body
}

async fn training_events(t: &TestService, cases: Vec<Value>, optimizer: Value) -> Vec<Value> {
    let workflow = t.workflow().graph(sorting("openai/task")).config(prompts(SEED)).create().await;
    Run::start(&t.anonymous(), &workflow.id, &request(cases, optimizer)).await.events().await
}

fn calibration(events: &[Value]) -> Vec<&Value> {
    let cases = payloads(events, "training_progress").into_iter();
    cases.filter(|case| case["phase"] == "calibration").collect()
}

fn warnings(events: &[Value]) -> Vec<(&str, &str)> {
    payloads(events, "training_warning")
        .into_iter()
        .map(|warning| (warning["code"].as_str().unwrap(), warning["message"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_judge_that_agrees_with_people_causes_no_warning() {
    let model = models().await;
    let t = model.service().await;
    let optimizer = json!({"name": "none", "repeats": 2});
    let events = training_events(&t, recorded(60, |place| place.is_multiple_of(2)), optimizer).await;
    let judged = calibration(&events);
    let places: Vec<u64> = judged.iter().map(|case| case["case_index"].as_u64().unwrap()).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..50), "the first 50, each once: {places:?}");
    for case in &judged {
        let is_liked = case["case_index"].as_u64().unwrap().is_multiple_of(2);
        assert_eq!(case["evaluations"]["tone"]["passed"], is_liked, "{case}");
        assert_eq!((&case["evaluations"]["length"]["skip"], case.get("candidate_id")), (&json!(true), None));
        assert_eq!(case["output"], if is_liked { "kind words" } else { "cold words" });
    }
    let progress = payloads(&events, "training_progress");
    assert!(progress[..50].iter().all(|case| case["phase"] == "calibration"), "before everything else");
    assert!(warnings(&events).iter().all(|(code, _)| *code != "judge_uncalibrated"));
    // The calibration executes nothing: the task's model is called only for the other cases.
    let usage = &only(&events, "training_result")["usage"];
    let executed = progress.iter().filter(|case| case["cached"] == false).count() - 50;
    assert_eq!(usage["by_role"]["task"], executed);
}

#[tokio::test]
async fn a_judge_that_agrees_by_chance_causes_a_warning() {
    let model = models().await;
    let t = model.service().await;
    let events = training_events(&t, recorded(20, |place| place % 4 < 2), json!({"name": "none"})).await;
    assert_eq!(calibration(&events).len(), 20);
    let found = warnings(&events);
    let (_, message) = found.iter().find(|(code, _)| *code == "judge_uncalibrated").expect("a warning");
    assert!(
        message.contains("'tone'") && message.contains("κ = 0.00") && message.contains("20 outputs"),
        "{message}"
    );
}

#[tokio::test]
async fn calibration_needs_20_recorded_outputs() {
    let model = models().await;
    let t = model.service().await;
    let events = training_events(&t, recorded(19, |_| true), json!({"name": "none"})).await;
    assert!(calibration(&events).is_empty() && events.iter().any(|event| kind(event) == "training_result"));
}

/// A budget that covers only the first judgements ends the run with a result.
#[tokio::test]
async fn calibration_is_paid_from_the_budget() {
    let model = models().await;
    let t = model.service().await;
    let optimizer = json!({"name": "none", "budget": {"max_llm_calls": 7}});
    let events = training_events(&t, recorded(20, |_| true), optimizer).await;
    let result = only(&events, "training_result");
    assert_eq!((&result["stop_reason"], model.request_count()), (&json!("budget"), 7), "{result}");
    assert_eq!(calibration(&events).len(), 7);
    assert_eq!(result["usage"]["by_role"]["task"], 0);
}

/// Judgements from before the kill are not repeated, and κ is the same.
#[tokio::test]
async fn kills_during_the_calibration_change_no_kappa() {
    const IN_FLIGHT: usize = 4;
    const KILLS: usize = 2;
    let model = models_after(60).await;
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-calibration"), Some(database.dsn()));
    service.set("SERVICE_MODEL_BASE_URL", model.base_url());
    let client = started(&mut service).await;
    // People and the judge agree on three of four.
    let body = request(recorded(24, |place| place % 8 < 2 || place % 4 == 2), json!({"name": "none"}));
    let undisturbed = Run::start(&client, &workflow(&client, "openai/task").await, &body).await;
    let events = undisturbed.events().await;
    let kappa =
        async |run: &Run| get(&run.client, &format!("{}/report", run.path)).await.value()["judges"].clone();
    let expected = kappa(&undisturbed).await;
    assert!(expected[0]["kappa"].as_f64().unwrap() > 0.0, "{expected}");
    let calls = model.request_count();
    let mut run = Run::start(&client, &workflow(&client, "openai/task").await, &body).await;
    for judged in [3, 12] {
        let phase = "\"phase\":\"calibration\"";
        until("outputs are judged", async || count_in_events(&database, &run, phase).await >= judged).await;
        kill_and_resume(&database, &mut service, &mut run).await;
    }
    assert_undisturbed(&database, &run, &events).await;
    assert_eq!(calibration(&run.events().await).len(), 24, "each once");
    assert_eq!(kappa(&run).await, expected);
    let repeated = model.request_count() - 2 * calls;
    assert!(repeated <= IN_FLIGHT * KILLS, "{repeated} calls were repeated");
    service.stop();
}
