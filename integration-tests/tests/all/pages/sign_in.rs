//! Signing in, as a user does it.

use integration_tests::{Browser, MailServer, TestService};

use super::{address, idle, replied};

const SHOWN: &str =
    "[...document.querySelectorAll('form')].filter((f) => f.checkVisibility()).map((f) => f.id).join()";

async fn service() -> (TestService, MailServer) {
    let mail = MailServer::start().await;
    (TestService::builder().set("SERVICE_SMTP_URL", mail.url()).start().await, mail)
}

async fn form_shown(browser: &Browser, form: &str) {
    browser.until(&format!("{SHOWN} === '{form}'")).await;
}

async fn problem_shown(browser: &Browser, text: &str) {
    let quoted = serde_json::Value::from(text);
    browser
        .until(&format!("document.querySelector('#problem:not([hidden])')?.innerText.includes({quoted})"))
        .await;
}

#[tokio::test]
async fn a_chat_that_requires_a_login_accepts_a_code() {
    let (t, mail) = service().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let mut browser = Browser::start().await;
    // The console reports rejections as well.
    browser.network_may_fail();
    browser.goto(&address(&t, &workflow)).await;
    form_shown(&browser, "address-form").await;
    browser.assert_accessible("the sign-in page").await;
    let fields = "return document.querySelectorAll('input[type=email]').length + ' ' + document.querySelectorAll('input[autocomplete=one-time-code]').length";
    assert_eq!(browser.js(fields).await, "1 1");

    browser.write("#address", "nobody").await;
    browser.press("\u{E007}").await;
    problem_shown(&browser, "This is not an email address").await;
    browser.assert_accessible("the sign-in page with a wrong address").await;
    browser.js("document.querySelector('#address').value = ''").await;
    browser.write("#address", "ada@example.org").await;
    browser.press("\u{E007}").await;
    form_shown(&browser, "code-form").await;
    assert_eq!(browser.js("return document.activeElement.id").await, "code", "the code field has the focus");
    let first = mail.mail(1).await.code();
    let wrong = if first == "000000" { "000001" } else { "000000" };
    browser.press(wrong).await;
    browser.press("\u{E007}").await;
    problem_shown(&browser, "This code is not valid").await;
    browser.assert_accessible("the page for the code, after a wrong one").await;
    browser.be_dark().await;
    browser.be_a_phone().await;
    browser.assert_accessible("the page for the code on a phone in the dark").await;
    assert_eq!(browser.js("return document.documentElement.scrollWidth <= innerWidth").await, true);

    browser.click("#again").await;
    let second = mail.mail(2).await.code();
    browser.until("document.querySelector('#told').textContent.startsWith('Another code was sent')").await;
    browser.press(&format!("{} {}", &second[..3], &second[3..])).await;
    browser.press("\u{E007}").await;
    browser.until("document.querySelector('callboard-chat textarea')").await;
    let here = browser.js("return location.pathname").await;
    assert_eq!(here, format!("/chat/{}", workflow.id));
    browser.write("textarea", "Hello").await;
    browser.click(".send").await;
    replied(&browser, "You said: Hello").await;
    idle(&browser).await;
    assert_eq!(browser.js("return document.cookie").await, "", "no script reads the cookie");
    let script = "return JSON.stringify([{...localStorage}, {...sessionStorage}]).includes('token')";
    assert_eq!(browser.js(script).await, false);

    browser.js("document.querySelector('[aria-label=\"Your conversations\"]').click()").await;
    browser.until("document.querySelector('.account').innerText.includes('ada@example.org')").await;
    browser.assert_accessible("the chat of a signed-in user").await;
    browser.click(".account button").await;
    form_shown(&browser, "address-form").await;
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE revoked_at IS NOT NULL").await, "1");
    browser.finish().await;
}

#[tokio::test]
async fn a_link_signs_in_only_the_browser_that_requested_it() {
    let (t, mail) = service().await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    let login = format!("http://{}/login", t.address());
    browser.goto(&login).await;
    form_shown(&browser, "address-form").await;
    browser.write("#address", "ada@example.org").await;
    browser.press("\u{E007}").await;
    form_shown(&browser, "code-form").await;
    let link = mail.mail(1).await.link().unwrap();

    let mut other = Browser::start().await;
    other.network_may_fail();
    other.goto(&link).await;
    assert_eq!(other.text("h1").await, "Open it in the same browser");
    other.assert_accessible("the page of a link in another browser").await;
    other.finish().await;

    browser.goto(&link).await;
    assert_eq!(browser.text("h1").await, "Sign in");
    browser.until("document.activeElement.id === 'use'").await;
    browser.assert_accessible("the page of a link").await;
    browser.press("\u{E007}").await;
    browser.until("location.pathname === '/login' && document.querySelector('h1').innerText === 'You are signed in'").await;
    browser.assert_accessible("the page of a signed-in user").await;
    browser.click("#sign-out").await;
    form_shown(&browser, "address-form").await;

    browser.goto(&link).await;
    assert_eq!(browser.text("h1").await, "This link is no longer valid");
    browser.assert_accessible("the page of a link that was used").await;
    browser.finish().await;
}

#[tokio::test]
async fn a_signed_in_user_gets_a_terminal_code() {
    let (t, mail) = service().await;
    let browser = Browser::start().await;
    browser.goto(&format!("{}login", t.client().base())).await;
    form_shown(&browser, "address-form").await;
    browser.write("#address", "ada@example.org").await;
    browser.press("\u{E007}").await;
    form_shown(&browser, "code-form").await;
    browser.press(&mail.mail(1).await.code()).await;
    browser.press("\u{E007}").await;
    browser.until("document.querySelector('#terminal')").await;
    browser.click("#terminal").await;
    browser.until("document.querySelector('#for-terminal').checkVisibility()").await;
    browser.assert_accessible("the page with a code for a terminal").await;
    let field = "const field = document.querySelector('#for-terminal'); \
                 return field.value.length + ' ' + (document.activeElement === field) + ' ' + field.readOnly + ' ' + \
                 (field.selectionEnd - field.selectionStart)";
    assert_eq!(browser.js(field).await, "43 true true 43", "the code is selected for copying");
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE user_agent = 'a terminal'").await, "1");
    browser.finish().await;
}
