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
mod site;
mod talking;
mod training;

use std::time::Duration;

use integration_tests::{Browser, TestService, Workflow};

/// Clock steps that leave a browser time to render in between.
const SLOWLY: Duration = Duration::from_millis(2);

/// Opens a browser on a workflow's share page.
async fn open(t: &TestService, workflow: &Workflow) -> Browser {
    let browser = Browser::start().await;
    browser.goto(&address(t, workflow)).await;
    browser.until("document.querySelector('#callboard-message')").await;
    browser
}

fn address(t: &TestService, workflow: &Workflow) -> String {
    format!("http://{}/chat/{}", t.address(), workflow.id)
}

/// Sends a message like a user.
async fn say(browser: &Browser, text: &str) {
    let before = browser.js("return document.querySelectorAll('.bubble').length").await;
    browser.write("#callboard-message", text).await;
    browser.press("\u{E007}").await;
    browser.until(&format!("document.querySelectorAll('.bubble').length > {before}")).await;
}

/// Waits until no reply is pending.
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

/// Messages and replies, in order.
async fn messages(browser: &Browser) -> Vec<String> {
    browser.texts(".bubble, .assistant .markdown").await
}

/// Waits until the page shows this failure.
async fn failed(browser: &Browser, text: &str) {
    let quoted = serde_json::Value::from(text);
    browser
        .until(&format!("document.querySelector('.failure:not([hidden])')?.innerText.includes({quoted})"))
        .await;
}
