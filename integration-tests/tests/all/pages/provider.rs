//! Signing in through a provider, as a user does it.

use integration_tests::{Browser, MailServer, Provider, TestService};

use super::{address, idle, replied};

async fn service(mail: Option<&MailServer>) -> (TestService, Provider) {
    let provider = Provider::start().await;
    let builder = TestService::builder().set_all(provider.variables());
    let builder = builder.set_all(mail.map(|mail| ("SERVICE_SMTP_URL", mail.url())));
    (builder.start().await, provider)
}

#[tokio::test]
async fn a_chat_that_requires_a_login_accepts_a_provider_sign_in() {
    let (t, provider) = service(None).await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    // A host name other than the provider's: another port alone is not another site.
    browser.goto(&address(&t, &workflow).replace("127.0.0.1", "localhost")).await;
    browser.until("document.querySelector('#provider a')").await;
    assert_eq!(browser.texts("h1, h2, a.button, form, button").await, ["Sign in", "Continue with 127.0.0.1"]);
    browser.assert_accessible("the page with a provider alone").await;

    // The browser sends the cookie when the other site redirects it back.
    browser.click("#provider a").await;
    browser.until("document.querySelector('callboard-chat textarea')").await;
    assert_eq!(browser.js("return location.pathname").await, format!("/chat/{}", workflow.id));
    assert_eq!(provider.asked("/authorize"), 1);
    browser.write("textarea", "Hello").await;
    browser.click(".send").await;
    replied(&browser, "You said: Hello").await;
    idle(&browser).await;
    assert_eq!(browser.js("return document.cookie").await, "", "no script reads the cookie");
    browser.js("document.querySelector('[aria-label=\"Your conversations\"]').click()").await;
    browser.until("document.querySelector('.account').innerText.includes('ada@example.org')").await;
    browser.click(".account button").await;
    browser.until("document.querySelector('#provider a')").await;

    provider.be(|knobs| {
        knobs.back = vec![("code", String::new()), ("error", "access_denied".to_owned())];
    });
    browser.click("#provider a").await;
    browser.until("document.querySelector('h1')?.innerText === 'You are not signed in'").await;
    browser.assert_accessible("the page of a sign-in that failed").await;
    browser.be_dark().await;
    browser.be_a_phone().await;
    browser.assert_accessible("the page of a sign-in that failed, on a phone in the dark").await;
    provider.be(|_| {});
    browser.click("a.button").await;
    browser.until("document.querySelector('#provider a')").await;
    browser.click("#provider a").await;
    browser.until("document.querySelector('callboard-chat textarea')").await;
    browser.finish().await;
}

#[tokio::test]
async fn the_sign_in_page_offers_mail_and_the_provider() {
    let mail = MailServer::start().await;
    let (t, _provider) = service(Some(&mail)).await;
    let browser = Browser::start().await;
    browser.goto(&format!("http://{}/login", t.address())).await;
    browser.until("document.querySelector('#address-form') && document.querySelector('#provider a')").await;
    assert_eq!(browser.texts("h1, h2").await, ["Sign in", "Sign in by email"]);
    browser.assert_accessible("the page with both ways").await;
    browser.write("#address", "ada@example.org").await;
    browser.press("\u{E007}").await;
    browser.until("document.activeElement.id === 'code'").await;
    assert_eq!(browser.texts("h1, h2, #provider").await, ["Enter the code"]);
    browser.assert_accessible("the page for the code").await;
    browser.click("#other").await;
    browser.until("document.querySelector('#provider').checkVisibility()").await;
    browser.be_dark().await;
    browser.be_a_phone().await;
    browser.assert_accessible("both ways on a phone in the dark").await;
    assert_eq!(browser.js("return document.documentElement.scrollWidth <= innerWidth").await, true);
    browser.click("#provider a").await;
    browser.until("location.pathname === '/'").await;
    browser.finish().await;
}
