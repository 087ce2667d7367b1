//! The visitor's conversations.

use fantoccini::key::Key;
use integration_tests::{Browser, TestService, chat, graphs};

use super::{address, failed, idle, messages, open, replied, say};

/// A title wider than the list.
const PEARS: &str = "About pears, and about everything else that grows on the trees behind the harbour";

#[tokio::test]
async fn conversations_are_listed_opened_renamed_and_deleted() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    // The list shows a hint while it is empty.
    browser.until("document.querySelector('.history > .quiet')?.textContent === 'Your conversations will be listed here.'").await;
    say(&browser, "About apples").await;
    replied(&browser, "apples").await;
    idle(&browser).await;
    browser.click(".new").await;
    assert!(messages(&browser).await.is_empty());
    say(&browser, PEARS).await;
    replied(&browser, "pears").await;
    idle(&browser).await;
    browser.until("document.querySelectorAll('.thread').length === 2").await;
    let titles = browser.texts(".thread").await;
    assert!(PEARS.starts_with(titles[0].trim_end_matches('…')) && titles[1] == "About apples", "{titles:?}");
    assert_eq!(browser.texts("[aria-current]").await, titles[..1]);
    let wide = browser
        .js("const h = document.querySelector('.history'); return h.scrollWidth > h.clientWidth")
        .await;
    assert_eq!(wide, false, "a long title is cut");

    browser.js("document.querySelectorAll('.thread')[1].click()").await;
    replied(&browser, "apples").await;
    assert_eq!(messages(&browser).await, ["About apples", "You said: About apples"]);
    say(&browser, "More apples").await;
    replied(&browser, "More apples").await;
    idle(&browser).await;

    browser.js("document.querySelector('[aria-label^=\"Rename “About apples\"]').click()").await;
    browser.js("document.querySelector('.rename').value = ''").await;
    browser.write(".rename", "Fruit").await;
    browser.key(Key::Enter).await;
    browser.until("document.querySelectorAll('.thread')[1]?.innerText === 'Fruit'").await;
    assert_eq!(browser.text("h1").await, "Fruit");
    assert_eq!(t.scalar("SELECT count(*) FROM threads WHERE title = 'Fruit'").await, "1");
    browser.js("document.querySelector('[aria-label^=\"Rename “Fruit\"]').click()").await;
    browser.write(".rename", "Nothing").await;
    browser.key(Key::Escape).await;
    browser.until("document.querySelectorAll('.thread')[1]?.innerText === 'Fruit'").await;

    browser.js("document.querySelector('[aria-label=\"Delete “Fruit”\"]').click()").await;
    browser.click("dialog .button:not(.danger)").await;
    browser.until("!document.querySelector('dialog')").await;
    assert_eq!(browser.texts(".thread").await.len(), 2);
    browser.js("document.querySelector('[aria-label=\"Delete “Fruit”\"]').click()").await;
    browser.click("dialog .danger").await;
    browser.until("document.querySelectorAll('.thread').length === 1").await;
    assert_eq!(browser.texts(".thread").await, titles[..1]);
    assert!(messages(&browser).await.is_empty(), "its conversation was open");
    browser.reload().await;
    browser.until("document.querySelectorAll('.thread').length === 1").await;
    browser.finish().await;
}

#[tokio::test]
async fn a_long_conversation_is_loaded_page_by_page() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "message 0").await;
    idle(&browser).await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    for n in 1..30 {
        let body = chat::add(&workflow, &thread, &format!("message {n}"));
        assert_eq!(t.chat(&body).await.status, 200);
    }
    browser.reload().await;
    replied(&browser, "message 29").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await.len(), 40);
    let at_the_end = "const s = document.querySelector('.scroll'); return s.scrollHeight - s.clientHeight - s.scrollTop < 5";
    assert_eq!(browser.js(at_the_end).await, true);
    browser.js("document.querySelector('.scroll').scrollTop = 0").await;
    browser.click(".earlier:not([hidden])").await;
    browser.until("document.querySelectorAll('.message').length === 60").await;
    let all = messages(&browser).await;
    assert_eq!((all[0].as_str(), all[59].as_str()), ("message 0", "You said: message 29"));
    let moved = browser.js("return document.querySelector('.scroll').scrollTop").await;
    assert!(moved.as_f64().unwrap() > 100.0, "the visible messages stay in view");
    browser.click(".latest").await;
    browser.until("document.querySelector('.latest').hidden").await;
    browser.finish().await;
}

#[tokio::test]
async fn messages_of_another_client_appear_when_the_tab_becomes_visible() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "First").await;
    idle(&browser).await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    assert_eq!(t.chat(&chat::add(&workflow, &thread, "From my phone")).await.status, 200);
    browser.js("document.dispatchEvent(new Event('visibilitychange'))").await;
    replied(&browser, "You said: From my phone").await;
    let all = ["First", "You said: First", "From my phone", "You said: From my phone"];
    assert_eq!(messages(&browser).await, all);
    browser.finish().await;
}

#[tokio::test]
async fn a_message_to_a_deleted_conversation_starts_a_new_one() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    say(&browser, "First").await;
    idle(&browser).await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    t.anonymous().delete_thread(&workflow.id, &thread).await.unwrap();
    say(&browser, "Second").await;
    failed(&browser, "This conversation no longer exists.").await;
    browser.click(".failure button").await;
    replied(&browser, "You said: Second").await;
    idle(&browser).await;
    browser.finish().await;
}

#[tokio::test]
async fn other_visitors_do_not_see_a_conversation() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("A secret")).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Tell me").await;
    idle(&browser).await;
    let shown = browser.js("return location.href + document.cookie").await;
    let thread = t.scalar("SELECT replace(id::text, '-', '') FROM threads").await;
    assert!(!shown.as_str().unwrap().contains(&thread), "an address may be shared");
    let other = Browser::start().await;
    other.goto(&address(&t, &workflow)).await;
    other.until("document.querySelector('textarea')").await;
    assert!(messages(&other).await.is_empty() && other.texts(".thread").await.is_empty());
    other.finish().await;
    browser.finish().await;
}

#[tokio::test]
async fn a_visitor_downloads_and_erases_everything() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = open(&t, &workflow).await;
    assert_eq!(
        browser.js("return document.querySelector('.history-all').hidden").await,
        true,
        "the data controls are hidden"
    );
    say(&browser, "a secret").await;
    replied(&browser, "a secret").await;
    idle(&browser).await;
    // Captures the text from which the page makes the downloaded file.
    browser
        .js("const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.file = text; }); return make(blob); };")
        .await;
    browser.click("[data-does=download-all]").await;
    browser.until("window.file").await;
    let file = browser.js("return window.file").await;
    let lines: Vec<&str> = file.as_str().unwrap().lines().collect();
    assert!(lines[0].contains("\"visitor\"") && lines.last().unwrap().contains("\"end\""), "{lines:?}");
    assert!(file.as_str().unwrap().contains("a secret"));
    browser.until("document.querySelector('.status').innerText.includes('Your data was downloaded.')").await;
    browser.click("[data-does=erase-all]").await;
    browser.until("document.querySelector('dialog[open]')").await;
    browser.assert_accessible("the question before an erasure").await;
    browser.click("dialog .button:not(.danger)").await;
    browser.until("!document.querySelector('dialog[open]')").await;
    let erasures = "return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/chat/me?')).length";
    assert_eq!(browser.js(erasures).await, 0, "nothing is erased without a confirmation");
    assert_eq!(messages(&browser).await.len(), 2);
    browser.js("document.querySelector('#callboard-message').value = 'a draft'").await;
    browser.click("[data-does=erase-all]").await;
    browser.click("dialog .danger").await;
    browser.until("document.querySelector('.history-all').hidden").await;
    browser.until("document.querySelectorAll('.bubble').length === 0").await;
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "0");
    assert_eq!(browser.js(erasures).await, 1);
    assert_eq!(browser.js("return document.querySelector('#callboard-message').value").await, "");
    browser.reload().await;
    browser.until("document.querySelector('#callboard-message')").await;
    say(&browser, "again").await;
    replied(&browser, "again").await;
    browser.finish().await;
}
