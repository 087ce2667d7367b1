//! The optimizer model's input: nothing from cases that decide or test.

use integration_tests::{AnswerExt, TestService, until};
use serde_json::{Value, json};

use super::model::{COLOURS, ModelServer, Reply, colours, is_of_optimizer, painter, wants_prompt};
use super::{Run, checkpoints_of, only, payloads, prompts, runs_of, sorting, steps, training_of};

/// Cases in all three splits, each with a token that names its split.
fn split_cases() -> Vec<Value> {
    colours(&[("train", 2), ("val", 2), ("test", 2)])
}

async fn colour_workflow(t: &TestService) -> String {
    t.workflow().graph(sorting("openai/task")).config(prompts(COLOURS)).create().await.id
}

/// An optimizer with a separate model.
fn optimizer(name: &str) -> Value {
    json!({"name": name, "epochs": 2, "models": {"optimizer": {"model": "openai/reflector"}}})
}

#[tokio::test]
async fn validation_and_test_cases_are_never_sent_to_the_optimizer() {
    for name in ["textgrad", "gepa", "auto"] {
        let model = ModelServer::start(|_, request| Reply::Text(painter(request))).await;
        let t = model.service().await;
        let body = training_of(split_cases(), optimizer(name));
        let run = Run::start(&t.anonymous(), &colour_workflow(&t).await, &body).await;
        let events = run.events().await;
        let result = only(&events, "training_result");
        let (proposals, tasks): (Vec<Value>, Vec<Value>) =
            model.requests().into_iter().partition(|request| request["model"] == "reflector");
        assert!(proposals.iter().all(is_of_optimizer) && !tasks.iter().any(is_of_optimizer), "{name}");
        assert_eq!(result["usage"]["by_role"]["optimizer"], proposals.len(), "{name}");
        assert!(proposals.iter().any(wants_prompt), "{name}");
        for request in &proposals {
            let text = request.to_string();
            assert!(!text.contains("canary-val") && !text.contains("canary-test"), "{name}: {text}");
        }
        // The task's model sees each of them.
        for split in ["train", "val", "test"] {
            let canary = format!("canary-{split}-zorp0");
            assert!(tasks.iter().any(|request| request.to_string().contains(&canary)), "{name}: {split}");
        }
        // Metadata is for evaluators: no model receives any of it.
        assert!(!model.requests().iter().any(|request| request.to_string().contains("-note")), "{name}");
        assert_test_comes_last(&events, name);
        assert_eq!(result["outcome"], "improved", "{name}: {result}");
        assert_eq!(result["seed_vs_best"]["test"], json!({"seed": 0.0, "best": 1.0}), "{name}");
    }
}

#[tokio::test]
async fn a_candidate_has_the_rationale_of_its_model() {
    let model = ModelServer::start(|number, request| {
        Reply::Text(match wants_prompt(request) {
            true => format!(
                "It names no word.\n<new_prompt>{COLOURS}\nzorp means red.\nNote {number}.</new_prompt>"
            ),
            false => painter(request),
        })
    })
    .await;
    let t = model.service().await;
    let body = training_of(split_cases(), optimizer("textgrad"));
    let events = Run::start(&t.anonymous(), &colour_workflow(&t).await, &body).await.events().await;
    let candidates = payloads(&events, "training_candidate");
    assert!(!candidates.is_empty());
    assert!(candidates.iter().all(|it| it["rationale"] == "It names no word."), "{candidates:?}");
}

/// Asserts that the test split is used once, after all decisions, with only the seed and the returned prompts.
fn assert_test_comes_last(events: &[Value], name: &str) {
    let progress = payloads(events, "training_progress");
    let first = progress.iter().position(|case| case["split"] == "test").expect("the test split is used");
    for (at, case) in progress.iter().enumerate() {
        assert_eq!(case["phase"] == "test", case["split"] == "test", "{name}: {case}");
        assert_eq!(case["phase"] == "test", at >= first, "{name}: the test comes last");
    }
    let mut candidates: Vec<&Value> = progress[first..].iter().map(|case| &case["candidate_id"]).collect();
    candidates.dedup();
    assert!(candidates.len() <= 2 && candidates[0] == 0, "{name}: {candidates:?}");
    let last_epoch = events.iter().rposition(|event| event["type"] == "training_epoch_complete");
    let test = events.iter().position(|event| event["payload"]["phase"] == "test");
    assert!(last_epoch < test, "{name}");
}

#[tokio::test]
async fn a_text_that_copies_a_held_out_case_is_rejected_with_a_warning() {
    for split in ["val", "test"] {
        let copied = format!("Handle zorp in a polite letter of today canary-{split}-zorp0");
        let model = ModelServer::start(move |_, request| {
            Reply::Text(match wants_prompt(request) {
                true => format!("<new_prompt>{COLOURS} {copied}</new_prompt>"),
                false => painter(request),
            })
        })
        .await;
        let t = model.service().await;
        let body = training_of(split_cases(), json!({"epochs": 1}));
        let run = Run::start(&t.anonymous(), &colour_workflow(&t).await, &body).await;
        let events = run.events().await;
        let codes = payloads(&events, "training_warning").into_iter().map(|it| it["code"].as_str().unwrap());
        assert_eq!(codes.collect::<Vec<_>>(), ["leakage"], "{split}: {:?}", steps(&events));
        assert_eq!(payloads(&events, "training_candidate").len(), 0, "{split}");
        assert_eq!(only(&events, "training_result")["prompts"]["rules"], COLOURS, "{split}");
    }
}

/// Trains a prompt with an input in it; returns the texts of its candidates.
async fn trained_texts(model: &ModelServer, seed: &str) -> Vec<String> {
    let t = model.service().await;
    let workflow = t.workflow().graph(sorting("openai/task")).config(prompts(seed)).create().await;
    let mut body = training_of(colours(&[("train", 1), ("val", 1)]), json!({"epochs": 1}));
    body["inputs"] = json!({"desk": "seven"});
    let events = Run::start(&t.anonymous(), &workflow.id, &body).await.events().await;
    let candidates = payloads(&events, "training_candidate");
    assert!(!candidates.is_empty(), "{:?}", steps(&events));
    let text = |candidate: &Value| candidate["prompts_changed"][0]["text"].as_str().unwrap().to_owned();
    candidates.into_iter().map(text).collect()
}

/// The seed's placeholders survive, whatever the optimizer's model writes.
#[tokio::test]
async fn a_text_that_loses_a_placeholder_is_requested_again() {
    const SEED: &str = "Name the colour. Desk: {{ inputs.desk }}.";
    let model = ModelServer::start(|_, request| {
        Reply::Text(match wants_prompt(request) {
            // The second attempt begins with the same request, and includes the first one.
            true if request["messages"].as_array().unwrap().len() == 2 => {
                "<new_prompt>zorp means red.</new_prompt>".to_owned()
            }
            true => format!("<new_prompt>{SEED}\nzorp means red.</new_prompt>"),
            false => painter(request),
        })
    })
    .await;
    for text in trained_texts(&model, SEED).await {
        assert!(text.contains("{{ inputs.desk }}"), "{text}");
    }
    let again = model.requests().into_iter().filter(|request| request.to_string().contains("must contain"));
    assert!(again.count() > 0, "the model learns the problem");
    assert!(
        model.requests().iter().any(|request| request.to_string().contains("Desk: seven.")),
        "it is filled in for the task"
    );
}

/// Visitors' texts reach the optimizer's model, whose texts are templates: they may only have the seed's tags.
#[tokio::test]
async fn a_text_that_adds_a_tag_is_requested_again() {
    const SEED: &str = "Name the colour. Desk: {{ inputs.desk }}.";
    for tag in ["{{ config }}", "{% if inputs.desk %}x{% endif %}", "{# note #}", "[[vault]]"] {
        let model = ModelServer::start(move |_, request| {
            Reply::Text(match wants_prompt(request) {
                true if request["messages"].as_array().unwrap().len() == 2 => {
                    format!("<new_prompt>{SEED} {tag}\nzorp means red.</new_prompt>")
                }
                true => format!("<new_prompt>{SEED}\nzorp means red.</new_prompt>"),
                false => painter(request),
            })
        })
        .await;
        for text in trained_texts(&model, SEED).await {
            assert!(!text.contains(tag), "{text}");
        }
        let names_problem = |request: &Value| request.to_string().contains("must not contain");
        assert!(model.requests().iter().any(names_problem), "the model learns the problem with {tag}");
    }
}

/// Cases from feedback and prompts made from them may quote the id of a thread, which gives access to it.
#[tokio::test]
async fn thread_ids_are_hidden_in_the_results_of_a_training() {
    const THREAD: &str = "thr_0123456789abcdef0123456789abcdef";
    let model = ModelServer::start(|_, request| {
        let text = painter(request);
        Reply::Text(match wants_prompt(request) {
            true => text.replace("</new_prompt>", &format!("\nSeen in {THREAD}.</new_prompt>")),
            false => text,
        })
    })
    .await;
    let t = model.builder().with_bootstrap_token().start().await;
    let workflow = colour_workflow(&t).await;
    let mut cases = split_cases();
    // The leak guard reads the other splits.
    for case in cases.iter_mut().filter(|case| case["metadata"]["split"] == "train") {
        let message = format!("{} {THREAD}", case["inputs"]["message"].as_str().unwrap());
        case["inputs"]["message"] = json!(message);
    }
    let token = t.root().token(&["workflows:read"], &[]).await;
    let (owner, viewer) = (t.root(), t.bearer(&token));
    let body = training_of(cases, optimizer("textgrad"));
    let run = owner.post(&runs_of(&workflow), &body).await.expect(202).member("id");
    let (path, checkpoints) = (format!("{}/{run}", runs_of(&workflow)), checkpoints_of(&workflow));
    until("the end of the training", async || owner.get(&path).await.value()["status"] == "succeeded").await;
    let best = owner.get(&path).await.member("best_checkpoint");
    for address in [
        format!("{path}/cases?limit=200"),
        format!("{path}/candidates"),
        format!("{path}/report"),
        format!("{path}/report?format=html"),
        checkpoints.clone(),
        format!("{checkpoints}/{best}"),
    ] {
        let full = owner.get(&address).await.expect(200).text();
        assert!(full.contains(THREAD), "{address}: {full}");
        let hidden = viewer.get(&address).await.expect(200).text();
        assert!(!hidden.contains(THREAD) && hidden.contains("thr_hidden"), "{address}: {hidden}");
    }
    let events = viewer.stream(&format!("{path}/events"), &[]).await;
    assert!(!events.contains(THREAD) && events.contains("thr_hidden"), "{events}");
}
