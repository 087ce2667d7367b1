//! Upload permissions and attachment owners.

use client::Client;
use integration_tests::{Answer, AnswerExt, BOOTSTRAP, JSON, TestService, Workflow, chat, events};
use serde_json::{Value, json};

use super::{form, form_type, id_of, message, uploaded};

async fn send(t: &TestService, query: &str, headers: &[(&str, &str)]) -> Answer {
    let form_type = form_type();
    let mut all = vec![("content-type", &*form_type)];
    all.extend_from_slice(headers);
    t.send("POST", &format!("/api/chat/upload{query}"), &all, form("a.txt", b"hello")).await
}

/// The visitor's cookie from a response.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap();
    set.split(';').next().unwrap().to_owned()
}

async fn say(t: &TestService, workflow: &Workflow, id: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![JSON];
    all.extend_from_slice(headers);
    t.send("POST", "/api/chat", &all, message(workflow, None, "look", &[id]).to_string()).await
}

#[tokio::test]
async fn the_workflow_is_given_in_the_query_or_in_a_header() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let private = t.workflow().echo().create().await;
    let login = t.workflow().echo().published().require_login().create().await;
    for (query, header, refusal) in [
        (format!("?workflow_id={}", workflow.id), None, "200"),
        (String::new(), Some(workflow.id.as_str()), "200"),
        (format!("?workflow_id={}", workflow.id), Some(&workflow.id), "200"),
        (format!("?workflow_id={}", workflow.id), Some(&private.id), "422 request.invalid"),
        ("?workflow_id=x".to_owned(), None, "400 chat.workflow_id_invalid"),
        (String::new(), Some("x"), "400 chat.workflow_id_invalid"),
        (format!("?workflow_id={}", private.id), None, "403 chat.not_published"),
        (format!("?workflow_id={}", login.id), None, "401 chat.login_required"),
        ("?workflow_id=0198c2e7-0b1c-7f3a-9a52-3f6d1e0b8a47".to_owned(), None, "404 workflow.not_found"),
        ("?workflow=x".to_owned(), None, "422 request.invalid"),
    ] {
        let headers: Vec<_> = header.map(|id| ("x-workflow-id", id)).into_iter().collect();
        let answer = send(&t, &query, &headers).await;
        let refused = if answer.status == 200 { "200".to_owned() } else { answer.refusal() };
        assert_eq!(refused, refusal, "{query} {header:?}: {}", answer.text());
    }
}

#[tokio::test]
async fn uploads_can_be_turned_off_for_a_workflow() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "a.txt", b"a").await;
    let changed = t.configure(&workflow, &json!({"chat": {"uploads": false}})).await;
    assert_eq!(changed.value()["chat"]["uploads"], false, "{}", changed.text());
    let refused = send(&t, &format!("?workflow_id={}", workflow.id), &[]).await;
    assert_eq!(refused.refusal(), "403 attachment.uploads_off");
    let params = json!({"name": "a.txt", "size": 1, "mime_type": "text/plain"});
    let refused = t.chat(&chat::ask(&workflow, "attachments.create", params)).await;
    assert_eq!(refused.refusal(), "403 attachment.uploads_off");
    let refused = t.chat(&message(&workflow, None, "look", &[&id_of(&attachment)])).await;
    assert_eq!(refused.refusal(), "403 attachment.uploads_off");
    let public = t.get(&workflow.path("/public")).await.value();
    assert_eq!((&public["chat"]["uploads"], &public["chat"]["dictation"]), (&json!(false), &json!(false)));
    t.configure(&workflow, &json!({"chat": {"uploads": null}})).await;
    assert_eq!(send(&t, &format!("?workflow_id={}", workflow.id), &[]).await.status, 200);
}

#[tokio::test]
async fn uploads_without_a_workflow_require_a_credential_or_a_cookie() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let workflow = t.workflow().echo().published().create().await;
    assert_eq!(send(&t, "", &[]).await.refusal(), "401 auth.missing_token");
    let bearer = format!("Bearer {BOOTSTRAP}");
    assert_eq!(send(&t, "", &[("authorization", "Bearer wrong")]).await.refusal(), "401 auth.invalid_token");
    let by_token = send(&t, "", &[("authorization", &bearer)]).await.expect(200);
    // The first message that names it becomes its owner.
    say(&t, &workflow, &id_of(&by_token.value()), &[]).await.expect(200);
    let hello = || chat::create(&workflow, "hi");
    let cookie = cookie(&t.chat(&hello()).await);
    let by_cookie = send(&t, "", &[("cookie", &cookie)]).await.expect(200);
    let foreign = [("cookie", cookie.as_str()), ("origin", "https://evil.example")];
    assert_eq!(send(&t, "", &foreign).await.refusal(), "403 auth.origin_mismatch");
    let with_workflow = format!("?workflow_id={}", workflow.id);
    assert_eq!(send(&t, &with_workflow, &foreign).await.refusal(), "403 auth.origin_mismatch");
    let id = id_of(&by_cookie.value());
    let other = self::cookie(&t.chat(&hello()).await);
    assert_eq!(say(&t, &workflow, &id, &[("cookie", &other)]).await.refusal(), "404 attachment.not_found");
    assert_eq!(say(&t, &workflow, &id, &[("cookie", &cookie)]).await.status, 200);
}

#[tokio::test]
async fn an_open_service_accepts_every_upload() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let answer = send(&t, "", &[]).await.expect(200);
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(say(&t, &workflow, &id_of(&answer.value()), &[]).await.status, 200);
    let evil = send(&t, "", &[("origin", "https://evil.example")]).await;
    assert_eq!(evil.refusal(), "403 auth.origin_mismatch");
}

/// A session token of a user of the workflow's page.
async fn session(t: &TestService, workflow: &Workflow, user: &str) -> String {
    let body = json!({"workflow_id": workflow.id, "user": user});
    let answer = t.root().post("/api/chat/session", &body).await;
    format!("Bearer {}", answer.value()["client_secret"].as_str().unwrap())
}

#[tokio::test]
async fn a_session_token_determines_workflow_and_owner() {
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("CHAT_TOKEN_SIGNING_KEY", "0123456789abcdef0123456789abcdef")
        .start()
        .await;
    let workflow = t.workflow().echo().create().await;
    let other = t.workflow().echo().create().await;
    let (ada, bob) = (session(&t, &workflow, "ada").await, session(&t, &workflow, "bob").await);
    let answer = send(&t, "", &[("authorization", &ada)]).await.expect(200);
    let id = id_of(&answer.value());
    let owner = "SELECT concat_ws(' ', owner_kind, owner_id, workflow_id) FROM attachments";
    assert_eq!(t.scalar(owner).await, format!("session ada {}", workflow.id));
    let refused = say(&t, &workflow, &id, &[("authorization", &bob)]).await;
    assert_eq!(refused.refusal(), "404 attachment.not_found");
    let of_other = session(&t, &other, "ada").await;
    let refused = say(&t, &other, &id, &[("authorization", &of_other)]).await;
    assert_eq!(refused.refusal(), "404 attachment.not_found", "a session of another workflow");
    assert_eq!(say(&t, &workflow, &id, &[("authorization", &ada)]).await.status, 200);
}

#[tokio::test]
async fn only_the_owner_deletes_an_unsent_attachment() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let delete = |id: &str| chat::ask(&workflow, "attachments.delete", json!({"attachment_id": id}));
    let with_workflow = format!("?workflow_id={}", workflow.id);
    let cookie = cookie(&t.chat(&chat::create(&workflow, "hi")).await);
    let upload = send(&t, &with_workflow, &[("cookie", &cookie)]).await;
    let id = id_of(&upload.value());
    let stranger: Client = t.visitor();
    stranger.say(&workflow.id, "hi").await.unwrap();
    let refused = stranger.chat_raw(&delete(&id), &client::ChatOptions::default()).await.err().unwrap();
    assert_eq!(refused.code(), Some("attachment.not_found"));
    for unknown in ["atc_00000000000000000000000000000000", "x", ""] {
        assert_eq!(t.chat(&delete(unknown)).await.refusal(), "404 attachment.not_found", "{unknown}");
    }
    // It was uploaded with the cookie.
    let named = message(&workflow, None, "look", &[&id]);
    for body in [delete(&id), named.clone()] {
        assert_eq!(t.chat(&body).await.refusal(), "404 attachment.not_found", "{body}");
    }
    let headers = [JSON, ("cookie", cookie.as_str())];
    let send = async |body: Value| t.send("POST", "/api/chat", &headers, body.to_string()).await;
    let stream_events = events(&send(named).await.text());
    assert_eq!(send(delete(&id)).await.refusal(), "409 attachment.in_use");
    let thread = json!({"thread_id": stream_events[0]["thread"]["id"]});
    let read = send(chat::ask(&workflow, "threads.get_by_id", thread)).await.value();
    assert_eq!(
        read["items"]["data"][0]["attachments"][0]["id"], *id,
        "the attachment is still in the message"
    );
}

#[tokio::test]
async fn files_uploaded_before_the_cookie_get_the_owner_of_their_thread() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let with_workflow = format!("?workflow_id={}", workflow.id);
    let (first, second) = (send(&t, &with_workflow, &[]).await, send(&t, &with_workflow, &[]).await);
    assert_eq!((first.header("set-cookie"), second.header("set-cookie")), (None, None));
    let ids = [id_of(&first.value()), id_of(&second.value())];
    t.chat(&message(&workflow, None, "look", &[&ids[0], &ids[1]])).await.expect(200);
    let owners = "SELECT count(DISTINCT owner_id) || ' ' || min(owner_kind) FROM attachments";
    assert_eq!(t.scalar(owners).await, "1 visitor", "the owner of the thread");
}
