//! Changes to a workflow's own fields.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, JSON, TestService, chat};
use serde_json::{Value, json};
use wire::{UpdateChatSettings, UpdateWorkflow};

async fn put(t: &TestService, workflow: &str, body: &Value) -> Answer {
    let path = format!("/api/workflows/{workflow}");
    t.send("PUT", &path, &[JSON], body.to_string()).await
}

/// A record without the time of its last change.
fn without_update_time(mut record: Value) -> Value {
    record.as_object_mut().unwrap().remove("updated_at");
    record
}

#[tokio::test]
async fn each_field_can_be_changed_independently() {
    let t = TestService::start().await;
    let new = json!({"name": "Desk", "description": "Sorts.", "tags": ["a"]});
    let made = t.post("/api/workflows", &new.to_string()).await.value();
    let id = made["id"].as_str().unwrap();
    let prompts = json!([{"label": "Order", "prompt": "Where is my order?", "icon": "cube"}]);
    let models = json!([{"id": "openai/a", "label": "A", "default": true}]);
    let mut expected = made.clone();
    for (change, pointer, value) in [
        (json!({"name": " New desk "}), "/name", json!("New desk")),
        (json!({"handle": "front-desk"}), "/handle", json!("front-desk")),
        (json!({"description": "Sorts well."}), "/description", json!("Sorts well.")),
        (json!({"description": null}), "/description", json!(null)),
        (json!({"tags": ["b", "c"]}), "/tags", json!(["b", "c"])),
        (json!({"tags": []}), "/tags", json!([])),
        (json!({"chat": {"start_prompts": prompts}}), "/chat/start_prompts", prompts.clone()),
        (json!({"chat": {"models": models}}), "/chat/models", models.clone()),
        (json!({"chat": {"start_prompts": []}}), "/chat/start_prompts", json!([])),
    ] {
        let before = t.get(&format!("/api/workflows/{id}")).await.value();
        let answer = put(&t, id, &change).await;
        *expected.pointer_mut(pointer).unwrap() = value;
        assert_eq!(
            (answer.status, without_update_time(answer.value())),
            (200, without_update_time(expected.clone())),
            "{change}"
        );
        assert_eq!(t.get(&format!("/api/workflows/{id}")).await.value(), answer.value());
        let at = |record: &Value| record["updated_at"].as_str().unwrap().to_owned();
        assert!(at(&answer.value()) > at(&before), "{change}");
    }
}

#[tokio::test]
async fn a_change_without_effect_leaves_the_record_unchanged() {
    let t = TestService::start().await;
    let new = json!({"name": "Desk", "description": "Sorts.", "tags": ["a"]});
    let made = t.post("/api/workflows", &new.to_string()).await.value();
    for same in [
        json!({}),
        json!({"name": "Desk"}),
        json!({"name": " Desk ", "handle": "desk", "description": "Sorts.", "tags": ["a"]}),
        json!({"name": null, "handle": null, "tags": null, "chat": null}),
        json!({"chat": {}}),
        json!({"chat": {"start_prompts": [], "models": []}}),
    ] {
        let answer = put(&t, "desk", &same).await;
        assert_eq!((answer.status, answer.value()), (200, made.clone()), "{same}");
    }
}

#[tokio::test]
async fn all_problems_of_a_change_are_reported_and_nothing_is_changed() {
    let t = TestService::start().await;
    let made = t.post("/api/workflows", r#"{"name": "Desk"}"#).await.value();
    let wrong = json!({"name": "", "handle": "No", "description": 7, "tags": ["ok", ""], "is_public": true,
                       "chat": {"models": [{"id": "a"}], "prompts": []}});
    let answer = put(&t, "desk", &wrong).await;
    assert_eq!(answer.refusal(), "422 request.invalid");
    assert_eq!(
        answer.problems(),
        [
            "/name length",
            "/handle format",
            "/description type",
            "/tags/1 length",
            "/chat/models/0/label required",
            "/chat/prompts unknown_field",
            "/is_public unknown_field",
        ]
    );
    assert_eq!(put(&t, "desk", &json!([])).await.refusal(), "422 request.invalid");
    assert_eq!(put(&t, "desk?force=true", &json!({})).await.problems(), ["/force unknown_parameter"]);
    assert_eq!(put(&t, "nobody", &wrong).await.refusal(), "404 workflow.not_found");
    assert_eq!(
        t.send("PUT", "/api/workflows/desk", &[JSON], "").await.refusal(),
        "400 request.invalid_json",
        "a change has content"
    );
    assert_eq!(t.get("/api/workflows/desk").await.value(), made);
}

#[tokio::test]
async fn a_handle_can_be_changed_to_a_free_one() {
    let t = TestService::start().await;
    for handle in ["one", "two", "gone"] {
        t.post("/api/workflows", &json!({"name": "x", "handle": handle}).to_string()).await;
    }
    t.client().archive("gone").await.unwrap();
    let conflict = put(&t, "one", &json!({"name": "y", "handle": "two"})).await;
    assert_eq!(conflict.refusal(), "409 workflow.handle_taken");
    assert_eq!(t.get("/api/workflows/one").await.value()["name"], "x", "no part of the change was applied");
    let archived = put(&t, "one", &json!({"handle": "gone"})).await;
    assert_eq!(archived.refusal(), "409 workflow.handle_taken");
    assert_eq!(archived.message(), "An archived workflow has this handle.");
    assert_eq!(put(&t, "one", &json!({"handle": "three"})).await.status, 200);
    assert_eq!(t.get("/api/workflows/one").await.refusal(), "404 workflow.not_found");
    assert_eq!(
        put(&t, "two", &json!({"handle": "one"})).await.status,
        200,
        "the previous handle is free immediately"
    );
    // Of several concurrent requests for one handle, one gets it.
    let wanting = ["one", "three"].map(|workflow| {
        let t = &t;
        async move { put(t, workflow, &json!({"handle": "wanted"})).await.status }
    });
    let mut statuses = futures_util::future::join_all(wanting).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn concurrent_changes_are_all_stored() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let changes = [
        json!({"name": "N"}),
        json!({"description": "D"}),
        json!({"tags": ["t"]}),
        json!({"handle": "h"}),
        json!({"chat": {"models": [{"id": "a", "label": "b"}]}}),
    ];
    futures_util::future::join_all(changes.iter().map(|change| put(&t, &workflow.id, change))).await;
    let record = t.get("/api/workflows/h").await.value();
    assert_eq!(
        (&record["name"], &record["description"], &record["tags"]),
        (&json!("N"), &json!("D"), &json!(["t"]))
    );
    assert_eq!(record["chat"]["models"][0]["id"], "a");
}

#[tokio::test]
async fn the_typed_client_sends_only_changed_fields() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    t.advance(Duration::from_secs(1));
    let prompts = vec![json!({"label": "Hi", "prompt": [{"type": "input_text", "text": "Say hi"}]})];
    let change = UpdateWorkflow {
        description: Some(Some("Echoes.".to_owned())),
        chat: Some(UpdateChatSettings {
            start_prompts: Some(prompts.clone()),
            ..UpdateChatSettings::default()
        }),
        ..UpdateWorkflow::default()
    };
    let changed = t.client().update_workflow(&workflow.handle, &change).await.unwrap();
    assert_eq!((changed.description.as_deref(), &changed.chat.start_prompts), (Some("Echoes."), &prompts));
    let clear = UpdateWorkflow { description: Some(None), ..UpdateWorkflow::default() };
    assert_eq!(t.client().update_workflow(&workflow.id, &clear).await.unwrap().description, None);
    let public = t.client().public_workflow(&workflow.id).await.unwrap();
    assert_eq!(public.chat.start_prompts, prompts);
    // A turn that had read the workflow earlier is still served.
    assert_eq!(t.while_time_passes(t.chat(&chat::create(&workflow, "hi"))).await.status, 200);
}
