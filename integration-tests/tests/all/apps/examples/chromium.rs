//! The example apps in a real browser, as visitors and members use them.

use std::net::TcpListener;

use integration_tests::{AnswerExt, Browser, MailServer, TestService};
use serde_json::{Value, json};

use super::{ask_with, example};

const ADA: &str = "ada@example.org";
const BOB: &str = "bob@example.org";
const ENTER: &str = "\u{e007}";
const TEA: &str = "How long do I brew green tea?";
const BREWING: &str = "Green tea is brewed with water of 70 degrees, for two minutes.";

/// A service at `localhost` with a mail server; its member is Ada.
struct Desk {
    t: TestService,
    mail: MailServer,
    port: u16,
}

impl Desk {
    async fn start() -> Self {
        // The address is part of the configuration, so the port is chosen first.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mail = MailServer::start().await;
        let t = TestService::builder()
            .alone()
            .with_bootstrap_token()
            .set("SERVICE_PORT", port.to_string())
            .set("SERVICE_PUBLIC_BASE_URL", format!("http://localhost:{port}"))
            .set("SERVICE_SMTP_URL", mail.url())
            .set("SERVICE_OWNER_EMAIL", ADA)
            .start()
            .await;
        Self { t, mail, port }
    }

    /// Publishes an example with the files in its folder.
    async fn publish(&self, alias: &str) {
        let folder = example(alias).join("app");
        let mut app = self.t.app(alias);
        for entry in folder.read_dir().unwrap() {
            let (name, path) = (entry.as_ref().unwrap().file_name(), entry.as_ref().unwrap().path());
            app = app.file(name.to_str().unwrap(), std::fs::read(path).unwrap());
        }
        app.publish().await;
    }

    fn app(&self, alias: &str, path: &str) -> String {
        format!("http://{alias}.apps.localhost:{}{path}", self.port)
    }

    /// Signs in through an app's link, with a mailed code and a consent, and returns to the app.
    async fn sign_in(&self, browser: &Browser, alias: &str, link: &str, email: &str) {
        let mails = self.mail.mails().len();
        browser.click(link).await;
        wait_for_url(browser, &format!("http://localhost:{}/login?", self.port)).await;
        browser.write("#address", &format!("{email}{ENTER}")).await;
        browser.until("document.querySelector('#code-form').checkVisibility()").await;
        let code = self.mail.mail(mails + 1).await.code();
        browser.write("#code", &format!("{code}{ENTER}")).await;
        wait_for_url(browser, &format!("http://localhost:{}/authorize?", self.port)).await;
        browser.click("button").await;
        wait_for_url(browser, &self.app(alias, "/")).await;
        browser.until("document.querySelector('#account button')?.textContent === 'Sign out'").await;
    }
}

/// Waits for a page whose URL has this prefix.
async fn wait_for_url(browser: &Browser, beginning: &str) {
    browser.until(&format!("location.href.startsWith({})", json!(beginning))).await;
}

/// Asserts that the page is accessible, light and dark, and as wide as its window.
async fn check(browser: &Browser, description: &str) {
    let moves = "document.getAnimations().some((one) => one.playState === 'running')";
    for is_dark in [false, true] {
        if is_dark {
            browser.be_dark().await;
        } else {
            browser.be_light().await;
        }
        browser.until(&format!("!{moves}")).await;
        browser.assert_accessible(&format!("{description}, dark: {is_dark}")).await;
    }
    let wide = browser.js("return document.documentElement.scrollWidth > innerWidth").await;
    assert_eq!(wide, false, "{description}");
}

async fn is_signed_in(browser: &Browser) -> Value {
    let session = "return (await (await fetch('/__service/auth/session')).json()).authenticated";
    browser.js_async(session).await
}

/// Waits until an element shows this text.
async fn wait_for_text(browser: &Browser, css: &str, text: &str) {
    let (css, text) = (json!(css), json!(text));
    browser.until(&format!("document.querySelector({css})?.textContent.trim() === {text}")).await;
}

#[tokio::test]
async fn ask_shows_progress_answers_and_rejections_and_stores_favourites() {
    let desk = Desk::start().await;
    ask_with(&desk.t, "practice/assistant@40ms").await;
    desk.publish("ask").await;
    let mut browser = Browser::start().await;
    browser.goto(&desk.app("ask", "/")).await;
    wait_for_text(&browser, "#account", "Sign in").await;
    let parts =
        "return ['form', 'input', 'button'].map((name) => document.querySelectorAll(name).length).join()";
    assert_eq!(browser.js(parts).await, "1,1,1", "one form, one input, one button");
    check(&browser, "ask").await;

    let observe = "window.states = []; const state = document.querySelector('#state');
        new MutationObserver(() => states.push(state.textContent)).observe(state, {childList: true})";
    browser.js(observe).await;
    browser.write("#question", &format!("{TEA}{ENTER}")).await;
    wait_for_text(&browser, "#result", BREWING).await;
    wait_for_text(&browser, "#topic", "Brewing").await;
    let states = browser.js("return [...new Set(states)].filter(Boolean)").await;
    assert_eq!(states, json!(["Waiting for a place …", "Looking it up …"]));
    check(&browser, "an answer").await;

    // Going back shows the page without a question; a question in the URL is sent, and the service rejects it.
    browser.js("history.back()").await;
    browser.until("document.querySelector('#card').hidden && !document.querySelector('#ideas').hidden").await;
    browser.goto(&desk.app("ask", &format!("/?q={}", "x".repeat(301)))).await;
    wait_for_text(&browser, "#problem", "The question is too long. Please ask in at most 300 letters.").await;
    check(&browser, "a refusal").await;

    // Saved in the browser first, then in the account.
    browser.click("a.brand").await;
    browser.click("#ideas a").await;
    wait_for_text(&browser, "#result", BREWING).await;
    browser.click("#actions button").await;
    wait_for_text(&browser, "#saved-note", "Kept in this browser only.").await;
    desk.sign_in(&browser, "ask", "#account a", ADA).await;
    wait_for_text(&browser, "#saved-note", "Kept in your account.").await;
    assert_eq!(browser.texts("#favourites a").await, [TEA]);
    assert_eq!(browser.js("return localStorage.getItem('favourites')").await, "[]");
    wait_for_text(&browser, "#actions button", "★ Favourite").await;
    browser.reload().await;
    wait_for_text(&browser, "#saved-note", "Kept in your account.").await;
    assert_eq!(browser.texts("#favourites a").await, [TEA]);
    browser.be_a_phone().await;
    check(&browser, "favourites on a phone").await;
    wait_for_text(&browser, "#actions button", "★ Favourite").await;
    browser.click("#actions button").await;
    browser.until("document.querySelector('#saved').hidden").await;
    browser.reload().await;
    wait_for_text(&browser, "#actions button", "☆ Favourite").await;

    assert_eq!(is_signed_in(&browser).await, true);
    browser.click("#account button").await;
    wait_for_text(&browser, "#account", "Sign in").await;
    assert_eq!(is_signed_in(&browser).await, false);
    // The rejection appears on the console.
    browser.network_may_fail();
    browser.finish().await;
}

/// Waits until the lane has these cards.
async fn wait_for_cards(browser: &Browser, lane: &str, titles: &[&str]) {
    let titles = json!(titles.join("|"));
    browser
        .until(&format!(
            "[...document.querySelectorAll('[data-lane={lane}] h3')].map((card) => card.textContent).join('|') === {titles}"
        ))
        .await;
}

#[tokio::test]
async fn board_cards_are_shared_and_pins_are_private() {
    let desk = Desk::start().await;
    desk.publish("board").await;
    let body = json!({"email": BOB, "role": "editor"});
    desk.t.root().post("/api/workspaces/default/members", &body).await.expect(201);
    desk.mail.mail(1).await;
    let (ada, mut bob) = (Browser::start().await, Browser::start().await);

    // Visitors who are not signed in can read.
    ada.goto(&desk.app("board", "/")).await;
    ada.until("!document.querySelector('#board').hasAttribute('aria-busy')").await;
    assert_eq!(ada.texts(".empty").await, ["No cards yet."; 3]);
    assert_eq!(ada.js("return document.querySelector('main button')").await, Value::Null);
    check(&ada, "an empty board").await;

    desk.sign_in(&ada, "board", "#invite a", ADA).await;
    ada.click("[data-lane=ideas] header button").await;
    ada.until("document.querySelector('#editor').open").await;
    check(&ada, "the editor").await;
    ada.write("#title", "New labels").await;
    ada.write("#text", "For the tins.").await;
    ada.click("#save").await;
    wait_for_cards(&ada, "ideas", &["New labels"]).await;
    ada.click("[aria-label='Move to Doing: New labels']").await;
    wait_for_cards(&ada, "doing", &["New labels"]).await;
    ada.click("[aria-label='Pin: New labels']").await;
    ada.until("document.querySelector('.pin').ariaPressed === 'true'").await;
    check(&ada, "a card").await;
    ada.reload().await;
    wait_for_cards(&ada, "doing", &["New labels"]).await;
    ada.until("document.querySelector('.pin').ariaPressed === 'true'").await;

    // Another member sees the card, but not the first one's pin.
    bob.goto(&desk.app("board", "/")).await;
    wait_for_cards(&bob, "doing", &["New labels"]).await;
    desk.sign_in(&bob, "board", "#account a", BOB).await;
    bob.until("document.querySelector('.pin')?.ariaPressed === 'false'").await;
    let pins = "return (await (await fetch('/__service/data/pins')).json()).items.length";
    assert_eq!((ada.js_async(pins).await, bob.js_async(pins).await), (json!(1), json!(0)));

    // Both change it: the later one sees the other version, and chooses.
    bob.click("[aria-label='Edit: New labels']").await;
    ada.click("[aria-label='Move to Done: New labels']").await;
    wait_for_cards(&ada, "done", &["New labels"]).await;
    bob.write("#title", " and boxes").await;
    bob.click("#save").await;
    wait_for_text(&bob, "#conflict-title", "This card was changed while you were writing").await;
    check(&bob, "a conflict").await;
    bob.click("#keep-mine").await;
    wait_for_cards(&bob, "doing", &["New labels and boxes"]).await;
    ada.reload().await;
    wait_for_cards(&ada, "doing", &["New labels and boxes"]).await;

    // Drags a card with a mouse.
    let drag = "const data = new DataTransfer(), card = document.querySelector('.card');
        const tell = (at, name) => at.dispatchEvent(new DragEvent(name, {bubbles: true, cancelable: true, dataTransfer: data}));
        const lane = document.querySelector('[data-lane=done]');
        tell(card, 'dragstart'); tell(lane, 'dragover'); tell(lane, 'drop'); tell(card, 'dragend');";
    ada.js(drag).await;
    wait_for_cards(&ada, "done", &["New labels and boxes"]).await;
    ada.be_a_phone().await;
    check(&ada, "the board on a phone").await;

    ada.click("#account button").await;
    wait_for_text(&ada, "#account", "Sign in").await;
    assert_eq!((is_signed_in(&ada).await, is_signed_in(&bob).await), (json!(false), json!(true)));
    wait_for_cards(&ada, "done", &["New labels and boxes"]).await;
    assert_eq!(ada.js("return document.querySelector('.card button')").await, Value::Null);
    ada.finish().await;
    // The conflict appears on the console.
    bob.network_may_fail();
    bob.finish().await;
}
