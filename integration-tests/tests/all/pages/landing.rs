//! The landing page with its next steps; and the page for a missing chat.

use integration_tests::{Browser, TestService};

#[tokio::test]
async fn the_landing_page_describes_the_service() {
    let t = TestService::start().await;
    let browser = Browser::start().await;
    let here = format!("http://{}/", t.address());
    browser.goto(&here).await;
    browser.until("document.querySelector('#health').innerText === 'Ready'").await;
    browser.until("document.querySelector('#workflows').innerText.includes('No workflow yet')").await;
    let commands = browser.text("#first").await;
    let address = format!("export SERVICE_API_URL=http://{}\ncallboard workflow ", t.address());
    assert!(commands.starts_with(&address), "the commands would look elsewhere: {commands}");
    browser.assert_accessible("the landing page without workflows").await;
    let open = t.workflow().named("Desk").echo().published().create().await;
    t.workflow().named("Draft").without_version().create().await;
    browser.reload().await;
    browser.until("document.querySelectorAll('.workflow').length === 2").await;
    assert_eq!(browser.texts(".workflow h3").await, ["Draft", "Desk"]);
    let facts = browser.texts(".facts").await;
    assert!(facts[0].contains("Not published") && facts[0].contains("No version yet"), "{facts:?}");
    assert!(facts[1].contains("Published") && facts[1].contains("Version 1"), "{facts:?}");
    browser.assert_accessible("the landing page").await;
    browser.be_dark().await;
    browser.be_a_phone().await;
    browser.reload().await;
    browser.until("document.querySelectorAll('.workflow').length === 2").await;
    browser.assert_accessible("the landing page on a phone in the dark").await;
    let wide = browser.js("return document.documentElement.scrollWidth <= innerWidth").await;
    assert_eq!(wide, true, "the page does not overflow sideways");
    browser.click("[aria-label='Open the chat Desk']").await;
    browser.until("document.querySelector('callboard-chat textarea')").await;
    assert!(
        browser.js("return location.href").await.as_str().unwrap().ends_with(&format!("/chat/{}", open.id))
    );
    browser.finish().await;
}

#[tokio::test]
async fn a_missing_or_unpublished_chat_has_a_plain_error_page() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().create().await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    browser.goto(&format!("http://{}/chat/{}", t.address(), workflow.id)).await;
    assert_eq!(browser.text("h1").await, "This chat is not published");
    browser.assert_accessible("the page of a closed chat").await;
    browser.goto(&format!("http://{}/chat/nonsense", t.address())).await;
    assert_eq!(browser.text("h1").await, "Chat not found");
    browser.finish().await;
}
