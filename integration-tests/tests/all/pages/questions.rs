//! Questions and tools of the page, over reloads, from another window, with a keyboard alone.

use integration_tests::{Browser, TestService, graphs, until};
use serde_json::json;

use super::{address, idle, open, replied, say};

/// Asks, then calls a tool of the page, then answers.
fn desk() -> serde_json::Value {
    graphs::chain(
        &[
            json!({"name": "intro", "type": "reply", "text": "Two questions."}),
            json!({"name": "confirm", "type": "ask", "inputs": [
                {"id": "ok", "type": "multiple_choice", "question": "Send it back?", "options": [{"value": "yes"}, {"value": "no"}]},
                {"id": "why", "type": "freeform", "question": "Why?", "description": "One line is enough."}]}),
            json!({"name": "where", "type": "client_tool", "tool": "place", "arguments": {"precise": true}}),
            json!({"name": "said", "type": "reply",
                   "text": "{{ results.confirm.answers.ok['values'] | join }} in {{ results.where.output.city }}"}),
        ],
        None,
    )
}

async fn asked(browser: &Browser) {
    browser.until("document.querySelector('form.questions:not([hidden]) fieldset.question')").await;
}

const HANDLER: &str = "document.querySelector('callboard-chat').onClientTool = ({ name, params }) => ({ city: `${name} ${params.precise}` })";

#[tokio::test]
async fn a_form_is_answered_after_a_reload_and_a_tool_runs() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Desk").graph(desk()).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "order 7").await;
    asked(&browser).await;
    idle(&browser).await;
    browser.assert_accessible("a form").await;
    // What was entered survives a reload.
    browser.click("fieldset.question input[type=radio]").await;
    browser.write("textarea.question-text", "broken").await;
    browser.reload().await;
    asked(&browser).await;
    assert_eq!(browser.js("return document.querySelector('textarea.question-text').value").await, "broken");
    browser.js(HANDLER).await;
    browser.be_dark().await;
    browser.assert_accessible("a form in the dark").await;
    browser.click("form.questions [data-does=send]").await;
    replied(&browser, "yes in place true").await;
    idle(&browser).await;
    assert_eq!(browser.texts(".questions-answers dd").await, ["yes", "broken"]);
    browser.assert_accessible("answers and a call").await;
    // The same after a reload, from what is stored.
    browser.reload().await;
    replied(&browser, "yes in place true").await;
    assert_eq!(browser.texts(".questions-answers dd").await, ["yes", "broken"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded'").await, "3");
    browser.finish().await;
}

#[tokio::test]
async fn a_form_is_skipped_and_a_page_without_the_tool_says_so() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(desk()).published().create().await;
    let browser = open(&t, &workflow).await;
    browser.be_a_phone().await;
    browser.goto(&address(&t, &workflow)).await;
    browser.write("textarea", "order 7").await;
    browser.click(".send").await;
    asked(&browser).await;
    browser.assert_accessible("a form on a phone").await;
    browser.click("form.questions [data-does=skip]").await;
    // The page has no handler: the workflow learns that, and does not wait.
    until("the tool has an output", async || {
        t.scalar("SELECT count(*) FROM run_questions WHERE answer LIKE '%no handler%'").await == "1"
    })
    .await;
    assert_eq!(browser.texts(".questions-answers dd").await, ["Skipped", "Skipped"]);
    browser.finish().await;
}
