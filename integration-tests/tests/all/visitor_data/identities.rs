//! The data of callers with a session token or a login: each gets only their own.

use integration_tests::{AnswerExt, MailServer, TestService, Workflow};
use serde_json::json;
use wire::PublishRequest;

use super::{Person, cookie, lines, of_type, texts};
use crate::auth::support::browser;
use crate::sign_in::SESSION;

const ROUTES: [(&str, &str); 2] = [("GET", "me/export"), ("DELETE", "me")];

/// A caller with a new session token.
async fn session<'a>(t: &'a TestService, workflow: &'a Workflow, user: Option<&str>) -> Person<'a> {
    let mut body = json!({"workflow_id": workflow.id});
    if let Some(user) = user {
        body["user"] = json!(user);
    }
    let answer = t.root().post("/api/chat/session", &body).await.expect(200);
    let token = format!("Bearer {}", answer.value()["client_secret"].as_str().unwrap());
    Person::with(t, workflow, "authorization", token)
}

/// A signed-in user.
async fn login<'a>(t: &'a TestService, workflow: &'a Workflow, mail: &MailServer, email: &str) -> Person<'a> {
    let browser = browser(t, mail, email).await;
    Person::with(t, workflow, "cookie", format!("{SESSION}={}", browser.cookie(SESSION).unwrap()))
}

#[tokio::test]
async fn a_session_token_gives_access_only_to_the_data_of_its_user() {
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("CHAT_TOKEN_SIGNING_KEY", "0123456789abcdef0123456789abcdef")
        .start()
        .await;
    let (workflow, other) = (t.workflow().echo().create().await, t.workflow().echo().create().await);
    let (ann, bob) = (session(&t, &workflow, Some("ann")).await, session(&t, &workflow, Some("bob")).await);
    let (nameless, elsewhere) = (session(&t, &workflow, None).await, session(&t, &other, Some("ann")).await);
    for (person, text) in
        [(&ann, "by ann"), (&bob, "by bob"), (&nameless, "by anyone"), (&elsewhere, "elsewhere")]
    {
        person.create(text).await;
    }
    // Another token for the same user.
    let ann = session(&t, &workflow, Some("ann")).await;
    let exported = lines(&ann.export().await);
    assert_eq!(exported[0]["visitor"], "session:ann");
    assert_eq!(texts(&exported), ["by ann", "You said: by ann"]);
    assert_eq!(texts(&lines(&bob.export().await)), ["by bob", "You said: by bob"]);
    for (method, of) in ROUTES {
        let refused = nameless.send(method, &nameless.path(of), &[], "").await;
        assert_eq!(refused.refusal(), "401 chat.visitor_unknown", "{method}");
        let refused = ann.send(method, &elsewhere.path(of), &[], "").await;
        assert_eq!(refused.refusal(), "401 chat.session_invalid", "{method}: a token of another workflow");
    }
    let erased = ann.erase().await;
    assert_eq!((erased.status, erased.value()), (200, json!({"threads": 1})));
    assert_eq!(lines(&ann.export().await).len(), 2, "the visitor and the end");
    assert_eq!(texts(&lines(&bob.export().await)), ["by bob", "You said: by bob"]);
    assert_eq!(texts(&lines(&elsewhere.export().await)), ["elsewhere", "You said: elsewhere"]);
    let left = "SELECT count(*) FROM thread_items WHERE content LIKE '%by anyone%'";
    assert_eq!(t.scalar(left).await, "2", "a thread of a session without a user is not of that user");
}

#[tokio::test]
async fn a_login_gives_access_only_to_the_data_of_its_user() {
    let mail = MailServer::start().await;
    let t = TestService::builder().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let (ada, bob) = (
        login(&t, &workflow, &mail, "ada@example.org").await,
        login(&t, &workflow, &mail, "bob@example.org").await,
    );
    ada.create("by ada").await;
    bob.create("by bob").await;
    let exported = lines(&ada.export().await);
    assert!(exported[0]["visitor"].as_str().unwrap().starts_with("user:"), "{}", exported[0]);
    assert_eq!(texts(&exported), ["by ada", "You said: by ada"]);
    for (method, of) in ROUTES {
        assert_eq!(
            t.send(method, &ada.path(of), &[], "").await.refusal(),
            "401 chat.login_required",
            "{method}"
        );
    }
    let foreign = ada.send("DELETE", &ada.path("me"), &[("origin", "https://evil.example")], "").await;
    assert_eq!(foreign.refusal(), "403 auth.origin_mismatch");
    assert_eq!(texts(&lines(&ada.export().await)).len(), 2, "nothing was erased");
    let erased = ada.erase().await;
    assert_eq!((erased.status, erased.value()), (200, json!({"threads": 1})));
    assert_eq!(lines(&ada.export().await).len(), 2, "the visitor and the end");
    assert_eq!(texts(&lines(&bob.export().await)), ["by bob", "You said: by bob"]);
}

#[tokio::test]
async fn a_cookie_and_a_login_identify_one_person() {
    let mail = MailServer::start().await;
    let t = TestService::builder().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let ada = login(&t, &workflow, &mail, "ada@example.org").await;
    ada.create("by the user").await;
    t.client().publish(&workflow.id, &PublishRequest { require_login: Some(false) }).await.unwrap();
    t.noticed().await;
    let begun = ada.create("by the browser").await;
    let both = Person::with(&t, &workflow, "cookie", format!("{}; {}", ada.header.1, cookie(&begun)));
    let (other, _) = Person::browser(&t, &workflow, "by another").await;
    let exported = lines(&both.export().await);
    let kinds: Vec<&str> = of_type(&exported, "visitor")
        .iter()
        .map(|line| line["visitor"].as_str().unwrap().split(':').next().unwrap())
        .collect();
    assert_eq!(kinds, ["visitor", "user"]);
    let mut exported_texts = texts(&exported);
    exported_texts.retain(|text| !text.starts_with("You said"));
    assert_eq!(exported_texts, ["by the browser", "by the user"]);
    let end = json!({"type": "end", "threads": 2, "items": 4, "attachments": 0});
    assert_eq!((of_type(&exported, "end").len(), exported.last().unwrap()), (1, &end));
    assert_eq!(both.erase().await.value(), json!({"threads": 2}));
    assert_eq!(lines(&both.export().await).len(), 3, "two visitors and the end");
    assert_eq!(texts(&lines(&other.export().await)).len(), 2);
}
