//! The chat on another site's page, in a real browser.

use integration_tests::{AnswerExt, Browser, JSON, TestService, Workflow, graphs};
use serde_json::json;

use super::site::Site;
use super::{messages, replied, say};

impl Site {
    /// Serves a page with one script tag, the element, and the page's own script.
    fn embeds(&self, t: &TestService, workflow: &Workflow, script: &str) {
        let page = format!(
            "<!doctype html><html lang=en><title>Shop</title><link rel=icon href=data:,>\
             <script src=\"http://{}/api/chat/assets/element.js\" async></script>\
             <h1>Shop</h1><callboard-chat workflow=\"{}\" style=\"height: 40rem\"></callboard-chat>\
             <script>const chat = document.querySelector('callboard-chat'); const told = []; {script}</script>",
            t.address(),
            workflow.id
        );
        self.put("/", "text/html", page);
    }
}

async fn service(site: &Site) -> TestService {
    TestService::builder()
        .set("SERVICE_CORS_ALLOW_ORIGINS", json!([site.origin()]).to_string())
        .set("CHAT_TOKEN_SIGNING_KEY", "chat-key-0123456789abcdef0123456789abcdef")
        .start()
        .await
}

/// A browser that has entered the frame on the page.
async fn open(site: &Site) -> Browser {
    let browser = Browser::start().await;
    browser.goto(&site.origin()).await;
    browser.enter_frame("callboard-chat iframe").await;
    browser.until("document.querySelector('#callboard-message')").await;
    browser
}

#[tokio::test]
async fn one_tag_embeds_the_chat_in_a_page_of_another_site() {
    let site = Site::start().await;
    let t = service(&site).await;
    let workflow = t.workflow().echo().published().create().await;
    site.embeds(
        &t,
        &workflow,
        "chat.addEventListener('callboard-ready', ({ detail }) => told.push(detail.name));",
    );
    let browser = open(&site).await;
    assert_eq!(browser.js("return document.activeElement.id").await, "", "the page keeps the focus");
    say(&browser, "hello").await;
    replied(&browser, "hello").await;
    browser.assert_accessible("the chat in a frame").await;
    let foreign = format!(
        "return performance.getEntriesByType('resource').map(({{ name }}) => name).filter((name) => !name.startsWith('http://{}/'))",
        t.address()
    );
    assert_eq!(browser.js(&foreign).await, json!([]), "in the frame");
    browser.leave_frame().await;
    assert_eq!(browser.js(&foreign).await, json!([]), "on the page");
    assert_eq!(browser.js("return told").await.as_array().unwrap().len(), 1);
    browser.reload().await;
    browser.enter_frame("callboard-chat iframe").await;
    browser.until("document.querySelectorAll('.bubble').length === 1").await;
    assert_eq!(messages(&browser).await, ["hello", "You said: hello"], "after the page was loaded again");
    browser.finish().await;
}

#[tokio::test]
async fn a_private_workflow_accepts_the_session_tokens_of_the_page() {
    let site = Site::start().await;
    let t = service(&site).await;
    let tool = json!({"name": "where", "type": "client_tool", "tool": "get_city", "arguments": {"of": "{{ inputs.message }}"}});
    let say_it =
        json!({"name": "say", "type": "reply", "text": "You are in {{ results.where.output.city }}."});
    let effect = json!({"name": "light", "type": "client_effect", "effect": "light", "data": {"on": true}});
    let workflow = t.workflow().graph(graphs::chain(&[effect, tool, say_it], None)).create().await;
    let body = json!({"workflow_id": workflow.id, "user": "ada"}).to_string();
    let token = t.post("/api/chat/session", &body).await.value()["client_secret"].clone();
    let script = format!(
        "let asked = 0; chat.getToken = async () => {{ asked += 1; return asked === 1 ? 'stale' : {token}; }};
         chat.onClientTool = async ({{ name, params }}) => ({{ city: `${{name}} ${{params.of}}` }});
         chat.addEventListener('callboard-effect', ({{ detail }}) => told.push(detail));"
    );
    site.embeds(&t, &workflow, &script);
    let mut browser = open(&site).await;
    say(&browser, "Ada").await;
    replied(&browser, "You are in get_city Ada.").await;
    browser.leave_frame().await;
    assert_eq!(
        browser.js("return asked").await,
        2,
        "another token after the refused one, and none for each request"
    );
    assert_eq!(browser.js("return told").await, json!([{"name": "light", "data": {"on": true}}]));
    assert_eq!(t.scalar("SELECT owner_kind || owner_id FROM threads").await, "sessionada");
    browser.network_may_fail();
    browser.finish().await;
}

#[tokio::test]
async fn a_page_of_an_unlisted_origin_shows_the_reason() {
    let site = Site::start().await;
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    site.embeds(
        &t,
        &workflow,
        "chat.addEventListener('callboard-error', ({ detail }) => told.push(detail.message));",
    );
    let browser = Browser::start().await;
    browser.goto(&site.origin()).await;
    browser.until("chat.innerText.includes('SERVICE_CORS_ALLOW_ORIGINS')").await;
    assert_eq!(browser.js("return told.length").await, 1);
}

#[tokio::test]
async fn a_chat_that_requires_a_login_links_to_its_page_from_the_frame() {
    let site = Site::start().await;
    let t = service(&site).await;
    let workflow = t.workflow().echo().published().create().await;
    let published = t.send("POST", &workflow.path("/publish"), &[JSON], r#"{"require_login": true}"#).await;
    assert!(published.is_success(), "{}", published.text());
    site.embeds(
        &t,
        &workflow,
        "chat.addEventListener('callboard-error', ({ detail }) => told.push(detail.message));",
    );
    let mut browser = Browser::start().await;
    browser.goto(&site.origin()).await;
    browser.enter_frame("callboard-chat iframe").await;
    browser.until("document.querySelector('a[target=_blank]')").await;
    let address = browser.js("return document.querySelector('a[target=_blank]').href").await;
    assert_eq!(address, format!("http://{}/chat/{}", t.address(), workflow.id));
    browser.assert_accessible("a frame before the sign-in").await;
    browser.leave_frame().await;
    let errors = browser.js("return told").await;
    assert!(errors[0].as_str().unwrap().starts_with("You are not signed in."), "{errors}");
    browser.network_may_fail();
    browser.finish().await;
}

#[tokio::test]
async fn listed_origins_may_embed_the_frame_and_every_origin_may_load_the_script() {
    let t = TestService::builder()
        .set("SERVICE_CORS_ALLOW_ORIGINS", r#"["https://a.example", "https://b.example"]"#)
        .start()
        .await;
    let frame = t.get("/chat/embed").await;
    let policy = frame.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'self' https://a.example https://b.example;"), "{policy}");
    assert_eq!(frame.header("x-frame-options"), None);
    let element = t.get("/api/chat/assets/element.js").await;
    assert_eq!(element.header("cross-origin-resource-policy"), Some("cross-origin"));
    let tag = element.header("etag").unwrap();
    assert_eq!(t.send("GET", "/api/chat/assets/element.js", &[("if-none-match", tag)], "").await.status, 304);
    let any = TestService::builder().set("SERVICE_CORS_ALLOW_ORIGINS", r#"["*"]"#).start().await;
    let frame = any.get("/chat/embed").await;
    assert!(frame.header("content-security-policy").unwrap().contains("frame-ancestors *;"));
    assert!(frame.text().contains("data-cookies=\"no\""), "no page gets the credentials of a cookie");
    let workflow = any.workflow().echo().published().create().await;
    let record = any.get(&format!("/api/chat/workflow?workflow_id={}", workflow.id)).await;
    assert_eq!(record.value()["id"], workflow.id);
    let private = any.workflow().echo().create().await;
    let refused = any.get(&format!("/api/chat/workflow?workflow_id={}", private.id)).await;
    assert_eq!(refused.refusal(), "403 chat.not_published");
}
