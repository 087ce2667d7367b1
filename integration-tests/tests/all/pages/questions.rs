//! Questions and page tools: over reloads, from another window, with only a keyboard.

use integration_tests::{Browser, TestService, graphs, until};
use serde_json::json;

use super::{address, idle, open, replied, say};

/// Asks, then calls a page tool, then replies.
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

async fn form_shown(browser: &Browser) {
    browser.until("document.querySelector('form.questions:not([hidden]) fieldset.question')").await;
}

const HANDLER: &str = "document.querySelector('callboard-chat').onClientTool = ({ name, params }) => ({ city: `${name} ${params.precise}` })";

#[tokio::test]
async fn a_form_is_answered_after_a_reload_and_a_tool_runs() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Desk").graph(desk()).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "order 7").await;
    form_shown(&browser).await;
    idle(&browser).await;
    browser.assert_accessible("a form").await;
    // Entered text survives a reload.
    browser.click("fieldset.question input[type=radio]").await;
    browser.write("textarea.question-text", "broken").await;
    browser.reload().await;
    form_shown(&browser).await;
    assert_eq!(browser.js("return document.querySelector('textarea.question-text').value").await, "broken");
    browser.js(HANDLER).await;
    browser.be_dark().await;
    browser.assert_accessible("a form in the dark").await;
    browser.click("form.questions [data-does=send]").await;
    replied(&browser, "yes in place true").await;
    idle(&browser).await;
    assert_eq!(browser.texts(".questions-answers dd").await, ["yes", "broken"]);
    browser.assert_accessible("answers and a call").await;
    // The same after a reload, from stored data.
    browser.reload().await;
    replied(&browser, "yes in place true").await;
    assert_eq!(browser.texts(".questions-answers dd").await, ["yes", "broken"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded'").await, "3");
    browser.finish().await;
}

#[tokio::test]
async fn a_form_can_be_skipped_and_a_missing_tool_is_reported() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(desk()).published().create().await;
    let browser = open(&t, &workflow).await;
    browser.be_a_phone().await;
    browser.goto(&address(&t, &workflow)).await;
    browser.write("textarea", "order 7").await;
    browser.click(".send").await;
    form_shown(&browser).await;
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

#[tokio::test]
async fn enter_inserts_a_line_break_on_a_touch_screen() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    let key = "return document.querySelector('#callboard-message').enterKeyHint";
    // A narrow page shows the hint to screen readers only.
    let begins =
        |text: &str| format!("document.querySelector('#callboard-hint').textContent.startsWith('{text}')");
    assert_eq!(browser.js(key).await, "send");
    browser.until(&begins("Enter sends")).await;
    browser.be_a_phone().await;
    // The screen changes while the page is open.
    browser.until("document.querySelector('#callboard-message').enterKeyHint === 'enter'").await;
    browser.until(&begins("Enter begins a new line, the button sends.")).await;
    browser.write("#callboard-message", "one").await;
    browser.press("\u{E007}").await;
    browser.write("#callboard-message", "two").await;
    assert_eq!(browser.js("return document.querySelector('#callboard-message').value").await, "one\ntwo");
    browser.click(".send").await;
    replied(&browser, "You said: one").await;
    browser.finish().await;
}

#[tokio::test]
async fn only_permitted_callers_answer_run_questions_on_the_page() {
    let t = TestService::start().await;
    let nodes = [
        json!({"name": "ok", "type": "wait_for_input", "message": "Refund 40?", "schema": {"type": "boolean"}}),
        json!({"name": "why", "type": "wait_for_input", "message": "Why?", "schema": {"type": "string"}}),
        json!({"name": "said", "type": "reply", "text": "{{ results.ok.value }}: {{ results.why.value }}"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "refund").await;
    browser.until("document.querySelector('.run-questions form p')?.textContent === 'Refund 40?'").await;
    browser.assert_accessible("a question for a person").await;
    browser.click(".run-questions button").await;
    browser.until("document.querySelector('.run-questions label')?.textContent === 'Why?'").await;
    browser.write(".run-questions textarea", "42").await;
    browser.click(".run-questions [data-does=answer]").await;
    replied(&browser, "true: 42").await;
    idle(&browser).await;
    assert_eq!(browser.js("return document.querySelector('.run-questions').hidden").await, true);
    browser.finish().await;
    // A caller who only knows the thread may not answer.
    let mut t = TestService::builder().with_bootstrap_token().start().await;
    t.leave_work();
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "refund").await;
    browser.until("document.querySelector('callboard-chat').dataset.phase === 'parked'").await;
    assert_eq!(browser.texts(".doing").await, ["Refund 40?"]);
    assert_eq!(browser.js("return document.querySelector('.run-questions')").await, serde_json::Value::Null);
    browser.finish().await;
}

#[tokio::test]
async fn an_unsent_answer_survives_the_answer_to_another_question() {
    let t = TestService::start().await;
    let graph = json!({
        "format": "graph/1",
        "nodes": [
            {"name": "ok", "type": "wait_for_input", "message": "Refund 40?", "schema": {"type": "boolean"}},
            {"name": "why", "type": "wait_for_input", "message": "Why?", "schema": {"type": "string"}},
            {"name": "said", "type": "reply", "text": "{{ results.ok.value }}: {{ results.why.value }}"}
        ],
        "edges": [
            {"from": "START", "to": "ok"},
            {"from": "START", "to": "why"},
            {"from": ["ok", "why"], "to": "said"},
            {"from": "said", "to": "END"}
        ]
    });
    let workflow = t.workflow().graph(graph).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "refund").await;
    browser.until("document.querySelectorAll('.run-questions form').length === 2").await;
    browser.write(".run-questions textarea", "broken").await;
    browser.click(".run-questions form:not(:has(textarea)) button").await;
    browser.until("document.querySelectorAll('.run-questions form').length === 1").await;
    let typed = "return document.querySelector('.run-questions textarea').value";
    assert_eq!(browser.js(typed).await, "broken");
    browser.click(".run-questions [data-does=answer]").await;
    replied(&browser, "true: broken").await;
    idle(&browser).await;
    browser.finish().await;
}
