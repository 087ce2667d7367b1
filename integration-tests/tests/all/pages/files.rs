//! Files in the chat: attached, shown, rejected; and widget actions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{Browser, TestService, graphs};
use serde_json::{Value, json};

use super::{idle, open, replied, say};
use crate::attachments::red;

/// Chooses files like the file picker: `[name, base64]` each.
async fn attach(browser: &Browser, files: &Value) {
    let choose = format!(
        "const input = document.querySelector('input[type=file]'), chosen = new DataTransfer();
         for (const [name, data] of {files}) {{
             const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
             chosen.items.add(new File([bytes], name));
         }}
         input.files = chosen.files;
         input.dispatchEvent(new Event('change'));
         return 1"
    );
    browser.js(&choose).await;
}

/// The upload states of the next message's files.
async fn states(browser: &Browser) -> Value {
    browser.js("return [...document.querySelectorAll('.uploads .file-chip')].map((chip) => chip.dataset.state).join(' ')").await
}

#[tokio::test]
async fn attached_files_reach_the_model_and_survive_a_reload() {
    let t = TestService::start().await;
    let ask = json!({"name": "answer", "type": "llm", "model": "practice/assistant", "messages": "{{ messages }}",
                     "stream": true});
    let workflow = t.workflow().graph(graphs::chain(&[ask], None)).published().create().await;
    let browser = open(&t, &workflow).await;
    let files = json!([
        ["red.png", STANDARD.encode(red())],
        ["notes.txt", STANDARD.encode("Order 7 left on Monday.")]
    ]);
    attach(&browser, &files).await;
    browser.until("document.querySelectorAll('.uploads .file-chip[data-state=done]').length === 2").await;
    browser.assert_accessible("attached files").await;
    say(&browser, "What is in the picture?").await;
    replied(&browser, "red").await;
    idle(&browser).await;
    assert_eq!(states(&browser).await, "");
    let shown = "document.querySelector('.attachments img')?.naturalWidth === 64 &&
                 document.querySelector('.attachments').innerText.includes('notes.txt')";
    browser.until(shown).await;
    browser.assert_accessible("a message with files").await;
    browser.be_a_phone().await;
    browser.be_dark().await;
    browser.assert_accessible("a message with files on a phone, dark").await;
    browser.reload().await;
    browser.until(shown).await;
    // Enter begins a new line on a phone.
    browser.write("#callboard-message", "When did order 7 leave?").await;
    browser.click(".send").await;
    replied(&browser, "Monday").await;
    browser.finish().await;
}

#[tokio::test]
async fn a_rejected_file_shows_the_reason_and_is_removed() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    attach(
        &browser,
        &json!([["page.html", STANDARD.encode("<!doctype html><p>hi")], ["ok.txt", STANDARD.encode("ok")]]),
    )
    .await;
    browser.until("document.querySelector('.uploads .file-chip[data-state=failed]')").await;
    browser.until("document.querySelector('.uploads .file-chip[data-state=done]')").await;
    let failed = "return document.querySelector('.file-chip[data-state=failed]').innerText";
    let text = browser.js(failed).await;
    assert!(text.as_str().unwrap().contains("type"), "{text}");
    browser.assert_accessible("a refused file").await;
    browser.write("#callboard-message", "look").await;
    browser.press("\u{E007}").await;
    assert_eq!(
        browser.js("return document.querySelectorAll('.bubble').length").await,
        0,
        "not while a file has failed"
    );
    browser.click(".file-chip[data-state=failed] [data-does=remove]").await;
    browser.click("#callboard-message").await;
    browser.press("\u{E007}").await;
    replied(&browser, "You said: look").await;
    assert_eq!(t.scalar("SELECT string_agg(name, ' ') FROM attachments WHERE contained").await, "ok.txt");
    browser.finish().await;
}

#[tokio::test]
async fn a_chat_without_uploads_has_no_attach_button() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    t.execute("UPDATE workflows SET chat = '{\"uploads\": false}'").await;
    let browser = open(&t, &workflow).await;
    assert_eq!(
        browser.js("return document.querySelector('[aria-label=\"Attach files\"]')").await,
        Value::Null
    );
    browser.finish().await;
}

#[tokio::test]
async fn buttons_and_forms_update_their_widget() {
    let t = TestService::start().await;
    let card = |text: &str| {
        json!({"type": "Card", "children": [
            {"type": "Text", "id": "n", "value": text},
            {"type": "Form", "onSubmitAction": {"type": "name"}, "children": [
                {"type": "Label", "value": "Name", "fieldName": "name"}, {"type": "Input", "name": "name"},
                {"type": "Button", "label": "Save", "submit": true}]},
            {"type": "Button", "label": "More", "onClickAction": {"type": "more", "payload": {"by": 5}}},
            {"type": "Button", "label": "At once", "onClickAction": {"type": "more", "payload": {"by": 1}, "streaming": false}}]})
    };
    let more = "{{ ((inputs.action.widget.children[0].value | int) + inputs.action.payload.by) | string }}";
    let is =
        |kind: &str| json!({"when": format!("inputs.action and inputs.action.type == '{kind}'"), "to": kind});
    let graph = json!({"format": "graph/1",
        "nodes": [
            {"name": "first", "type": "widget", "key": "card", "widget": card("1")},
            {"name": "more", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card(more)},
            {"name": "name", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card("{{ inputs.action.payload.name }}")},
        ],
        "edges": [{"from": "START", "cases": [is("more"), is("name")], "else": "first"},
                  {"from": ["first", "more", "name"], "to": "END"}]});
    let workflow = t.workflow().graph(graph).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Go").await;
    let shows =
        |text: &str| format!("document.querySelector('.message.widget')?.innerText.includes('{text}')");
    browser.until(&shows("1")).await;
    idle(&browser).await;
    let press = |label: &str| {
        format!(
            "[...document.querySelectorAll('.message.widget button')].find((b) => b.textContent.trim() === '{label}').click(); return 1"
        )
    };
    browser.js(&press("More")).await;
    browser.until(&shows("6")).await;
    idle(&browser).await;
    browser.js(&press("At once")).await;
    browser.until(&shows("7")).await;
    browser.write(".message.widget input", "Ada").await;
    browser.js(&press("Save")).await;
    browser.until(&shows("Ada")).await;
    idle(&browser).await;
    browser.assert_accessible("a widget with a form").await;
    let runs = "SELECT string_agg(trigger, ' ' ORDER BY id) FROM runs";
    assert_eq!(t.scalar(runs).await, "chat chat action chat");
    browser.reload().await;
    browser.until(&shows("Ada")).await;
    browser.finish().await;
}
