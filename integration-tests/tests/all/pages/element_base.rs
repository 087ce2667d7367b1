//! The element's `base` attribute: the element calls the service at that URL, wherever its script comes from.

use integration_tests::{Browser, TestService, Workflow};
use serde_json::json;

use super::site::Site;
use super::{messages, replied, say};

/// The site's own copy of the script: three folders below its origin, like the service's.
const SCRIPT: &str = "/assets/of/shop/chat.js";

impl Site {
    /// A service that allows this site to embed it.
    async fn service(&self) -> TestService {
        let origins = json!([self.origin()]).to_string();
        TestService::builder().set("SERVICE_CORS_ALLOW_ORIGINS", origins).start().await
    }

    /// Serves the element's script, and a page with the element.
    async fn shows(&self, t: &TestService, workflow: &Workflow, base: &str) {
        let script = t.get("/api/chat/assets/element.js").await.text();
        let page = format!(
            "<!doctype html><html lang=en><title>Shop</title><link rel=icon href=data:,><h1>Shop</h1>\
             <callboard-chat workflow=\"{}\" base=\"{base}\" style=\"height: 40rem\"></callboard-chat>\
             <script>const chat = document.querySelector('callboard-chat'); const told = [];\
             chat.addEventListener('callboard-error', ({{ detail }}) => told.push(detail.message));</script>\
             <script src=\"{SCRIPT}\"></script>",
            workflow.id
        );
        self.put(SCRIPT, "text/javascript", script);
        self.put("/", "text/html", page);
    }
}

/// Waits for the chat in the frame, and chats there.
async fn talk(browser: &Browser, t: &TestService, text: &str) {
    browser.enter_frame("callboard-chat iframe").await;
    browser.until("document.querySelector('#callboard-message')").await;
    let address = browser.js("return location.href").await;
    assert_eq!(address, format!("http://{}/chat/embed", t.address()));
    say(browser, text).await;
    replied(browser, text).await;
    let expected = [text.to_owned(), format!("You said: {text}")];
    assert_eq!(messages(browser).await, expected);
    browser.leave_frame().await;
}

#[tokio::test]
async fn the_base_attribute_selects_the_service_of_the_chat() {
    let site = Site::start().await;
    let t = site.service().await;
    let browser = Browser::start().await;
    for end in ["", "/"] {
        let workflow = t.workflow().echo().published().create().await;
        site.shows(&t, &workflow, &format!("http://{}{end}", t.address())).await;
        browser.goto(&site.origin()).await;
        talk(&browser, &t, "hello").await;
        let threads = format!("SELECT count(*) FROM threads WHERE workflow_id = '{}'", workflow.id);
        assert_eq!(t.scalar(&threads).await, "1");
        // Only the script comes from the site itself.
        let own = format!(
            "return performance.getEntriesByType('resource').map(({{ name }}) => name).filter((name) => name.startsWith('{}/'))",
            site.origin()
        );
        assert_eq!(browser.js(&own).await, json!([format!("{}{SCRIPT}", site.origin())]));
    }
    browser.finish().await;
}

#[tokio::test]
async fn a_changed_base_opens_the_chat_of_another_service() {
    let site = Site::start().await;
    let (one, two) = (site.service().await, site.service().await);
    let first = one.workflow().echo().published().create().await;
    let second = two.workflow().echo().published().create().await;
    site.shows(&one, &first, &format!("http://{}", one.address())).await;
    let browser = Browser::start().await;
    browser.goto(&site.origin()).await;
    talk(&browser, &one, "to the first").await;
    let script = format!(
        "chat.setAttribute('workflow', '{}'); chat.setAttribute('base', 'http://{}');",
        second.id,
        two.address()
    );
    browser.js(&script).await;
    let frame = format!(
        "document.querySelector('callboard-chat iframe').src === 'http://{}/chat/embed'",
        two.address()
    );
    browser.until(&frame).await;
    talk(&browser, &two, "to the second").await;
    for t in [&one, &two] {
        assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
    }
}

#[tokio::test]
async fn a_base_that_is_not_http_opens_no_frame() {
    let site = Site::start().await;
    let t = site.service().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = Browser::start().await;
    for base in ["javascript:alert(1)", "data:text/html,x", "http://"] {
        site.shows(&t, &workflow, base).await;
        browser.goto(&site.origin()).await;
        browser.until("chat.querySelector('[role=alert]')").await;
        assert_eq!(
            browser.text("callboard-chat").await,
            "The attribute base is not an http address.",
            "{base}"
        );
        assert_eq!(browser.js("return told").await, json!(["The attribute base is not an http address."]));
        assert_eq!(browser.js("return document.querySelector('iframe')").await, json!(null), "{base}");
    }
}
