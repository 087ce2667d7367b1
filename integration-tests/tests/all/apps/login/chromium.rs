//! App sign-in in a real browser, over the service's TLS, with the authority of `callboard dev-tls`.

use integration_tests::{Browser, MailServer, TestService, until};
use serde_json::{Value, json};

use super::super::dev_tls::DevTls;
use super::{ADA, count, publish};

/// A service with TLS, a browser that trusts it, and a member's mail.
struct SignInSetup {
    t: TestService,
    mail: MailServer,
    browser: Browser,
    tls: DevTls,
}

impl SignInSetup {
    async fn start() -> Self {
        let tls = DevTls::for_aliases(&["notes", "other"]);
        let mail = MailServer::start().await;
        let builder = TestService::builder().alone().with_bootstrap_token();
        let builder = builder.set("SERVICE_SMTP_URL", mail.url()).set("SERVICE_OWNER_EMAIL", ADA);
        let variables = tls.variables().into_iter().chain([tls.port()]);
        let t = builder.set_all(variables).start().await;
        publish(&t, "notes", "members").await;
        publish(&t, "other", "public").await;
        let browser = tls.browser().await;
        Self { t, mail, browser, tls }
    }

    fn app(&self, alias: &str, path: &str) -> String {
        self.tls.app(alias, path)
    }

    async fn address(&self) -> String {
        self.browser.js("return location.href").await.as_str().unwrap().to_owned()
    }

    /// Waits for a page whose URL has this prefix.
    async fn wait_for_url(&self, beginning: &str) {
        self.browser.until(&format!("location.href.startsWith({})", json!(beginning))).await;
    }

    /// The complete sign-in, as a user does it.
    async fn sign_in(&self) {
        let browser = &self.browser;
        browser.goto(&self.app("notes", "/__service/auth/login?return_to=/start")).await;
        self.wait_for_url(&format!("{}/login?", self.tls.central())).await;
        browser.write("#address", ADA).await;
        browser.press("\u{E007}").await;
        browser.until("document.querySelector('#code-form').checkVisibility()").await;
        browser.write("#code", &self.mail.mail(1).await.code()).await;
        browser.press("\u{E007}").await;
        self.wait_for_url(&format!("{}/authorize?", self.tls.central())).await;
        browser.assert_accessible("the page that asks for consent").await;
        browser.click("button").await;
        self.wait_for_url(&self.app("notes", "/start")).await;
    }

    async fn is_signed_in(&self, alias: &str) -> bool {
        self.browser.goto(&self.app(alias, "/__service/auth/session")).await;
        let shown = self.browser.js("return document.body.innerText").await;
        serde_json::from_str::<Value>(shown.as_str().unwrap()).unwrap()["authenticated"] == true
    }

    /// All data that a page's script can read.
    async fn readable(&self) -> String {
        let script = "return JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.referrer,
            document.documentElement.outerHTML, performance.getEntries().map((entry) => entry.name), history.state, window.name])
            + JSON.stringify(await (self.cookieStore?.getAll() ?? [])) + JSON.stringify(await indexedDB.databases()) + JSON.stringify(await caches.keys())";
        self.browser.js_async(script).await.as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_member_signs_in_over_both_hosts_and_scripts_read_no_secrets() {
    let setup = SignInSetup::start().await;
    setup.sign_in().await;
    assert_eq!(setup.address().await, setup.app("notes", "/start"));
    let readable = setup.readable().await;
    for mark in ["__Host-", "svc_", "code=", "state=", "iss=", "challenge", "verifier", "eyJ"] {
        assert!(!readable.contains(mark), "{mark}: {readable}");
    }
    // Any secret with 256 bits is at least this long.
    let long = |text: &str| text.len() >= 43;
    let words = readable.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    assert_eq!(words.filter(|word| long(word)).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(setup.is_signed_in("notes").await);
    assert!(!setup.is_signed_in("other").await, "an app of the same domain has no session");

    // The second sign-in shows no page.
    setup.browser.goto(&setup.app("notes", "/__service/auth/login?return_to=/again")).await;
    assert_eq!(setup.address().await, setup.app("notes", "/again"));
    // A foreign return address leads to the first page.
    setup.browser.goto(&setup.app("notes", "/__service/auth/login?return_to=//evil.example/x")).await;
    assert_eq!(setup.address().await, setup.app("notes", "/"));
}

#[tokio::test]
async fn another_app_cannot_send_requests_plant_cookies_or_frame_this_one() {
    let setup = SignInSetup::start().await;
    setup.sign_in().await;
    let browser = &setup.browser;
    // The attacking page's own policy would prevent the attempt; without it, only the service refuses.
    browser.chromium("Page.enable", json!({})).await;
    browser.chromium("Page.setBypassCSP", json!({"enabled": true})).await;
    browser.goto(&setup.app("other", "/attack")).await;
    let logout = json!(setup.app("notes", "/__service/auth/logout"));
    for mode in ["no-cors", "cors"] {
        let attack = format!(
            "try {{ const answer = await fetch({logout}, {{method: 'POST', mode: '{mode}', credentials: 'include'}}); return answer.type; }}
             catch (error) {{ return error.name; }}"
        );
        let seen = browser.js_async(&attack).await;
        assert!(["opaque", "TypeError"].contains(&seen.as_str().unwrap()), "{mode}: {seen}");
    }
    let read = format!(
        "try {{ return await (await fetch({}, {{credentials: 'include'}})).text(); }} catch (error) {{ return error.name; }}",
        json!(setup.app("notes", "/__service/auth/session"))
    );
    assert_eq!(browser.js_async(&read).await, "TypeError", "a response of another origin is not readable");
    for planted in [
        "__Host-svc_app=planted; Domain=apps.localhost; Path=/; Secure",
        "__Host-svc_login=planted; Domain=apps.localhost; Path=/; Secure",
        "__Host-svc_app=planted; Path=/x; Secure",
    ] {
        assert_eq!(
            browser.js(&format!("document.cookie = {}; return document.cookie", json!(planted))).await,
            ""
        );
    }
    // Not even a page of the same app may frame it.
    let frame = format!(
        "const frame = document.createElement('iframe'); frame.src = {};
         const loaded = new Promise((done) => {{ frame.onload = done; }});
         document.body.append(frame); await loaded;
         try {{ return frame.contentWindow.document ? 'read' : 'closed'; }} catch {{ return 'closed'; }}",
        json!(setup.app("other", "/framed"))
    );
    assert_eq!(browser.js_async(&frame).await, "closed");
    // A form navigates, and is rejected nevertheless.
    let form = format!(
        "const form = document.createElement('form'); form.method = 'post'; form.action = {logout}; document.body.append(form); form.submit();"
    );
    browser.js(&form).await;
    setup.wait_for_url(&setup.app("notes", "/__service/auth/logout")).await;
    until("the refusal", async || {
        let shown = browser.js("return document.body?.innerText ?? ''").await;
        shown.as_str().unwrap().contains("origin_mismatch")
    })
    .await;
    assert!(setup.is_signed_in("notes").await, "none of the attempts signed the member out");
    assert_eq!(count(&setup.t, "revoked_at IS NULL").await, "1");
}

#[tokio::test]
async fn an_app_gets_no_service_worker() {
    let setup = SignInSetup::start().await;
    let browser = &setup.browser;
    browser.chromium("Page.enable", json!({})).await;
    browser.chromium("Page.setBypassCSP", json!({"enabled": true})).await;
    browser.goto(&setup.app("other", "/")).await;
    for script in ["/__service/client.js", "/__service/auth/session", "/sw.js"] {
        let register = format!(
            "try {{ await navigator.serviceWorker.register({}); return 'registered'; }} catch (error) {{ return error.name; }}",
            json!(script)
        );
        assert_ne!(browser.js_async(&register).await, "registered", "{script}");
    }
    assert_eq!(browser.js_async("return (await navigator.serviceWorker.getRegistrations()).length").await, 0);
}
