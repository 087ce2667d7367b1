//! Creating, reading and publishing workflows.

use client::Part;
use insta::assert_snapshot;
use integration_tests::{Answer, AnswerExt, JSON, TestService, chat, graphs};
use serde_json::{Value, json};

async fn create(t: &TestService, body: Value) -> Answer {
    t.post("/api/workflows", &body.to_string()).await
}

/// A record with its varying fields replaced.
pub(crate) fn tidy(mut record: Value) -> String {
    for (name, value) in record.as_object_mut().unwrap() {
        let text = value.as_str().unwrap_or_default().to_owned();
        if name.ends_with("_at") && !value.is_null() {
            assert!(
                text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(&text).is_ok(),
                "{name}: {text}"
            );
            *value = json!("[time]");
        } else if (name == "id" || name.ends_with("_id")) && !value.is_null() {
            assert_eq!(text.as_bytes()[14], b'7', "{name}: {text} is no UUIDv7");
            *value = json!("[id]");
        } else if name == "share_url" && !value.is_null() {
            let (base, id) = text.rsplit_once('/').unwrap();
            assert!(uuid::Uuid::parse_str(id).is_ok(), "the share URL ends with the workflow's id: {text}");
            assert!(base.ends_with("/chat"));
            *value = json!("[share url]");
        }
    }
    record.sort_all_objects();
    serde_json::to_string_pretty(&record).unwrap()
}

#[tokio::test]
async fn creating_a_workflow_returns_its_complete_record() {
    let t = TestService::start().await;
    let made =
        create(&t, json!({"name": " Support Triage ", "description": "Sorts.", "tags": ["a", "b"]})).await;
    assert_eq!(made.status, 201);
    assert_snapshot!(tidy(made.value()), @r#"
    {
      "chat": {
        "busy": "enqueue",
        "limits": {},
        "models": [],
        "retention_days": null,
        "start_prompts": [],
        "title": "words",
        "transcription": null,
        "uploads": true
      },
      "created_at": "[time]",
      "description": "Sorts.",
      "handle": "support-triage",
      "id": "[id]",
      "is_archived": false,
      "is_public": false,
      "latest_version": null,
      "live_version": null,
      "max_concurrent_runs": null,
      "name": "Support Triage",
      "published_at": null,
      "published_by": null,
      "require_login": false,
      "share_url": null,
      "tags": [
        "a",
        "b"
      ],
      "updated_at": "[time]",
      "workspace_id": "[id]"
    }
    "#);
    let record = made.value();
    for name in [record["id"].as_str().unwrap(), "support-triage"] {
        assert_eq!(t.get(&format!("/api/workflows/{name}")).await.value(), record);
    }
    let upper = record["id"].as_str().unwrap().to_uppercase();
    assert_eq!(t.get(&format!("/api/workflows/{upper}")).await.value(), record);
}

#[tokio::test]
async fn all_problems_of_a_new_workflow_are_reported() {
    let t = TestService::start().await;
    let wrong =
        json!({"name": " ", "description": "x".repeat(4_001), "tags": ["", "x".repeat(65)], "handle": "No"});
    let answer = create(&t, wrong).await;
    assert_eq!(answer.refusal(), "422 request.invalid");
    assert_snapshot!(answer.problems().join("\n"), @r"
    /name length
    /handle format
    /description length
    /tags/0 length
    /tags/1 length
    ");
    for (body, pointer) in [
        (json!({}), "/name"),
        (json!({"name": 7}), "/name"),
        (json!({"name": null}), "/name"),
        (json!({"name": "x", "tags": "y"}), "/tags"),
        (json!({"name": "x", "tags": ["y", 7]}), "/tags/1"),
        (json!({"name": "x", "handel": "y"}), "/handel"),
        (json!({"name": "x", "id": "y"}), "/id"),
        (json!([]), ""),
        (json!(["A name"]), ""),
        (json!("x"), ""),
        (json!({"name": "x".repeat(201)}), "/name"),
        (json!({"name": "x", "tags": vec!["x"; 33]}), "/tags"),
    ] {
        let answer = create(&t, body.clone()).await;
        assert_eq!(answer.refusal(), "422 request.invalid", "{body}");
        let problems = answer.problems();
        assert!(
            problems.len() == 1 && problems[0].split(' ').next() == Some(pointer),
            "{body}: {problems:?}"
        );
    }
    t.assert_no_rows("workflows").await;
    assert_eq!(create(&t, json!({"name": "é".repeat(200), "tags": vec!["x"; 32]})).await.status, 201);
}

#[tokio::test]
async fn handles_are_unique_and_made_from_names() {
    let t = TestService::start().await;
    let handle = |answer: &Answer| answer.value()["handle"].as_str().unwrap().to_owned();
    for (name, expected) in [
        ("Order 66", "order-66"),
        ("Order 66", "order-66-2"),
        ("order-66", "order-66-3"),
        ("日本語", "workflow"),
        ("?", "workflow-2"),
        ("0190b0a0-0000-7000-8000-000000000000", "workflow-3"),
        ("Check", "workflow-4"),
    ] {
        assert_eq!(handle(&create(&t, json!({"name": name})).await), expected);
    }
    let taken = create(&t, json!({"name": "x", "handle": "order-66"})).await;
    assert_eq!(taken.refusal(), "409 workflow.handle_taken");
    assert_eq!(handle(&create(&t, json!({"name": "x", "handle": "free"})).await), "free");
    for bad in [
        "",
        "A",
        "a_b",
        "-a",
        "a-",
        "a--b",
        "é",
        "a b",
        "a/b",
        "check",
        "0190b0a0-0000-7000-8000-000000000000",
        &"x".repeat(65),
    ] {
        let answer = create(&t, json!({"name": "x", "handle": bad})).await;
        assert_eq!(answer.problems(), ["/handle format"], "{bad}");
    }
}

#[tokio::test]
async fn concurrent_equal_names_get_different_handles() {
    let t = TestService::start().await;
    let answers = futures_util::future::join_all((0..12).map(|_| create(&t, json!({"name": "Same"})))).await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    assert_eq!(t.scalar("SELECT count(DISTINCT handle) FROM workflows").await, "12");
}

#[tokio::test]
async fn the_list_is_a_bare_array_newest_first() {
    let t = TestService::start().await;
    assert_eq!(t.get("/api/workflows").await.value(), json!([]));
    for name in ["one", "two", "three"] {
        create(&t, json!({"name": name})).await;
    }
    let names = |answer: Answer| -> Vec<String> {
        let all = answer.value();
        all.as_array().unwrap().iter().map(|record| record["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(t.get("/api/workflows").await), ["three", "two", "one"]);
    t.client().archive("two").await.unwrap();
    assert_eq!(names(t.get("/api/workflows").await), ["three", "one"]);
    assert_eq!(names(t.get("/api/workflows?include_archived=true").await), ["three", "two", "one"]);
}

#[tokio::test]
async fn publishing_creates_a_share_url_and_repeating_it_changes_the_login() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let path = workflow.path("/publish");
    let first = t.send("POST", &path, &[], "").await.expect(201);
    let body = first.value();
    assert_eq!(body["share_url"], format!("http://{}/chat/{}", t.address(), workflow.id));
    assert_eq!(body["share_url"], body["workflow"]["share_url"]);
    assert_snapshot!(tidy(body["workflow"].clone()), @r#"
    {
      "chat": {
        "busy": "enqueue",
        "limits": {},
        "models": [],
        "retention_days": null,
        "start_prompts": [],
        "title": "words",
        "transcription": null,
        "uploads": true
      },
      "created_at": "[time]",
      "description": null,
      "handle": "a-workflow",
      "id": "[id]",
      "is_archived": false,
      "is_public": true,
      "latest_version": 1,
      "live_version": 1,
      "max_concurrent_runs": null,
      "name": "A workflow",
      "published_at": "[time]",
      "published_by": null,
      "require_login": false,
      "share_url": "[share url]",
      "tags": [],
      "updated_at": "[time]",
      "workspace_id": "[id]"
    }
    "#);
    let again = t.post(&path, r#"{"require_login": true}"#).await;
    assert_eq!((again.status, &again.value()["workflow"]["require_login"]), (200, &json!(true)));
    assert_eq!(
        again.value()["workflow"]["published_at"],
        body["workflow"]["published_at"],
        "the first publication time is kept"
    );
    for wrong in ["[]", r#"{"require_login": "yes"}"#, r#"{"public": true}"#] {
        assert_eq!(t.post(&path, wrong).await.refusal(), "422 request.invalid", "{wrong}");
    }
    let public = t.get(&format!("/api/workflows/{}/public", workflow.handle)).await;
    assert_snapshot!(tidy(public.value()), @r#"
    {
      "chat": {
        "busy": "enqueue",
        "dictation": false,
        "models": [],
        "start_prompts": [],
        "uploads": true
      },
      "description": null,
      "id": "[id]",
      "name": "A workflow",
      "require_login": true,
      "share_url": "[share url]"
    }
    "#);
    for _ in 0..2 {
        let revoked = t.post(&format!("{path}/revoke"), "").await.expect(200);
        let record = revoked.value();
        assert_eq!(
            (&record["is_public"], &record["require_login"], &record["share_url"], &record["published_at"]),
            (&json!(false), &json!(false), &json!(null), &json!(null))
        );
    }
    assert_eq!(t.post(&path, "{}").await.status, 201, "it was private again");
    assert_eq!(t.post("/api/workflows/nobody/publish", "{}").await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn publishing_again_changes_only_given_settings() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let path = workflow.path("/publish");
    for (body, status, requires_login) in [
        (r#"{"require_login": true}"#, 201, true),
        ("", 200, true),
        ("{}", 200, true),
        (r#"{"require_login": null}"#, 200, true),
        (r#"{"require_login": false}"#, 200, false),
        ("", 200, false),
        (r#"{"require_login": true}"#, 200, true),
    ] {
        let answer = t.post(&path, body).await;
        assert_eq!(
            (answer.status, &answer.value()["workflow"]["require_login"]),
            (status, &json!(requires_login)),
            "{body}"
        );
        assert_eq!(t.get(&workflow.path("")).await.value()["require_login"], requires_login);
    }
    t.post(&format!("{path}/revoke"), "").await;
    let anew = t.post(&path, "").await;
    assert_eq!((anew.status, &anew.value()["workflow"]["require_login"]), (201, &json!(false)), "a new one");
}

#[tokio::test]
async fn the_share_url_begins_with_the_public_base() {
    let t = TestService::builder()
        .set("SERVICE_PUBLIC_BASE_URL", "https://chat.example.org/callboard/")
        .start()
        .await;
    let workflow = t.workflow().published().create().await;
    let record = t.get(&workflow.path("")).await.value();
    assert_eq!(record["share_url"], format!("https://chat.example.org/callboard/chat/{}", workflow.id));
}

#[tokio::test]
async fn an_archived_workflow_is_read_only() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().require_login().create().await;
    let path = format!("/api/workflows/{}", workflow.handle);
    let archived = t.client().archive(&workflow.handle).await.unwrap();
    assert!(archived.is_archived && !archived.is_public && !archived.require_login);
    assert_eq!((archived.share_url, archived.published_at), (None, None));
    // Takes effect at once, and is idempotent.
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.refusal(), "404 workflow.not_found");
    assert_eq!(t.get(&format!("{path}/public")).await.refusal(), "404 workflow.not_found");
    let record = t.get(&path).await.value();
    assert_eq!(record["is_archived"], true);
    for (headers, body) in [(&[][..], ""), (&[JSON][..], ""), (&[JSON][..], "{}")] {
        let again = t.send("DELETE", &path, headers, body).await;
        assert_eq!((again.status, again.value()), (200, record.clone()), "{headers:?} {body:?}");
    }
    assert_eq!(t.send("DELETE", "/api/workflows/nobody", &[], "").await.refusal(), "404 workflow.not_found");
    assert_eq!(
        t.send("DELETE", &format!("{path}?force=true"), &[], "").await.problems(),
        ["/force unknown_parameter"]
    );
    // Existing versions are still readable.
    assert_eq!(t.get(&format!("{path}/versions/1")).await.status, 200);
    assert_eq!(t.get(&format!("{path}/versions")).await.value()["data"][0]["version"], 1);
    assert_eq!(t.post(&format!("{path}/publish"), "").await.refusal(), "409 workflow.archived");
    assert_eq!(t.post(&format!("{path}/publish/revoke"), "").await.value(), record);
    let change = t.send("PUT", &path, &[JSON], r#"{"name": "x"}"#).await;
    assert_eq!(change.refusal(), "409 workflow.archived");
    assert_eq!(t.get(&path).await.value(), record);
    let version = json!({"graph": graphs::reply("new")}).to_string();
    assert_eq!(t.post(&format!("{path}/versions"), &version).await.refusal(), "409 workflow.archived");
}

#[tokio::test]
async fn the_handle_of_an_archived_workflow_stays_reserved() {
    let t = TestService::start().await;
    let made = create(&t, json!({"name": "Desk", "handle": "desk"})).await.value();
    t.client().archive("desk").await.unwrap();
    let taken = create(&t, json!({"name": "Desk", "handle": "desk"})).await;
    assert_eq!(taken.refusal(), "409 workflow.handle_taken");
    assert_eq!(taken.message(), "An archived workflow has this handle.");
    assert_eq!(create(&t, json!({"name": "Desk"})).await.value()["handle"], "desk-2");
    assert_eq!(t.get("/api/workflows/desk").await.value()["id"], made["id"]);
}

#[tokio::test]
async fn a_running_turn_completes_after_its_workflow_is_archived() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(2.0, "said")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("stream_options").await;
    t.client().archive(&workflow.id).await.unwrap();
    let rest = t.while_time_passes(answer.rest()).await;
    assert!(rest.contains("said"), "{rest}");
}

#[tokio::test]
async fn a_long_list_is_read_page_by_page() {
    let t = TestService::start().await;
    for n in 1..=5 {
        create(&t, json!({"name": format!("w{n}")})).await;
    }
    t.client().archive("w3").await.unwrap();
    let all = t.client().workflows().await.unwrap();
    for (with_archived, expected) in
        [(false, vec!["w5", "w4", "w2", "w1"]), (true, vec!["w5", "w4", "w3", "w2", "w1"])]
    {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let part = Part { limit: Some(2), cursor };
            let listed = t.client().list_workflows(with_archived, &part).await.unwrap();
            assert!(listed.data.len() <= 2);
            seen.extend(listed.data.into_iter().map(|record| record.name));
            cursor = listed.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected);
    }
    assert_eq!(all.len(), 4);
    assert_eq!(t.get("/api/workflows").await.header("x-next-cursor"), None);
    let answer = t.get("/api/workflows?limit=1001&cursor=abc").await;
    assert_eq!(answer.problems(), ["/limit range", "/cursor format"]);
}
