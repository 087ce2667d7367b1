//! Sending messages, reading replies as they arrive, stopping them, and asking for another one.

use integration_tests::{AnswerExt, TestService, graphs, pause, until};
use serde_json::json;
use wire::{UpdateChatSettings, UpdateWorkflow};

use super::{SLOWLY, failed, idle, messages, open, replied, say};
use crate::parked_turns::desk;
use crate::thread_status;
use crate::waiting_runs::answer;

const NUMBERS: &str =
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32";

#[tokio::test]
async fn a_reply_is_shown_while_it_streams() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().named("Desk").graph(graphs::words(NUMBERS, 40)).published().create().await;
    let browser = open(&t, &workflow).await;
    assert_eq!(browser.js("return document.title").await, "Desk");
    say(&browser, "Count").await;
    t.while_time_passes_in(SLOWLY, replied(&browser, "1 2 3")).await;
    let part = messages(&browser).await;
    assert!(part[1].len() < NUMBERS.len(), "not all at once: {part:?}");
    assert_eq!(browser.texts(".send").await.len(), 1);
    assert_eq!(browser.js("return document.querySelector('.send').ariaLabel").await, "Stop the reply");
    t.while_time_passes(idle(&browser)).await;
    assert_eq!(messages(&browser).await, ["Count", NUMBERS]);
    assert_eq!(browser.js("return document.querySelector('.send').ariaLabel").await, "Send");
    say(&browser, "Again").await;
    t.while_time_passes(idle(&browser)).await;
    assert_eq!(messages(&browser).await, ["Count", NUMBERS, "Again", NUMBERS]);
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
    browser.finish().await;
}

#[tokio::test]
async fn stopping_a_reply_keeps_its_text() {
    let t = TestService::start().await;
    let graph = graphs::interrupted("So far.", 60.0, "Never.");
    let workflow = t.workflow().graph(graph).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Go").await;
    replied(&browser, "So far.").await;
    browser.click(".send").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Go", "So far."]);
    assert_eq!(browser.texts(".assistant .state").await, ["Stopped"]);
    browser.assert_accessible("a reply that was stopped").await;
    // A reader who returns later sees it, too.
    browser.reload().await;
    browser.until("document.querySelector('.assistant .state')?.textContent === 'Stopped'").await;
    browser.until("document.querySelectorAll('.ways:not([hidden]) button').length === 2").await;
    t.until_scalar("the run to be stopped", "SELECT status FROM runs", "cancelled").await;
    // The next message starts a new turn, and the Escape key stops it.
    say(&browser, "Once more").await;
    browser.until("document.querySelectorAll('.assistant').length === 2").await;
    browser.press("\u{E00C}").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Go", "So far.", "Once more", "So far."]);
    // Both options: requesting the reply again, or continuing it.
    browser.click(".ways:not([hidden]) [data-action=again]").await;
    browser.until("document.querySelector('.send').ariaLabel === 'Stop the reply'").await;
    browser.click(".send").await;
    idle(&browser).await;
    browser.click(".ways:not([hidden]) [data-action=continue]").await;
    browser.until("document.querySelectorAll('.assistant').length === 3").await;
    browser.click(".send").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await[4..], ["Continue.", "So far."]);
    browser.finish().await;
}

#[tokio::test]
async fn a_parked_turn_does_not_block_the_page_and_continues_after_its_answer() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(desk()).published().create().await;
    let browser = open(&t, &workflow).await;
    let parked = "document.querySelector('callboard-chat').dataset.phase === 'parked'";
    say(&browser, "refund").await;
    browser.until(parked).await;
    assert_eq!(browser.texts(".doing").await, ["Refund 40?"]);
    assert_eq!(browser.js("return document.querySelector('.send').ariaLabel").await, "Send");
    browser.assert_accessible("a turn that waits for a person").await;
    // Another message gets its reply meanwhile, and then the page continues to wait.
    say(&browser, "hello").await;
    browser.until("document.querySelector('main').textContent.includes('You said: hello')").await;
    browser.until(parked).await;
    browser.reload().await;
    browser.until(parked).await;
    let run = json!({"id": t.scalar("SELECT id FROM runs ORDER BY id LIMIT 1").await});
    assert_eq!(answer(&t, &run, "ok", json!("yes")).await.status, 202);
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["refund", "Checking. Decided: yes.", "hello", "You said: hello"]);
    // The Escape key stops a waiting turn.
    say(&browser, "refund").await;
    browser.until(parked).await;
    browser.press("\u{E00C}").await;
    idle(&browser).await;
    assert_eq!(t.scalar("SELECT status FROM runs ORDER BY id DESC LIMIT 1").await, "cancelled");
    browser.finish().await;
}

#[tokio::test]
async fn a_stopped_reply_can_be_requested_again() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "Never.")).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Anybody?").await;
    browser.until("document.querySelector('.send').ariaLabel === 'Stop the reply'").await;
    browser.click(".send").await;
    idle(&browser).await;
    // Stopped before its first word, which a notice reports; after a reload, only the message is shown.
    assert_eq!(browser.texts(".notice-body").await, ["The answer was stopped."]);
    let button = "document.querySelector('.user [aria-label=\"Ask for an answer\"]:not([hidden])')";
    browser.until(button).await;
    browser.assert_accessible("a message without an answer").await;
    browser.reload().await;
    browser.until(button).await;
    let version = json!({"graph": graphs::interrupted("Here.", 60.0, "Never.")});
    t.json("POST", &workflow.path("/versions"), &version).await.expect(201);
    until("the newer version to answer", async || {
        browser.js("document.querySelector('.user .icon-button:not([hidden])')?.click()").await;
        pause(500).await;
        let begun = browser.texts(".assistant .markdown").await == ["Here."];
        browser.click(".send").await;
        idle(&browser).await;
        begun
    })
    .await;
    // After the first word, the reply offers it.
    browser.click(".assistant [data-action=again]").await;
    browser.until("document.querySelector('.assistant[data-status=streaming]')").await;
    browser.click(".send").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Anybody?", "Here."]);
    browser.finish().await;
}

#[tokio::test]
async fn a_new_answer_replaces_the_last_one() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("{{ run.id }}")).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Hello").await;
    idle(&browser).await;
    let first = messages(&browser).await;
    browser.click("[aria-label='Ask for another answer']").await;
    browser.until(&format!("!document.querySelector('.log').innerText.includes('{}')", first[1])).await;
    idle(&browser).await;
    let second = messages(&browser).await;
    assert_eq!((second.len(), &second[0]), (2, &first[0]));
    assert_ne!(first[1], second[1]);
    browser.reload().await;
    replied(&browser, &second[1]).await;
    assert_eq!(messages(&browser).await, second);
    browser.finish().await;
}

#[tokio::test]
async fn the_message_of_a_failed_turn_can_be_retried() {
    let t = TestService::start().await;
    let failing = graphs::chain(
        &[json!({"name": "no", "type": "assert", "when": "false", "message": "The stock list is empty."})],
        None,
    );
    let workflow = t.workflow().graph(failing).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Anything there?").await;
    failed(&browser, "node.failed").await;
    assert!(!browser.text(".failure").await.contains("Try again"), "the workflow has to be changed first");
    idle(&browser).await;
    let version = json!({"graph": graphs::reply("Plenty.")});
    t.json("POST", &workflow.path("/versions"), &version).await.expect(201);
    // Instances may serve a version for two seconds after a newer one was saved.
    until("the newer version to answer", async || {
        browser.js("document.querySelector('.user .icon-button:not([hidden])')?.click()").await;
        pause(100).await;
        idle(&browser).await;
        browser.texts(".assistant .markdown").await == ["Plenty."]
    })
    .await;
    assert_eq!(messages(&browser).await, ["Anything there?", "Plenty."]);
    assert!(browser.texts(".failure").await.is_empty());
    browser.finish().await;
}

#[tokio::test]
async fn a_rejected_message_is_kept_and_can_be_sent_again() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    t.client().unpublish(&workflow.id).await.unwrap();
    t.noticed().await;
    say(&browser, "Are you open?").await;
    failed(&browser, "This chat was closed by its owner.").await;
    assert!(browser.text(".user").await.contains("Not sent"));
    t.client().publish(&workflow.id, &wire::PublishRequest::default()).await.unwrap();
    browser.click(".failure button").await;
    replied(&browser, "You said: Are you open?").await;
    assert_eq!(messages(&browser).await, ["Are you open?", "You said: Are you open?"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
    browser.finish().await;
}

#[tokio::test]
async fn progress_and_notices_are_shown_with_the_reply() {
    let t = TestService::with_manual_clock().await;
    let graph = graphs::chain(
        &[
            json!({"name": "p", "type": "progress", "text": "Looking it up"}),
            json!({"name": "w", "type": "delay", "seconds": 0.6}),
            json!({"name": "n", "type": "notice", "level": "warning", "title": "Mind", "message": "It is **late**."}),
            json!({"name": "say", "type": "reply", "text": "Found."}),
        ],
        None,
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Where?").await;
    browser
        .until("document.querySelector('.progress:not([hidden])')?.innerText.includes('Looking it up')")
        .await;
    t.while_time_passes(replied(&browser, "Found.")).await;
    t.while_time_passes(idle(&browser)).await;
    assert_eq!(browser.texts(".notice-body").await, ["Mind\n\nIt is late."]);
    assert!(browser.texts(".progress").await.is_empty());
    browser.finish().await;
}

#[tokio::test]
async fn a_start_prompt_begins_a_conversation() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Helper").echo().published().create().await;
    let prompts = vec![json!({"label": "Ask about prices", "prompt": "What does it cost?"})];
    let chat = UpdateChatSettings { start_prompts: Some(prompts), ..UpdateChatSettings::default() };
    let description = Some(Some("Knows <b>everything</b>.".to_owned()));
    let update = UpdateWorkflow { description, chat: Some(chat), ..UpdateWorkflow::default() };
    t.client().update_workflow(&workflow.id, &update).await.unwrap();
    let browser = open(&t, &workflow).await;
    assert_eq!(browser.text(".start-text").await, "Knows <b>everything</b>.");
    browser.click(".prompt").await;
    replied(&browser, "You said: What does it cost?").await;
    assert!(browser.texts(".start").await.is_empty());
    idle(&browser).await;
    browser.finish().await;
}

#[tokio::test]
async fn a_draft_message_survives_a_reload() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    browser.write("textarea", "Half a thou").await;
    browser.reload().await;
    browser.until("document.querySelector('textarea')?.value === 'Half a thou'").await;
    browser.write("textarea", "ght\u{E008}\u{E007}\u{E000}second line").await;
    browser.press("\u{E007}").await;
    replied(&browser, "second line").await;
    assert_eq!(messages(&browser).await[0], "Half a thought\nsecond line");
    idle(&browser).await;
    browser.reload().await;
    replied(&browser, "second line").await;
    assert_eq!(browser.js("return document.querySelector('textarea').value").await, "");
    browser.finish().await;
}

#[tokio::test]
async fn tasks_keep_their_position_after_a_reload() {
    let t = TestService::start().await;
    let list = |name: &str, state: &str| {
        json!({"name": name, "type": "show", "kind": "workflow", "key": "work",
               "workflow": {"type": "custom", "summary": {"title": "Your order"},
                            "tasks": [{"type": "custom", "title": "Read it", "status_indicator": state},
                                      {"type": "thought", "content": "Is it paid?"}]}})
    };
    let nodes = [
        json!({"name": "one", "type": "reply", "text": "Wait."}),
        list("begun", "loading"),
        json!({"name": "hidden", "type": "hidden", "content": "not for people"}),
        json!({"name": "two", "type": "reply", "text": "Done."}),
        list("ended", "complete"),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Go").await;
    idle(&browser).await;
    let seen = async || {
        assert_eq!(browser.texts(".tasks strong").await, ["Your order"]);
        let states =
            "return [...document.querySelectorAll('.tasks li')].map((li) => li.dataset.state).join(' ')";
        assert_eq!(browser.js(states).await, "complete none");
        let order = "return [...document.querySelectorAll('.message')].map((m) => m.classList[1]).join(' ')";
        assert_eq!(browser.js(order).await, "user assistant tasks assistant");
        let whole = "return document.body.textContent.includes('not for people')";
        assert_eq!(browser.js(whole).await, false);
    };
    seen().await;
    browser.assert_accessible("tasks in a conversation").await;
    browser.reload().await;
    browser.until("document.querySelectorAll('.tasks li').length === 2").await;
    seen().await;
    browser.finish().await;
}

#[tokio::test]
async fn a_streamed_widget_is_the_same_after_a_reload() {
    let t = TestService::start().await;
    let card = |name: &str, text: &str, more: bool| {
        let children = json!([
            {"type": "Title", "value": "Your order"},
            {"type": "Markdown", "id": "state", "value": text, "streaming": more},
            {"type": "Image", "src": "javascript:alert(1)", "alt": "no"},
            {"type": "Label", "value": "Why", "fieldName": "why"},
            {"type": "Input", "name": "why"},
            {"type": "Button", "label": "Cancel it", "onClickAction": {"type": "order.cancel"}},
            {"type": "Button", "label": "Show it", "onClickAction": {"type": "show", "handler": "client"}}]);
        json!({"name": name, "type": "widget", "key": "card", "more": more,
               "widget": {"type": "Card", "children": children}})
    };
    let wait = |name: &str| json!({"name": name, "type": "delay", "seconds": 2});
    let steps = |name: &str, titles: &[&str]| {
        let tasks: Vec<_> = titles.iter().map(|title| json!({"type": "custom", "title": title})).collect();
        json!({"name": name, "type": "show", "kind": "workflow", "key": "steps", "more": true,
               "workflow": {"type": "custom", "tasks": tasks}})
    };
    let source = json!({"type": "url", "title": "The order", "url": "https://example.org/7"});
    let nodes = [
        card("opened", "On its", true),
        steps("one", &["Read"]),
        wait("wait"),
        steps("two", &["Read", "Asked"]),
        card("ended", "On its **way**", false),
        json!({"name": "said", "type": "reply", "text": "See.", "annotations": [{"source": source}]}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Go").await;
    browser.until("document.querySelectorAll('.tasks li').length === 1").await;
    browser.until("document.querySelector('.message.widget')?.textContent.includes('On its')").await;
    let typed = "const field = document.querySelector('.message.widget input');
                 field.value = 'late'; field.dispatchEvent(new Event('input', {bubbles: true})); return 1";
    browser.js(typed).await;
    browser.until("document.querySelector('.message.widget strong')?.textContent === 'way'").await;
    idle(&browser).await;
    assert_eq!(browser.js("return document.querySelector('.message.widget input').value").await, "late");
    let seen = async || {
        assert_eq!(browser.js("return document.querySelectorAll('.tasks li').length").await, 2);
        assert_eq!(
            browser.js("return document.querySelectorAll('.message.widget img[src]').length").await,
            0
        );
        let source = "return document.querySelector('.message.assistant a').href";
        assert_eq!(browser.js(source).await, "https://example.org/7");
        let buttons = "return [...document.querySelectorAll('.message.widget button')]
                       .filter((b) => b.textContent.trim() && b.offsetParent)
                       .map((b) => `${b.textContent.trim()} ${b.disabled}`).join()";
        assert_eq!(browser.js(buttons).await, "Cancel it false,Show it false");
    };
    seen().await;
    let event = "document.addEventListener('callboard-action', (e) => { window.acted = e.detail.action.type; });
                 [...document.querySelectorAll('.message.widget button')].find((b) => b.textContent.includes('Show it')).click();
                 return window.acted";
    assert_eq!(browser.js(event).await, "show");
    browser.assert_accessible("a widget in a conversation").await;
    browser.reload().await;
    browser.until("document.querySelector('.message.widget strong')?.textContent === 'way'").await;
    seen().await;
    browser.finish().await;
}

#[tokio::test]
async fn a_locked_thread_shows_its_reason_and_a_closed_one_rejects_messages() {
    let t = TestService::start().await;
    let workflow = thread_status::desk(&t).await;
    let browser = open(&t, &workflow).await;
    say(&browser, "lock").await;
    replied(&browser, "Done.").await;
    idle(&browser).await;
    assert_eq!(browser.texts(".locked:not([hidden])").await, ["Please wait, lock"]);
    let state = "return [...document.querySelectorAll('.text:disabled, .box:not([hidden]), .actions [aria-label^=Ask]:not([hidden])')].map((e) => e.className).join()";
    assert_eq!(browser.js(state).await, "box,text", "no other answer can be requested");
    browser.assert_accessible("a locked thread").await;
    // It was reopened elsewhere.
    t.execute("UPDATE threads SET status = 'active', status_reason = NULL").await;
    browser.reload().await;
    replied(&browser, "Done.").await;
    browser.until("document.querySelector('.box:not([hidden]) .text:not(:disabled)')").await;
    // It is closed in another tab while this one is open.
    t.execute("UPDATE threads SET status = 'closed'").await;
    say(&browser, "more").await;
    browser
        .until(
            "document.querySelector('.locked:not([hidden])')?.textContent === 'This conversation is closed.'",
        )
        .await;
    browser.until("document.querySelector('.box[hidden]')").await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
    // No `finish`: the rejected message is on the console.
    browser.assert_accessible("a closed thread").await;
}
