//! Every chat error that needs no sign-in: status, text, code, shape, headers, order.

use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, TestService, Workflow, chat, shown, shown_alike};
use serde_json::{Value, json};

const NOWHERE: &str = "0190b0a0-0000-7000-8000-000000000000";

async fn assert_nothing_stored(t: &TestService) {
    for table in
        ["threads", "thread_items", "runs", "run_steps", "streams", "stream_events", "idempotency_keys"]
    {
        t.assert_no_rows(table).await;
    }
}

#[tokio::test]
async fn a_body_without_workflow_id_is_400() {
    let t = TestService::start().await;
    let bodies = [
        json!({"type": "threads.create", "params": {"input": chat::input("hi")}}),
        json!({"workflow_id": null}),
        json!({"workflow_id": ""}),
        json!({"metadata": {"workflow_id": NOWHERE}}),
        json!([]),
        json!([{"workflow_id": NOWHERE}]),
        json!("x"),
        json!(7),
        json!(null),
    ];
    let mut answers = Vec::new();
    for body in bodies {
        answers.push(t.chat(&body).await);
    }
    assert_snapshot!(shown_alike(&answers), @r#"
    400
    content-type: application/json
    {"detail":{"message":"workflow_id is required.","code":"chat.workflow_id_required"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn a_malformed_workflow_id_is_400() {
    let t = TestService::start().await;
    let mut answers = Vec::new();
    for id in
        [json!("echo"), json!(7), json!(true), json!([]), json!({}), json!(" "), json!(format!("{NOWHERE}0"))]
    {
        answers.push(t.chat(&json!({"workflow_id": id})).await);
    }
    assert_snapshot!(shown_alike(&answers), @r#"
    400
    content-type: application/json
    {"detail":{"message":"workflow_id must be a valid UUID.","code":"chat.workflow_id_invalid"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn every_text_form_of_a_uuid_is_accepted() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    for id in [workflow.id.to_uppercase(), workflow.id.replace('-', ""), format!("{{{}}}", workflow.id)] {
        let form = Workflow { id, handle: String::new() };
        assert_eq!(t.chat(&chat::create(&form, "hi")).await.status, 200, "{}", form.id);
    }
}

#[tokio::test]
async fn an_unknown_workflow_is_404() {
    let t = TestService::start().await;
    let answer = t.chat(&json!({"workflow_id": NOWHERE})).await;
    assert_snapshot!(shown(&answer), @r#"
    404
    content-type: application/json
    {"detail":{"message":"Workflow not found.","code":"workflow.not_found"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn a_private_workflow_is_403() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let answer = t.chat(&chat::create(&workflow, "hi")).await;
    assert_snapshot!(shown(&answer), @r#"
    403
    content-type: application/json
    {"detail":{"message":"Publish authentication failed: workflow is not published.","code":"chat.not_published"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn login_required_without_a_session_is_401() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().require_login().create().await;
    let answer = t.chat(&chat::create(&workflow, "hi")).await;
    assert_snapshot!(shown(&answer), @r#"
    401
    content-type: application/json
    www-authenticate: Bearer
    {"detail":{"message":"Publish authentication failed: OAuth login is required to access this workflow.","code":"chat.login_required"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn an_invalid_bearer_token_is_401_for_every_workflow() {
    let t = TestService::start().await;
    let published = t.workflow().published().create().await;
    let private = t.workflow().create().await;
    let login = t.workflow().published().require_login().create().await;
    let nowhere = Workflow { id: NOWHERE.to_owned(), handle: String::new() };
    let mut answers = Vec::new();
    for workflow in [&published, &private, &login, &nowhere] {
        for value in ["Bearer x", "Bearer", "Basic eDp5", "", "Bearer a.b.c"] {
            let headers = [JSON, ("authorization", value)];
            let body = chat::create(workflow, "hi").to_string();
            answers.push(t.send("POST", "/api/chat", &headers, body).await);
        }
    }
    assert_snapshot!(shown_alike(&answers), @r#"
    401
    content-type: application/json
    www-authenticate: Bearer
    {"detail":{"message":"Chat session token authentication failed","code":"chat.session_invalid"}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn an_invalid_request_is_422_with_every_problem() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let body = json!({"type": "threads.add_user_message", "workflow_id": workflow.id, "metadata": 7, "params": {
        "input": {"content": [{"type": "input_text"}, 3, {"type": "video"}], "attachments": {}, "quoted_text": 1,
                  "inference_options": {"model": 2, "tool_choice": "x"}}}});
    let answer = t.chat(&body).await;
    assert_eq!(answer.refusal(), "422 chat.invalid_request");
    assert_snapshot!(answer.problems().join("\n"), @r"
    /params/thread_id required
    /params/input/content/0/text required
    /params/input/content/1 type
    /params/input/content/2/type unknown
    /params/input/attachments type
    /params/input/quoted_text type
    /params/input/inference_options/model type
    /params/input/inference_options/tool_choice type
    /metadata type
    ");
    let no_type = t.chat(&json!({"workflow_id": workflow.id})).await;
    assert_snapshot!(shown(&no_type), @r#"
    422
    content-type: application/json
    {"detail":{"message":"The chat request does not validate.","code":"chat.invalid_request","errors":[{"pointer":"/type","code":"required","message":"is required","suggestion":"`threads.create` or `threads.add_user_message`"}]}}
    "#);
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn an_empty_message_is_422() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    for content in [
        json!([]),
        json!([{"type": "input_text", "text": ""}]),
        json!([{"type": "input_text", "text": " \n"}]),
    ] {
        let mut body = chat::create(&workflow, "");
        body["params"]["input"]["content"] = content;
        assert_eq!(t.chat(&body).await.problems(), ["/params/input/content empty"]);
    }
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn unknown_threads_and_attachments_are_404() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let other = t.workflow().published().create().await;
    let foreign_thread = t.visitor().say(&other.id, "hi").await.unwrap().thread_id;
    for thread in
        ["", "x", "thr_", "msg_0123456789abcdefghijkl", "thr_0000000000000000000000", &foreign_thread, "\0"]
    {
        let answer = t.chat(&chat::add(&workflow, thread, "hi")).await;
        assert_eq!(answer.refusal(), "404 thread.not_found", "{thread:?}");
    }
    for attachments in [json!(["atc_1"]), json!([{"id": "atc_1", "name": "x"}])] {
        let mut body = chat::create(&workflow, "hi");
        body["params"]["input"]["attachments"] = attachments;
        assert_eq!(t.chat(&body).await.refusal(), "404 attachment.not_found");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_turn_without_a_version_is_409() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().published().create().await;
    let answer = t.chat(&chat::create(&workflow, "hi")).await;
    assert_snapshot!(shown(&answer), @r#"
    409
    content-type: application/json
    {"detail":{"message":"The workflow has no live version.","code":"workflow.no_version"}}
    "#);
    assert_nothing_stored(&t).await;
}

/// Each body has all the faults that are checked later, and one fault less than the previous body.
#[tokio::test]
async fn checks_run_in_order() {
    let t = TestService::start().await;
    let private = t.workflow().create().await;
    let login = t.workflow().published().require_login().create().await;
    let empty = t.workflow().without_version().published().create().await;
    let open = t.workflow().published().create().await;
    let thread = t.visitor().say(&open.id, "hi").await.unwrap().thread_id;
    let wrong = |id: &str| json!({"workflow_id": id, "type": 7});
    let mut unknown_both = chat::add(&empty, "thr_nowhere", "hi");
    unknown_both["params"]["input"]["attachments"] = json!(["atc_1"]);
    let mut unknown_attachment = chat::create(&empty, "hi");
    unknown_attachment["params"]["input"]["attachments"] = json!(["atc_1"]);
    let bearer = ("authorization", "Bearer x");
    let cases: [(String, bool, &str); 11] = [
        ("{".to_owned(), true, "400 request.invalid_json"),
        ("{}".to_owned(), true, "400 chat.workflow_id_required"),
        (wrong("x").to_string(), true, "400 chat.workflow_id_invalid"),
        (wrong(NOWHERE).to_string(), true, "401 chat.session_invalid"),
        (wrong(NOWHERE).to_string(), false, "404 workflow.not_found"),
        (wrong(&private.id).to_string(), false, "403 chat.not_published"),
        (wrong(&login.id).to_string(), false, "401 chat.login_required"),
        (wrong(&empty.id).to_string(), false, "422 chat.invalid_request"),
        (unknown_both.to_string(), false, "404 thread.not_found"),
        (unknown_attachment.to_string(), false, "404 attachment.not_found"),
        (chat::create(&empty, "hi").to_string(), false, "409 workflow.no_version"),
    ];
    for (body, with_bearer, expected) in cases {
        let mut headers = vec![JSON];
        headers.extend(with_bearer.then_some(bearer));
        assert_eq!(t.send("POST", "/api/chat", &headers, &body).await.refusal(), expected, "{body}");
    }
    // An open workflow's thread is not found in another workflow.
    assert_eq!(t.chat(&chat::add(&empty, &thread, "hi")).await.refusal(), "404 thread.not_found");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn unknown_streams_are_404() {
    let t = TestService::start().await;
    for id in [NOWHERE, "x", "%00", "0190b0a0", "..%2fx"] {
        assert_eq!(t.get(&format!("/api/chat/streams/{id}")).await.refusal(), "404 stream.not_found", "{id}");
        let stop = t.send("POST", &format!("/api/chat/streams/{id}/stop"), &[], "").await;
        assert_eq!(stop.refusal(), "404 stream.not_found", "{id}");
    }
}

#[tokio::test]
async fn every_error_body_has_the_same_shape() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let answers = [
        t.chat(&json!({})).await,
        t.chat(&chat::create(&workflow, "hi")).await,
        t.get("/nowhere").await,
        t.send("PUT", "/api/chat", &[], "").await,
        t.post("/api/workflows", "{}").await,
        t.get("/api/workflows/nobody").await,
    ];
    for answer in answers {
        let body = answer.value();
        assert!(body.as_object().is_some_and(|body| body.len() == 1), "{body}");
        let detail = body["detail"].as_object().expect("detail").clone();
        assert!(detail["message"].is_string() && detail["code"].is_string(), "{body}");
        assert!(detail.keys().all(|key| ["message", "code", "errors"].contains(&key.as_str())), "{body}");
        assert!(
            !detail.contains_key("errors")
                || matches!(&detail["errors"], Value::Array(all) if !all.is_empty())
        );
        let _ = shown(&answer);
    }
}
