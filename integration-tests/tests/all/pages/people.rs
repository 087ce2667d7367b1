//! Users with a keyboard, a screen reader, a phone, a dark theme, or right-to-left text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fantoccini::key::Key;
use integration_tests::{Browser, TestService, Workflow, graphs};
use serde_json::json;

use super::{address, idle, messages, open, replied, say};

const MARKDOWN: &str = "# Title\n\nText with **bold**, `code` and [a link](https://example.org).\n\n1. one\n2. two\n   - [x] done\n   - [ ] open\n\n> quoted\n\n```js\nlet x = 1;\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\nThe end.";

async fn chat_with_reply(t: &TestService) -> (Browser, Workflow) {
    let workflow = t.workflow().named("Desk").graph(graphs::reply(MARKDOWN)).published().create().await;
    let browser = open(t, &workflow).await;
    (browser, workflow)
}

async fn with_a_reply(browser: &Browser) {
    say(browser, "Tell me").await;
    replied(browser, "The end.").await;
    idle(browser).await;
    browser.until("document.querySelectorAll('.thread').length === 1").await;
}

#[tokio::test]
async fn the_page_is_accessible_in_light_and_dark() {
    let t = TestService::start().await;
    let (browser, _) = chat_with_reply(&t).await;
    browser.assert_accessible("the start").await;
    with_a_reply(&browser).await;
    browser.assert_accessible("a conversation").await;
    browser.be_dark().await;
    browser.assert_accessible("a conversation in the dark").await;
    browser.js("document.querySelector('[aria-label^=\"Delete\"]').click()").await;
    browser.assert_accessible("a question").await;
    browser.click("dialog .button:not(.danger)").await;
    browser.finish().await;
}

#[tokio::test]
async fn the_page_fits_a_phone() {
    let t = TestService::start().await;
    let (browser, workflow) = chat_with_reply(&t).await;
    browser.be_a_phone().await;
    browser.goto(&address(&t, &workflow)).await;
    browser.assert_accessible("the start on a phone").await;
    browser.write("textarea", "Tell me").await;
    browser.click(".send").await;
    replied(&browser, "The end.").await;
    idle(&browser).await;
    let wide = browser.js("return [document.documentElement.scrollWidth, innerWidth]").await;
    assert_eq!(wide, json!([390, 390]), "the page does not overflow sideways");
    let small = browser
        .js("return [...document.querySelectorAll('button')].filter((b) => b.checkVisibility() && b.getBoundingClientRect().height < 24).map((b) => b.ariaLabel ?? b.innerText)")
        .await;
    assert_eq!(small, json!([]), "large enough for a finger");
    browser.click("[aria-label='Your conversations']").await;
    browser.until("document.querySelector('.history').getBoundingClientRect().left === 0").await;
    browser.assert_accessible("the list on a phone").await;
    assert_eq!(browser.js("return document.querySelector('.main').inert").await, true);
    browser.key(Key::Escape).await;
    browser.until("document.activeElement.ariaLabel === 'Your conversations'").await;
    assert_eq!(browser.js("return document.querySelector('.history').inert").await, true);
    browser.click("[aria-label='Your conversations']").await;
    browser.click(".new").await;
    browser.until("document.querySelector('.start').checkVisibility()").await;
    browser.finish().await;
}

#[tokio::test]
async fn the_chat_is_usable_by_keyboard_alone() {
    let t = TestService::start().await;
    let (browser, _) = chat_with_reply(&t).await;
    // The message box has the focus from the start.
    browser.press("Tell me").await;
    browser.key(Key::Enter).await;
    replied(&browser, "The end.").await;
    idle(&browser).await;
    browser.until("document.querySelectorAll('.thread').length === 1").await;
    let mut reached = Vec::new();
    for _ in 0..24 {
        browser.key(Key::Tab).await;
        let name = browser
            .js("const e = document.activeElement; return e.ariaLabel || e.innerText.split('\\n')[0] || e.id")
            .await;
        reached.push(name.as_str().unwrap_or_default().to_owned());
        if reached.last().is_some_and(|name| name == "callboard-message") {
            break;
        }
    }
    // Between the last and the first element, the focus is on the browser itself.
    reached.dedup();
    assert_eq!(
        reached,
        [
            "Send",
            "Go to the message box",
            "New conversation",
            "Search conversations by title",
            "Tell me",
            "Rename “Tell me”",
            "Delete “Tell me”",
            "Export conversation",
            "Download all my data",
            "Erase all my data",
            "Conversation",
            "a link",
            "Copy",
            "Code, js",
            "Table",
            "Copy the reply",
            "Good reply",
            "Bad reply",
            "Ask for another answer",
            "Attach files",
            "callboard-message"
        ]
    );
    // Renames using keys only.
    browser.js("document.querySelector('.new').focus()").await;
    for _ in 0..3 {
        browser.key(Key::Tab).await;
    }
    browser.key(Key::Enter).await;
    browser.press("By hand").await;
    browser.key(Key::Enter).await;
    browser.until("document.querySelector('.thread')?.innerText === 'By hand'").await;
    browser.until("document.activeElement.ariaLabel === 'Rename “By hand”'").await;
    browser.finish().await;
}

#[tokio::test]
async fn a_screen_reader_announces_a_complete_reply_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words("One two three.", 60)).published().create().await;
    let browser = open(&t, &workflow).await;
    browser
        .js("window.heard = []; const s = document.querySelector('.unseen[role=status]');
             new MutationObserver(() => heard.push(s.textContent)).observe(s, {childList: true, characterData: true, subtree: true})")
        .await;
    say(&browser, "Count").await;
    idle(&browser).await;
    browser.until("heard.length === 2").await;
    assert_eq!(
        browser.js("return heard").await,
        json!(["Sent. Waiting for the reply.", "The reply: One two three."])
    );
    let log =
        browser.js("const l = document.querySelector('[role=log]'); return [l.ariaLive, l.ariaLabel]").await;
    assert_eq!(log, json!(["off", "Messages"]));
    assert_eq!(
        browser.js("return [...document.querySelectorAll('article h2')].map((h) => h.textContent)").await,
        json!(["You said:", "The reply:"])
    );
    browser.finish().await;
}

#[tokio::test]
async fn every_kind_of_message_has_a_heading() {
    let t = TestService::start().await;
    let card = json!({"type": "Card", "children": [{"type": "Text", "value": "A refund"}]});
    let task = json!({"type": "custom", "title": "Look it up"});
    let question = json!({"id": "why", "type": "freeform", "question": "Why?"});
    let nodes = [
        // The page has no handler, so the turn continues.
        json!({"name": "where", "type": "client_tool", "tool": "place", "arguments": {}}),
        json!({"name": "work", "type": "show", "kind": "task", "task": task}),
        json!({"name": "card", "type": "widget", "widget": card}),
        json!({"name": "drawn", "type": "show", "kind": "image",
               "image": {"base64": STANDARD.encode(crate::attachments::red())}}),
        json!({"name": "said", "type": "reply", "text": "Done."}),
        json!({"name": "form", "type": "ask", "inputs": [question]}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "order 7").await;
    browser.until("document.querySelector('form.questions:not([hidden]) textarea')").await;
    let headings =
        "return [...new Set([...document.querySelectorAll('article h2')].map((h) => h.textContent))].sort()";
    assert_eq!(
        browser.js(headings).await,
        json!([
            "A card:",
            "A tool of the page:",
            "An image:",
            "Questions:",
            "Tasks:",
            "The reply:",
            "You said:"
        ])
    );
    // The service does not store notices, and the page keeps only those after the last message.
    let noted = [
        json!({"name": "said", "type": "reply", "text": "Done."}),
        json!({"name": "noted", "type": "notice", "message": "Noted."}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&noted, None)).published().create().await;
    browser.goto(&address(&t, &workflow)).await;
    say(&browser, "order 8").await;
    browser
        .until("[...document.querySelectorAll('article h2')].some((h) => h.textContent === 'A notice:')")
        .await;
    browser.finish().await;
}

#[tokio::test]
async fn right_to_left_text_has_its_direction() {
    let t = TestService::start().await;
    let hebrew = "שלום, מה שלומך?";
    let workflow =
        t.workflow().graph(graphs::reply("{{ inputs.message }}\n\nAnd English.")).published().create().await;
    let browser = open(&t, &workflow).await;
    browser.write("textarea", hebrew).await;
    let direction = |css: &str| format!("return getComputedStyle(document.querySelector('{css}')).direction");
    assert_eq!(browser.js(&direction("textarea")).await, "rtl");
    browser.key(Key::Enter).await;
    replied(&browser, "And English.").await;
    assert_eq!(browser.js(&direction(".bubble")).await, "rtl");
    assert_eq!(browser.js(&direction(".markdown p:first-child")).await, "rtl");
    assert_eq!(browser.js(&direction(".markdown p:last-child")).await, "ltr");
    assert_eq!(messages(&browser).await[0], hebrew);
    idle(&browser).await;
    browser.finish().await;
}
