//! Lost connections, reloads and a killed service: nothing is lost and nothing is shown twice.

use std::fmt::Write as _;
use std::time::Duration;

use integration_tests::{Browser, Cable, TestService, WorkflowBuilder, graphs, pause, until};
use store::testing::TestDatabase;

use super::{SLOWLY, idle, messages, open, replied, say};
use crate::crash::service::Service;

fn numbers(count: u32) -> String {
    let mut text = String::from("0");
    for n in 1..count {
        let _ = write!(text, " {n}");
    }
    text
}

#[tokio::test]
async fn a_reply_resumes_after_a_network_failure() {
    let t = TestService::with_manual_clock().await;
    let text = numbers(120);
    let workflow = t.workflow().graph(graphs::words(&text, 40)).published().create().await;
    let cable = Cable::to(t.address()).await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    browser.goto(&format!("{}/chat/{}", cable.base(), workflow.id)).await;
    say(&browser, "Count").await;
    for reached in ["5 6", "25 26"] {
        t.while_time_passes_in(SLOWLY, replied(&browser, reached)).await;
        cable.cut();
        browser.until("document.querySelector('.link').checkVisibility()").await;
        cable.mend();
        browser.until("!document.querySelector('.link').checkVisibility()").await;
    }
    t.while_time_passes(idle(&browser)).await;
    assert_eq!(messages(&browser).await, ["Count", &text]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
    browser.finish().await;
}

#[tokio::test]
async fn a_message_written_offline_is_sent_once_after_reconnecting() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    browser.be_offline(true).await;
    say(&browser, "Is anybody there?").await;
    browser.until("document.querySelector('.link').checkVisibility()").await;
    assert!(browser.text(".user").await.contains("Sending"));
    browser.be_offline(false).await;
    replied(&browser, "You said: Is anybody there?").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Is anybody there?", "You said: Is anybody there?"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
    browser.finish().await;
}

#[tokio::test]
async fn a_message_stays_in_the_input_while_a_conversation_is_loading() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    say(&browser, "First").await;
    idle(&browser).await;
    browser.until("document.querySelectorAll('.thread').length === 1").await;
    browser.click(".new").await;
    browser.be_offline(true).await;
    browser.click(".thread").await;
    browser.until("document.querySelector('.link').checkVisibility()").await;
    browser.write("textarea", "Second").await;
    browser.press("\u{E007}").await;
    assert_eq!(browser.js("return document.querySelector('textarea').value").await, "Second");
    browser.be_offline(false).await;
    replied(&browser, "You said: First").await;
    idle(&browser).await;
    browser.press("\u{E007}").await;
    replied(&browser, "You said: Second").await;
    idle(&browser).await;
    browser.finish().await;
}

#[tokio::test]
async fn sending_can_be_cancelled_offline() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    browser.be_offline(true).await;
    say(&browser, "Never mind").await;
    browser.until("document.querySelector('.link').checkVisibility()").await;
    browser.click(".send").await;
    idle(&browser).await;
    assert!(browser.text(".user").await.contains("Not sent"));
    browser.be_offline(false).await;
    browser.click(".failure button").await;
    replied(&browser, "You said: Never mind").await;
    assert_eq!(messages(&browser).await, ["Never mind", "You said: Never mind"]);
    idle(&browser).await;
    browser.finish().await;
}

#[tokio::test]
async fn a_reload_joins_the_running_reply() {
    let t = TestService::with_manual_clock().await;
    let text = numbers(60);
    let workflow = t.workflow().graph(graphs::words(&text, 40)).published().create().await;
    let browser = open(&t, &workflow).await;
    say(&browser, "Count").await;
    t.while_time_passes_in(SLOWLY, replied(&browser, "5 6")).await;
    browser.reload().await;
    replied(&browser, "5 6").await;
    assert_eq!(browser.js("return document.querySelector('.send').ariaLabel").await, "Stop the reply");
    t.while_time_passes(idle(&browser)).await;
    assert_eq!(messages(&browser).await, ["Count", &text]);
    browser.reload().await;
    replied(&browser, &text).await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Count", &text]);
    browser.finish().await;
}

#[tokio::test]
async fn a_reply_continues_after_a_restart() {
    let mut t = TestService::with_manual_clock().await;
    let graph = graphs::parked("So far. ", 3600.0, "And the rest.");
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut browser = open(&t, &workflow).await;
    browser.network_may_fail();
    say(&browser, "Take your time").await;
    replied(&browser, "So far.").await;
    t.stop().await;
    browser.until("document.querySelector('.link').checkVisibility()").await;
    t.start_again().await;
    browser.until("!document.querySelector('.link').checkVisibility()").await;
    t.advance(Duration::from_secs(3600));
    replied(&browser, "So far. And the rest.").await;
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Take your time", "So far. And the rest."]);
    browser.finish().await;
}

#[tokio::test]
async fn the_page_reconnects_to_a_killed_service() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    service.start();
    let client = client::Client::new(&service.base()).unwrap();
    until("the service to be ready", async || client.workflows().await.is_ok()).await;
    let text = numbers(60);
    let workflow = WorkflowBuilder::new(client).graph(graphs::words(&text, 200)).published().create().await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    browser.goto(&format!("{}/chat/{}", service.base(), workflow.id)).await;
    say(&browser, "Count").await;
    for reached in ["4 5", "12 13"] {
        replied(&browser, reached).await;
        service.kill();
        browser.until("document.querySelector('.link').checkVisibility()").await;
        pause(200).await;
        service.start();
    }
    idle(&browser).await;
    assert_eq!(messages(&browser).await, ["Count", &text]);
    browser.finish().await;
    service.stop();
}
