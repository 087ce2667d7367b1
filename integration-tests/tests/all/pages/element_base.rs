//! The element's `base` attribute: the element calls the service at that URL, wherever its script comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use integration_tests::{Browser, TestService, Workflow};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{messages, replied, say};

/// The site's own copy of the script: three folders below its origin, like the service's.
const SCRIPT: &str = "/assets/of/shop/chat.js";

/// A page on another site that serves the element's script itself. It is `localhost`, and the service is `127.0.0.1`.
struct Site {
    port: u16,
    files: Files,
}

/// Media types and bodies by path.
type Files = Arc<Mutex<BTreeMap<String, (&'static str, String)>>>;

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let files = Files::default();
        let served = Arc::clone(&files);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&served)));
            }
        });
        Self { port, files }
    }

    fn origin(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

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
        let mut files = self.files.lock();
        files.insert(SCRIPT.to_owned(), ("text/javascript", script));
        files.insert("/".to_owned(), ("text/html", page));
    }
}

/// Responds to one request with the file at its path. A browser may open a connection that it does not use.
async fn answer(mut stream: TcpStream, files: Files) {
    let mut buffer = vec![0; 8_192];
    let _ = stream.read(&mut buffer).await;
    let head = String::from_utf8_lossy(&buffer).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let found = files.lock().get(path).cloned();
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let (kind, body) = found.unwrap_or(("text/plain", "This site has no such page.".to_owned()));
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}", body.len());
    let _ = stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await;
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
