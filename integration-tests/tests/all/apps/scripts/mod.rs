//! Inline scripts in a real browser: exactly the scripts that the bundle check allows are executed. Accepted pages come
//! from the gateway over TLS; rejected pages, which the gateway never serves, come from a test server with the policy
//! that they would have.

mod pages;
mod vectors;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{Browser, TestService};
use serde_json::{Value, json};

use super::dev_tls::DevTls;
use pages::{PROBE, Pages};

/// A page with this body, after the probe.
fn page(body: &[u8]) -> Vec<u8> {
    [b"<!doctype html>\n<script src=/probe.js></script>\n<body>", body].concat()
}

/// Publishes an app with these files, and serves it over TLS.
async fn published(files: &[(String, Vec<u8>)]) -> (TestService, DevTls) {
    let tls = DevTls::for_aliases(&["pages"]);
    let (name, port) = tls.port();
    let mut t = TestService::builder().alone().set(name, port).start().await;
    let app = t.app("pages").file("probe.js", PROBE).file("favicon.ico", b"\0\0\x01\0");
    files.iter().fold(app, |app, (path, content)| app.file(path, content)).publish().await;
    for (name, value) in tls.variables() {
        t.set(name, &value);
    }
    t.restart().await;
    (t, tls)
}

/// Opens a page; returns the scripts that ran and the violations that the policy blocked.
async fn open(browser: &Browser, url: &str) -> (Value, Value) {
    browser.goto(url).await;
    browser.until("window.finished").await;
    (browser.js("return ran").await, browser.js("return blocked").await)
}

#[tokio::test]
async fn accepted_scripts_run_in_a_browser() {
    let running = vectors::running();
    let mut files: Vec<(String, Vec<u8>)> = vec![("module.js".to_owned(), b"ran.push(1)".to_vec())];
    files
        .extend(running.iter().enumerate().map(|(number, (_, body))| (format!("{number}.html"), page(body))));
    // A page that begins with a byte order mark.
    let marked = [b"\xef\xbb\xbf".as_slice(), &page(b"<script>ran.push(1)</script>")].concat();
    files.push(("marked.html".to_owned(), marked));
    let (_t, tls) = published(&files).await;
    let browser = tls.browser().await;
    for (path, _) in files.iter().filter(|(path, _)| path.ends_with(".html")) {
        let (ran, blocked) = open(&browser, &tls.app("pages", &format!("/{path}"))).await;
        let description =
            path.split('.').next().and_then(|number| running.get(number.parse::<usize>().ok()?));
        let description = description.map_or("a page with a BOM", |(description, _)| *description);
        assert_eq!((ran.as_array().unwrap().len(), blocked), (1, json!([])), "{description}: {ran}");
    }
    browser.finish().await;
}

#[tokio::test]
async fn data_blocks_and_rejected_scripts_do_not_run_in_a_browser() {
    let accepted: Vec<(String, Vec<u8>)> = vectors::RESTING
        .iter()
        .enumerate()
        .map(|(number, (_, body))| (format!("{number}.html"), page(body.as_bytes())))
        .collect();
    let (_t, tls) = published(&accepted).await;
    let mut pages = Pages::with_probe();
    let digest = ring::digest::digest(&ring::digest::SHA256, b"ran.push(1)");
    for (number, (_, body)) in vectors::UNSUPPORTED.iter().enumerate() {
        pages.add_refused(&format!("{number}.html"), page(body.as_bytes()), &[STANDARD.encode(digest)]);
    }
    let address = pages.serve().await;
    let browser = tls.browser().await;
    let nothing = (json!([]), json!([]));
    for (number, (description, _)) in vectors::RESTING.iter().enumerate() {
        assert_eq!(
            open(&browser, &tls.app("pages", &format!("/{number}.html"))).await,
            nothing,
            "{description}"
        );
    }
    for (number, (description, _)) in vectors::UNSUPPORTED.iter().enumerate() {
        assert_eq!(
            open(&browser, &format!("http://{address}/{number}.html")).await,
            nothing,
            "{description}"
        );
    }
}

#[tokio::test]
async fn hostile_markup_has_no_effect_under_a_policy() {
    let mut pages = Pages::with_probe();
    for (number, body) in vectors::HOSTILE.iter().enumerate() {
        // The first one is accepted with its hash; here its policy lacks the hash.
        let body = if number == 0 { format!("{body}<p onclick=0>") } else { (*body).to_owned() };
        pages.add_refused(&format!("{number}.html"), page(body.as_bytes()), &[]);
    }
    let address = pages.serve().await;
    let browser = Browser::start().await;
    for (number, body) in vectors::HOSTILE.iter().enumerate() {
        let url = format!("http://{address}/{number}.html");
        let (ran, _) = open(&browser, &url).await;
        assert_eq!(ran, json!([]), "{body}");
        let click = "const found = document.querySelector('#click'); if (found) found.dispatchEvent(new MouseEvent('click', \
            {bubbles: true, cancelable: true})); requestAnimationFrame(() => setTimeout(() => { window.clicked = true; }));";
        browser.js(click).await;
        browser.until("window.clicked || !location.href.endsWith('.html')").await;
        let ran = browser.js("return window.ran ?? []").await;
        assert_eq!(ran, json!([]), "after a click: {body}");
        let place = browser.js("return location.href").await;
        let host = format!("http://{address}/");
        assert!(place.as_str().unwrap().starts_with(&host), "{place}: {body}");
    }
}
