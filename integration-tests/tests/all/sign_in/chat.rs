//! Chats that require a login.

use integration_tests::{AnswerExt, Client, JSON, Workflow, chat, thread_of};
use serde_json::json;
use wire::PublishRequest;
use wire::chat::PageRequest;

use super::{ADA, SESSION, get, post, service, signed_in};

async fn say(client: &Client, workflow: &Workflow) -> integration_tests::Answer {
    post(client, "/api/chat", &chat::create(workflow, "hi")).await
}

#[tokio::test]
async fn a_chat_requires_a_login_and_its_threads_belong_to_their_users() {
    let (t, mail) = service().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let (ada, bob) = (signed_in(&t, &mail, ADA).await.0, signed_in(&t, &mail, "bob@example.org").await.0);
    assert_eq!(say(&t.visitor(), &workflow).await.refusal(), "401 chat.login_required");
    let begun = say(&ada, &workflow).await;
    assert_eq!((begun.status, begun.header("set-cookie")), (200, None), "{}", begun.text());
    let thread = thread_of(&begun.text());
    let stream = begun.header("x-chat-stream-id").unwrap().to_owned();
    assert_eq!(t.scalar("SELECT owner_kind || (owner_id = (SELECT id::text FROM users WHERE email LIKE 'ada%')) FROM threads").await, "usertrue");

    let more = chat::add(&workflow, &thread, "more");
    assert_eq!(post(&ada, "/api/chat", &more).await.status, 200);
    assert_eq!(post(&bob, "/api/chat", &more).await.refusal(), "404 thread.not_found");
    assert_eq!(post(&t.anonymous(), "/api/chat", &more).await.refusal(), "401 chat.login_required");
    let streams = format!("/api/chat/streams/{stream}");
    assert_eq!(get(&ada, &streams).await.status, 200);
    assert_eq!(get(&bob, &streams).await.refusal(), "404 stream.not_found");
    assert_eq!(get(&t.anonymous(), &streams).await.refusal(), "401 chat.login_required");
    assert_eq!(ada.threads(&workflow.id, &PageRequest::default()).await.unwrap().data.len(), 1);
    assert_eq!(bob.threads(&workflow.id, &PageRequest::default()).await.unwrap().data.len(), 0);

    // Messages sent with a login stay private when the workflow stops requiring it.
    t.client().publish(&workflow.id, &PublishRequest { require_login: Some(false) }).await.unwrap();
    assert_eq!(post(&t.anonymous(), "/api/chat", &more).await.refusal(), "404 thread.not_found");
    // They still belong to their user.
    assert_eq!(post(&ada, "/api/chat", &more).await.status, 200);
    assert_eq!(post(&bob, "/api/chat", &more).await.refusal(), "404 thread.not_found");
    assert_eq!(get(&ada, &streams).await.status, 200);
    let listed = async |client: &Client| {
        client.threads(&workflow.id, &PageRequest::default()).await.unwrap().data.len()
    };
    assert_eq!((listed(&ada).await, listed(&bob).await), (1, 0));
    // New threads belong to the browser, and are listed separately.
    assert_eq!(say(&ada, &workflow).await.status, 200);
    assert_eq!((listed(&ada).await, listed(&bob).await), (2, 0));
    let foreign = [JSON, ("origin", "https://evil.example")];
    let foreign = ada.send("POST", "/api/chat", &foreign, more.to_string()).await.unwrap();
    assert_eq!(foreign.refusal(), "403 auth.origin_mismatch");
    let open = thread_of(&say(&t.visitor(), &workflow).await.text());
    t.client().publish(&workflow.id, &PublishRequest { require_login: Some(true) }).await.unwrap();
    let others = chat::add(&workflow, &open, "more");
    assert_eq!(post(&ada, "/api/chat", &others).await.refusal(), "404 thread.not_found");

    assert_eq!(post(&ada, "/api/auth/logout", &json!({})).await.status, 204);
    assert_eq!(post(&ada, "/api/chat", &more).await.refusal(), "401 chat.login_required");
}

#[tokio::test]
async fn a_foreign_origin_cannot_use_the_session_of_a_user() {
    let (t, mail) = service().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let (ada, tokens) = signed_in(&t, &mail, ADA).await;
    let body = chat::create(&workflow, "hi").to_string();
    let send = async |headers: &[(&str, &str)]| {
        ada.send("POST", "/api/chat", headers, body.clone()).await.unwrap().refusal()
    };
    for origin in ["https://evil.example", "null"] {
        assert_eq!(send(&[JSON, ("origin", origin)]).await, "403 auth.origin_mismatch");
    }
    assert_eq!(send(&[("content-type", "text/plain")]).await, "415 request.unsupported_media_type");
    assert_eq!(send(&[JSON]).await, "200");
    // An access token is for the API only.
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    assert_eq!(send(&[JSON, ("authorization", &bearer)]).await, "401 chat.session_invalid");
    t.settled().await;
}

#[tokio::test]
async fn a_chat_page_redirects_to_the_sign_in_and_opens_after_it() {
    let (t, mail) = service().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let page = format!("/chat/{}", workflow.id);
    let away = t.get(&page).await;
    assert_eq!((away.status, away.header("cache-control")), (303, Some("no-store")));
    assert_eq!(away.header("location").unwrap(), format!("../login?return_to=%2Fchat%2F{}", workflow.id));
    let (ada, _) = signed_in(&t, &mail, ADA).await;
    let shown = get(&ada, &page).await;
    assert_eq!((shown.status, shown.header("cache-control")), (200, Some("no-store")));
    assert!(shown.text().contains(r#"signed-in-as="ada@example.org""#));
    let login = get(&ada, "/login").await;
    assert!(
        login.status == 200
            && login.text().contains(ADA)
            && login.header("cache-control") == Some("no-store")
    );
    for away in ["//evil.example", "https://evil.example/", "javascript:alert(1)", "/\\evil.example"] {
        let encoded: String = url::form_urlencoded::byte_serialize(away.as_bytes()).collect();
        let login = t.get(&format!("/login?return_to={encoded}")).await;
        assert!(login.status == 200 && login.text().contains(r#"data-return-to="""#), "{away}");
    }
    ada.set_cookie(SESSION, "x");
    assert!(get(&ada, &page).await.header("location").is_some());
}
