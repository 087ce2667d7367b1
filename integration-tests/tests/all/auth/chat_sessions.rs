//! Chat session tokens.

use std::time::Duration;

use chrono::DateTime;
use integration_tests::{AnswerExt, Builder, JSON, TestService, chat, events};
use serde_json::{Value, json};

use super::support::{CHAT_KEY, other_workspace};

const SESSION: &str = "/api/chat/session";

fn keyed() -> Builder {
    TestService::builder().with_bootstrap_token().set("CHAT_TOKEN_SIGNING_KEY", CHAT_KEY)
}

async fn session(t: &TestService, body: &Value) -> String {
    t.root().post(SESSION, body).await.expect(200).member("client_secret")
}

#[tokio::test]
async fn checks_run_in_order() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let workflow = t.workflow().create().await;
    let body = json!({"workflow_id": workflow.id});
    let missing = t.post(SESSION, &body.to_string()).await;
    assert_eq!(missing.refusal(), "401 auth.missing_token");
    let weak = t.root().token(&["workflows:read"], &[]).await;
    let lacking = t.bearer(&weak).send("POST", SESSION, &[], "no json").await;
    assert_eq!(
        (lacking.status, lacking.message()),
        (401, "Missing required scopes: chat:session".to_owned())
    );
    let keyless = t.root().send("POST", SESSION, &[], "no json").await;
    assert_eq!(keyless.refusal(), "500 chat.signing_key_missing");

    let t = keyed().start().await;
    other_workspace(&t).await;
    let workflow = t.workflow().create().await;
    let ask = async |body: &Value| t.root().post(SESSION, body).await;
    assert_eq!(ask(&json!({})).await.message(), "workflow_id is required.");
    assert_eq!(ask(&json!({"workflow_id": "desk"})).await.message(), "workflow_id must be a valid UUID.");
    let reserved = json!({"workflow_id": workflow.id, "user": "callboard:user:1"});
    assert_eq!(ask(&reserved).await.problems(), ["/user reserved"]);
    let bad = json!({"workflow_id": workflow.id, "user": "", "colour": 1});
    assert_eq!(ask(&bad).await.problems(), ["/user length", "/colour unknown_field"]);
    let unknown = json!({"workflow_id": "00000000-0000-7000-8000-000000000000"});
    assert_eq!(ask(&unknown).await.refusal(), "404 workflow.not_found");
    let stranger = t.root().token(&["chat:session"], &["other"]).await;
    let forbidden = t.bearer(&stranger).post(SESSION, &json!({"workflow_id": workflow.id})).await;
    assert_eq!(forbidden.refusal(), "403 auth.workspace_forbidden");
}

#[tokio::test]
async fn a_session_token_opens_one_workflow_until_it_expires() {
    let t = keyed().manual_clock().start().await;
    let (mine, other) = (t.workflow().create().await, t.workflow().published().create().await);
    let answer = t.root().post(SESSION, &json!({"workflow_id": mine.id})).await.value();
    let ends = DateTime::parse_from_rfc3339(answer["expires_at"].as_str().unwrap()).unwrap();
    let lifetime = ends.to_utc() - kernel::Clock::now(t.clock());
    assert!((299_000..=300_000).contains(&lifetime.num_milliseconds()), "{lifetime}");
    let bearer = t.bearer(answer["client_secret"].as_str().unwrap());
    let say = async |workflow| bearer.post("/api/chat", &chat::create(workflow, "hi")).await;
    assert_eq!(say(&mine).await.status, 200, "a private workflow");
    let refused = say(&other).await;
    assert_eq!(
        (refused.status, refused.message()),
        (401, "Chat session token authentication failed".to_owned())
    );
    t.advance(Duration::from_secs(299));
    assert_eq!(say(&mine).await.status, 200);
    t.advance(Duration::from_secs(1));
    assert_eq!(say(&mine).await.refusal(), "401 chat.session_invalid");
    t.root().json("DELETE", &mine.path(""), &json!({})).await;
    let late = session_refused(&t, &mine.id).await;
    assert_eq!(late, "404 workflow.not_found");
}

async fn session_refused(t: &TestService, workflow: &str) -> String {
    t.root().post(SESSION, &json!({"workflow_id": workflow})).await.refusal()
}

#[tokio::test]
async fn threads_belong_to_a_named_user_or_to_sessions_with_the_thread_id() {
    let t = keyed().start().await;
    let workflow = t.workflow().create().await;
    let named = |user: &str| json!({"workflow_id": workflow.id, "user": user});
    let (ann, ann_again, bob) = (
        session(&t, &named("ann")).await,
        session(&t, &named("ann")).await,
        session(&t, &named("bob")).await,
    );
    let (one, two) = (
        session(&t, &json!({"workflow_id": workflow.id})).await,
        session(&t, &json!({"workflow_id": workflow.id})).await,
    );
    let begin = async |token: &str| {
        let answer = t.bearer(token).post("/api/chat", &chat::create(&workflow, "hi")).await;
        let created = events(&answer.text());
        created[0]["thread"]["id"].as_str().unwrap().to_owned()
    };
    let read = async |token: &str, thread: &str| {
        let body =
            json!({"workflow_id": workflow.id, "type": "threads.get_by_id", "params": {"thread_id": thread}});
        t.bearer(token).post("/api/chat", &body).await.refusal()
    };
    let of_ann = begin(&ann).await;
    assert_eq!(read(&ann_again, &of_ann).await, "200", "a refreshed token keeps access");
    for stranger in [&bob, &one] {
        assert_eq!(read(stranger, &of_ann).await, "404 thread.not_found");
    }
    let of_one = begin(&one).await;
    assert_eq!(read(&two, &of_one).await, "200", "the thread id gives access");
    let list = async |token: &str| {
        let body = json!({"workflow_id": workflow.id, "type": "threads.list", "params": {}});
        t.bearer(token).post("/api/chat", &body).await.value()["data"].as_array().unwrap().len()
    };
    assert_eq!((list(&ann_again).await, list(&bob).await, list(&one).await), (1, 0, 0));
}

#[tokio::test]
async fn first_party_pages_receive_a_session_token_for_their_caller() {
    let t = keyed().start().await;
    let workflow = t.workflow().create().await;
    let path = format!("/api/workflows/{}/chat/session", workflow.handle);
    let reader = t.root().token(&["workflows:read"], &[]).await;
    assert_eq!(t.bearer(&reader).post(&path, &json!({})).await.refusal(), "403 auth.missing_scope");
    let runner = t.root().token(&["workflows:execute"], &[]).await;
    let lacking = t.bearer(&runner).post(&path, &json!({})).await;
    assert_eq!(lacking.message(), "Missing required scopes: workflows:read");
    let neither = t.root().token(&["vault:read"], &[]).await;
    let lacking = t.bearer(&neither).post(&path, &json!({})).await;
    assert_eq!(lacking.message(), "Missing required scopes: workflows:read, workflows:execute");
    let both = t.root().token(&["workflows:execute", "workflows:read"], &[]).await;
    let answer = t.bearer(&both).send("POST", &path, &[], "").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let secret = answer.value()["client_secret"].as_str().unwrap().to_owned();
    t.bearer(&secret).post("/api/chat", &chat::create(&workflow, "hi")).await.expect(200);
}

#[tokio::test]
async fn a_token_for_an_origin_is_valid_from_that_origin_only() {
    let t = keyed()
        .set("SERVICE_CORS_ALLOW_ORIGINS", r#"["https://a.example","https://b.example"]"#)
        .start()
        .await;
    let workflow = t.workflow().create().await;
    let token = session(&t, &json!({"workflow_id": workflow.id, "origin": "https://a.example"})).await;
    let from = async |origin: Option<&str>| {
        let mut headers = vec![JSON];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let body = chat::create(&workflow, "hi").to_string();
        t.bearer(&token).send("POST", "/api/chat", &headers, &body).await.status
    };
    assert_eq!(from(Some("https://a.example")).await, 200);
    assert_eq!((from(Some("https://b.example")).await, from(None).await), (401, 401));
}

#[tokio::test]
async fn invalid_tokens_count_as_failed_sign_ins() {
    let t = keyed().set("SERVICE_AUTH_RATE_LIMIT_IP", "2").start().await;
    let workflow = t.workflow().published().create().await;
    let bad = async || t.bearer("wrong").post("/api/chat", &chat::create(&workflow, "hi")).await.refusal();
    assert_eq!(
        (bad().await, bad().await),
        ("401 chat.session_invalid".to_owned(), "401 chat.session_invalid".to_owned())
    );
    assert_eq!(bad().await, "429 auth.rate_limited");
    assert_eq!(
        t.chat(&chat::create(&workflow, "hi")).await.status,
        200,
        "requests without a token are never limited"
    );
}
