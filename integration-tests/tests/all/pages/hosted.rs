//! The page with the hosted widget, in a real browser, with a test CDN.

use integration_tests::{Browser, Cdn, TestService, until};
use serde_json::json;

use super::{address, messages, replied, say};

/// A widget that shows its options and sends messages with the page's `fetch`.
const WIDGET: &str = "
customElements.define('openai-chatkit', class extends HTMLElement {
  setOptions(options) { this.options = options; }
  connectedCallback() {
    this.append(Object.assign(document.createElement('iframe'), { title: 'widget' }));
  }
  async say(text) {
    const input = { content: [{ type: 'input_text', text }], attachments: [], inference_options: {} };
    const { url, fetch } = this.options.api;
    const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ type: 'threads.create', params: { input }, metadata: { of: 'widget' } }) });
    return await response.text();
  }
});";

async fn service(cdn: &Cdn) -> TestService {
    TestService::builder()
        .set("SERVICE_CHAT_CDN_BASE_URL", cdn.base_url())
        .set("SERVICE_CHAT_DOMAIN_KEY", "domain_pk_localhost_dev")
        .start()
        .await
}

#[tokio::test]
async fn the_hosted_widget_has_a_separate_page_and_policy() {
    let cdn = Cdn::start(WIDGET).await;
    let t = service(&cdn).await;
    let workflow = t.workflow().echo().published().create().await;
    let page = t.get(&format!("/chat/{}", workflow.id)).await;
    let policy = page.header("content-security-policy").unwrap();
    let origin = cdn.base_url();
    for part in [
        format!("script-src 'self' {origin};"),
        format!("frame-src {origin};"),
        "connect-src 'self';".to_owned(),
        format!("img-src 'self' data: https: {origin};"),
        "frame-ancestors 'none'".to_owned(),
    ] {
        assert!(policy.contains(&part), "{part} in {policy}");
    }
    assert!(!policy.contains("trusted-types"), "{policy}");
    let browser = Browser::start().await;
    browser.goto(&address(&t, &workflow)).await;
    browser.until("document.querySelector('openai-chatkit')?.options").await;
    let options = browser.js("return document.querySelector('openai-chatkit').options").await;
    assert_eq!(options["api"]["domainKey"], "domain_pk_localhost_dev");
    assert_eq!(options["api"]["url"], format!("http://{}/api/chat", t.address()));
    assert_eq!(
        options["composer"],
        json!({"attachments": {"enabled": true}, "dictation": {"enabled": false}})
    );
    let sent = browser.js_async("return await document.querySelector('openai-chatkit').say('hello')").await;
    assert!(sent.as_str().unwrap().contains("thread.item.done"), "{sent}");
    assert_eq!(t.scalar("SELECT workflow_id::text FROM threads").await, workflow.id);
    // The CDN's scripts run; scripts from another origin do not.
    let other = Cdn::start("window.evil = true;").await;
    let runs = format!(
        "const script = (src) => new Promise((done) => {{ const tag = document.createElement('script');
           Object.assign(tag, {{ src, onload: () => done(true), onerror: () => done(false) }}); document.head.append(tag); }});
         return [await script('{origin}/another.js'), await script('{}/evil.js')];",
        other.base_url()
    );
    assert_eq!(browser.js_async(&runs).await, json!([true, false]));
    assert!(other.requests().is_empty(), "the policy refuses it before any request");
    assert!(cdn.requests().iter().any(|head| head.starts_with("GET /another.js")), "a part of the widget");
}

#[tokio::test]
async fn the_built_in_chat_replaces_a_widget_without_a_script() {
    let cdn = Cdn::start(WIDGET).await;
    cdn.hangs(true);
    let t = service(&cdn).await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = Browser::start().await;
    browser.goto(&address(&t, &workflow)).await;
    browser.until("document.querySelector('#callboard-message')").await;
    say(&browser, "hello").await;
    replied(&browser, "hello").await;
    assert_eq!(messages(&browser).await, ["hello", "You said: hello"]);
    browser.assert_accessible("the built-in chat instead of the widget").await;
    until("the CDN was asked", async || !cdn.requests().is_empty()).await;
}
