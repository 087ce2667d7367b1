//! A new training from the prompts of an earlier one.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

use super::{Run, SEED, checkpoints_of, get, only, payloads, post, prompts, runs_of, training, workflow};

/// The prompt's text in a checkpoint.
fn text(checkpoint: &Value) -> &Value {
    &checkpoint["runnable_config"]["prompts"]["rules"]["text"]
}

#[tokio::test]
async fn a_training_starts_from_a_checkpoint_a_run_or_a_number() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let first = Run::start(&client, &workflow.id, &training(json!({"epochs": 2}))).await;
    let events = first.events().await;
    let written = payloads(&events, "training_checkpoint");
    let returned = &only(&events, "training_result")["prompts"]["rules"];
    // The first checkpoint is not the best one.
    assert!(text(written[0]) != returned && text(written[0]) != SEED);
    let resumes = [
        (json!({"checkpoint_id": written[0]["id"]}), text(written[0])),
        (json!({"config_version": 1}), text(written[0])),
        (json!({"run_id": first.id}), returned),
    ];
    for (resume, expected) in resumes {
        // Scored on the same cases, so that scores are comparable.
        let optimizer = json!({"name": "none", "validation_split": 0, "resume": resume});
        let run = Run::start(&client, &workflow.id, &training(optimizer)).await;
        let events = run.events().await;
        let started = only(&events, "training_started");
        assert_eq!((&started["resumed_from"], &started["optimizer"]["resume"]), (&resume, &resume));
        let seed = only(&events, "training_checkpoint");
        assert_eq!((text(seed), &seed["metadata"]["candidate_id"]), (expected, &json!(0)), "{resume}");
        assert_eq!(&only(&events, "training_result")["prompts"]["rules"], expected, "{resume}");
        let known = written.iter().find(|checkpoint| text(checkpoint) == expected).unwrap();
        assert_eq!(seed["metadata"]["score"], known["metadata"]["score"], "the same prompts, the same score");
        assert_eq!(seed["is_best"], false, "no better than the existing best");
    }
    // A training without `resume` starts from the version's prompts, which training does not change.
    let run = Run::start(&client, &workflow.id, &training(json!({"name": "none"}))).await;
    let events = run.events().await;
    assert_eq!(only(&events, "training_started").get("resumed_from"), None);
    assert_eq!(text(only(&events, "training_checkpoint")), SEED);
}

#[tokio::test]
async fn a_training_continues_where_another_one_ended() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let first =
        Run::start(&client, &workflow.id, &training(json!({"epochs": 1, "minibatch_size": 24}))).await;
    let before = only(&first.events().await, "training_result").clone();
    let next = training(json!({"epochs": 3, "resume": {"run_id": first.id}}));
    let second = Run::start(&client, &workflow.id, &next).await;
    let after = only(&second.events().await, "training_result").clone();
    let best = |result: &Value| result["best_checkpoint"]["score"].as_f64().unwrap();
    assert!(best(&after) >= best(&before) && best(&after) > 0.9, "{before} {after}");
}

#[tokio::test]
async fn the_request_config_overrides_single_prompts_of_the_version() {
    let t = TestService::start().await;
    let client = t.anonymous();
    let mut config = prompts(SEED);
    config["prompts"]["tone"] = json!({"text": "Be brief.", "requires_grad": false});
    config["configurable"] = json!({"thread_id": "t1", "desk": 7});
    config["tags"] = json!(["a"]);
    let workflow = t.workflow().graph(super::sorting("practice/classify")).config(config).create().await;
    let mut body = training(json!({"name": "none"}));
    body["runnable_config"] = json!({"prompts": {"rules": {"text": "Sort it: shipping, billing or account.", "requires_grad": true}}});
    let events = Run::start(&client, &workflow.id, &body).await.events().await;
    let config = &only(&events, "training_checkpoint")["runnable_config"];
    assert_eq!(config["prompts"]["rules"], body["runnable_config"]["prompts"]["rules"], "the whole prompt");
    assert_eq!((&config["prompts"]["tone"]["text"], &config["tags"]), (&json!("Be brief."), &json!(["a"])));
    // Keys of a single run are not part of a checkpoint.
    assert_eq!(config["configurable"], json!({"desk": 7}));
    // A checkpoint's config is valid as a new run's config.
    let mut next = training(json!({"name": "none"}));
    next["runnable_config"] = config.clone();
    let events = Run::start(&client, &workflow.id, &next).await.events().await;
    assert_eq!(&only(&events, "training_checkpoint")["runnable_config"]["prompts"], &config["prompts"]);
}

#[tokio::test]
async fn a_training_cannot_resume_from_missing_checkpoints_or_runs() {
    let t = TestService::start().await;
    let (client, one, other) = (
        t.anonymous(),
        workflow(&t, "practice/classify").await,
        workflow(&t, "practice/classify@1000ms").await,
    );
    let run = Run::start(&client, &one.id, &training(json!({"name": "none"}))).await;
    run.becomes("succeeded").await;
    let checkpoint = get(&client, &checkpoints_of(&one.id)).await.value()[0]["id"].clone();
    // Its own run has no result yet.
    let running = Run::start(&client, &other.id, &training(json!({"epochs": 1}))).await;
    let path = one.path("/runs?wait=20");
    let plain = post(&client, &path, &json!({"inputs": {"message": "x"}})).await.value()["id"].clone();
    let runs = t.scalar("SELECT count(*) FROM runs").await;
    for (workflow, resume) in [
        (&other, json!({"checkpoint_id": checkpoint})),
        (&other, json!({"run_id": run.id})),
        (&other, json!({"config_version": 1})),
        (&other, json!({"run_id": running.id})),
        (&one, json!({"config_version": 2})),
        (&one, json!({"run_id": plain})),
        (&one, json!({"checkpoint_id": "x"})),
    ] {
        let refused = post(&client, &runs_of(&workflow.id), &training(json!({"resume": resume}))).await;
        assert_eq!(refused.problems(), ["/training/optimizer/resume checkpoint_not_found"], "{resume}");
    }
    for (resume, problem) in
        [(json!({}), "required"), (json!({"run_id": run.id, "config_version": 1}), "conflict")]
    {
        let refused = post(&client, &runs_of(&one.id), &training(json!({"resume": resume}))).await;
        assert_eq!(refused.problems(), [format!("/training/optimizer/resume {problem}")], "{resume}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, runs);
    running.controlled("cancel").await;
}
