//! The pages, in a real browser.

mod element_base;
mod embedded;
mod files;
mod history;
mod hosted;
mod hostile;
mod landing;
mod modules;
mod network;
mod people;
mod provider;
mod questions;
mod served;
mod sign_in;
mod talking;
mod training;

use std::time::Duration;

use integration_tests::{Browser, TestService, Workflow};

/// Steps of the clock in hand that leave a browser the time to look at what comes meanwhile.
const SLOWLY: Duration = Duration::from_millis(2);

/// A browser on the share page of a workflow.
async fn open(t: &TestService, workflow: &Workflow) -> Browser {
    let browser = Browser::start().await;
    browser.goto(&address(t, workflow)).await;
    browser.until("document.querySelector('#callboard-message')").await;
    browser
}

fn address(t: &TestService, workflow: &Workflow) -> String {
    format!("http://{}/chat/{}", t.address(), workflow.id)
}

/// Says something, as somebody would.
async fn say(browser: &Browser, text: &str) {
    let before = browser.js("return document.querySelectorAll('.bubble').length").await;
    browser.write("#callboard-message", text).await;
    browser.press("\u{E007}").await;
    browser.until(&format!("document.querySelectorAll('.bubble').length > {before}")).await;
}

/// Waits until no reply is on its way.
async fn idle(browser: &Browser) {
    browser.until("document.querySelector('callboard-chat').dataset.phase === 'idle'").await;
}

/// Waits until the page shows this text in a reply.
async fn replied(browser: &Browser, text: &str) {
    let quoted = serde_json::Value::from(text);
    browser
        .until(&format!(
            "[...document.querySelectorAll('.assistant .markdown')].at(-1)?.innerText.includes({quoted})"
        ))
        .await;
}

/// What was said and answered, in order.
async fn messages(browser: &Browser) -> Vec<String> {
    browser.texts(".bubble, .assistant .markdown").await
}

/// Waits until the page says that something failed, and what.
async fn failed(browser: &Browser, text: &str) {
    let quoted = serde_json::Value::from(text);
    browser
        .until(&format!("document.querySelector('.failure:not([hidden])')?.innerText.includes({quoted})"))
        .await;
}
