//! The page for a workflow's trainings.

use integration_tests::{AnswerExt, Browser, Cable, JSON, MailServer, TestService, until};
use serde_json::{Value, json};

use crate::training::{evaluation, prompts, runs_of, sorting, training};

const SEED: &str = "Sort the message into shipping, billing or account.";
const HOSTILE: &str = r#"</script><script>window.bad = 1</script><img src=x onerror="window.bad = 2">"#;
const BADGE: &str = "document.querySelector('.title .badge')?.innerText";

async fn start(t: &TestService, workflow: &str, body: &Value) -> String {
    t.post(&runs_of(workflow), &body.to_string()).await.expect(202).member("id")
}

async fn record(t: &TestService, workflow: &str, run: &str) -> Value {
    t.get(&format!("{}/{run}", runs_of(workflow))).await.value()
}

fn page(base: &str, workflow: &str, run: &str) -> String {
    format!("{}/workflows/{workflow}/training?run={run}", base.trim_end_matches('/'))
}

async fn becomes(browser: &Browser, state: &str) {
    browser.until(&format!("{BADGE} === '{state}'")).await;
}

async fn points(browser: &Browser) -> u64 {
    browser.js("return document.querySelectorAll('.curve .point').length").await.as_u64().unwrap()
}

/// Asserts accessibility light and dark, wide and narrow, in this order; nothing is wider than a phone.
async fn assert_accessible_everywhere(browser: &Browser, label: &str) {
    browser.assert_accessible(label).await;
    browser.be_dark().await;
    browser.be_a_phone().await;
    browser.assert_accessible(&format!("{label}, on a phone in the dark")).await;
    let wide = browser.js("return document.documentElement.scrollWidth <= innerWidth").await;
    assert_eq!(wide, true, "{label}: wider than the phone");
}

#[tokio::test]
async fn the_training_page_survives_a_lost_connection_and_controls_its_run() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sorting("practice/classify@60ms")).config(prompts(SEED)).create().await;
    // One proposal per epoch.
    let optimizer = json!({"epochs": 8, "minibatch_size": 24, "max_concurrency": 2});
    let run = start(&t, &workflow.id, &training(optimizer)).await;
    let cable = Cable::to(t.address()).await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    browser.goto(&page(&cable.base(), &workflow.id, &run)).await;
    becomes(&browser, "Running").await;
    browser.until("document.querySelectorAll('#cases .entry').length >= 3").await;
    browser.until("document.querySelectorAll('.curve .point').length >= 1").await;
    browser.click("[data-control=pause]").await;
    becomes(&browser, "Paused").await;
    assert_eq!(record(&t, &workflow.id, &run).await["status"], "paused");
    let before = points(&browser).await;
    assert_eq!(browser.texts(".controls button").await, ["Resume", "Cancel the run"]);
    browser.until("document.querySelector('.curve .seed')").await;
    browser.assert_accessible("a paused training").await;
    cable.cut();
    browser.until("document.querySelector('.link').checkVisibility()").await;
    cable.mend();
    browser.until("!document.querySelector('.link').checkVisibility()").await;
    browser.click("[data-control=resume]").await;
    becomes(&browser, "Running").await;
    browser.until(&format!("document.querySelectorAll('.curve .point').length > {before}")).await;
    browser.click("[data-control=cancel]").await;
    browser.until("document.querySelector('dialog')").await;
    browser.assert_accessible("the question before a cancel").await;
    browser.click("dialog .danger").await;
    becomes(&browser, "Cancelled").await;
    let ended = record(&t, &workflow.id, &run).await;
    assert_eq!(ended["status"], "cancelled");
    let done = ended["progress"]["done"].to_string();
    browser.until(&format!("document.querySelector('.facts dd').innerText === '{done}'")).await;
    browser.until("document.querySelector('.run-state').dataset.state === 'cancelled'").await;
    browser.finish().await;
}

#[tokio::test]
async fn an_ended_training_shows_its_results_and_saves_a_checkpoint_as_a_version() {
    let t = TestService::start().await;
    let seed = format!("{SEED}\n{HOSTILE}");
    let graph = sorting("practice/classify");
    let name = format!("{HOSTILE}{{{{ 7 * 7 }}}}");
    let workflow = t.workflow().named(&name).graph(graph).config(prompts(&seed)).create().await;
    let mut body = training(json!({"epochs": 2}));
    for case in body["training"]["dataset"]["cases"].as_array_mut().unwrap() {
        let message = format!("{} {HOSTILE}", case["inputs"]["message"].as_str().unwrap());
        case["inputs"]["message"] = json!(message);
    }
    let run = start(&t, &workflow.id, &body).await;
    until("the end", async || record(&t, &workflow.id, &run).await["status"] == "succeeded").await;
    let browser = Browser::start().await;
    let base = format!("http://{}", t.address());
    browser.goto(&format!("{base}/workflows/{}/training", workflow.handle)).await;
    browser.click(".run-list a").await;
    browser.until("document.querySelector('.result p')?.innerText.includes('95 % interval')").await;
    assert_eq!(browser.text("h1 span").await, name);
    assert_eq!(browser.text(".result h3").await, "Improved");
    browser.until("document.querySelectorAll('.curve .point').length === 2").await;
    let chart_label =
        browser.js("return document.querySelector('.curve svg').getAttribute('aria-label')").await;
    assert!(chart_label.as_str().unwrap().contains("After epoch 2"), "{chart_label}");
    assert_eq!(browser.js("return document.querySelectorAll('.as-table tbody tr').length").await, 3);

    browser.click("#candidates .entry summary").await;
    browser.until("document.querySelector('#candidates .line[data-kind=added]')?.checkVisibility()").await;
    let facts = browser.text("#candidates .entry:has([data-kind=added]) .entry-facts").await;
    assert!(facts.contains(" cases") && facts.contains("from "), "{facts}");

    // Failed cases come first; an opened entry shows all its details.
    browser.until("document.querySelector('#cases .entry')").await;
    let shown = browser.texts("#cases .entry .badge").await;
    assert!(shown.iter().all(|text| text == "Failed"), "{shown:?}");
    browser.click("#cases .entry summary").await;
    browser.until("document.querySelector('#cases .verdicts p')?.innerText.includes('xpected')").await;
    browser.click("#cases .node summary").await;
    browser.until("document.querySelector('#cases .node .text-box')").await;
    let inputs = browser.text("#cases .entry[open] .text-box").await;
    assert!(inputs.contains("window.bad = 1"), "hostile text is text: {inputs}");
    let missing = browser
        .js("return document.body.innerText.match(/.*(undefined|NaN|\\[object).*/)?.[0] ?? null")
        .await;
    assert_eq!(missing, json!(null), "a value that does not exist is not shown");

    let use_it = "document.querySelector('.checkpoint .said').innerText";
    browser.click(".checkpoint .button").await;
    browser.until(&format!("{use_it} === 'Stored as version 2.'")).await;
    browser.click(".checkpoint .button").await;
    browser.until(&format!("{use_it}.includes('Version 2 has exactly these prompts already')")).await;
    let versions = t.get(&workflow.path("/versions")).await.value();
    assert_eq!(versions["data"].as_array().unwrap().len(), 2);
    assert_eq!(browser.texts(".checkpoint .badge").await, ["Best"]);
    assert_accessible_everywhere(&browser, "an ended training").await;
    assert_eq!(browser.js("return window.bad ?? null").await, json!(null));
    assert_eq!(browser.js("return document.querySelectorAll('main img, main script').length").await, 0);

    browser
        .js("const s = document.querySelector('[name=result]'); s.value = 'passed'; s.dispatchEvent(new Event('change', {bubbles: true}))")
        .await;
    browser
        .until("(() => { const b = [...document.querySelectorAll('#cases .entry > summary .badge')]; return b.length > 0 && b.every((e) => e.innerText === 'Passed'); })()")
        .await;
    browser.finish().await;
}

/// Types an address, then the mailed code.
async fn sign_in(browser: &Browser, mail: &MailServer, email: &str) {
    let before = mail.mails().len();
    browser.write("#address", email).await;
    browser.press("\u{E007}").await;
    browser.until("document.querySelector('#code-form').checkVisibility()").await;
    browser.press(&mail.mail(before + 1).await.code()).await;
    browser.press("\u{E007}").await;
}

#[tokio::test]
async fn the_training_page_follows_the_roles_of_its_workspace() {
    let mail = MailServer::start().await;
    let service = TestService::builder().with_bootstrap_token().set("SERVICE_SMTP_URL", mail.url());
    let t = service.start().await;
    let root = t.root();
    let make = async |slug: &str| {
        let headers = [("x-workspace", slug), JSON];
        let made = root.send("POST", "/api/workflows", &headers, r#"{"name": "Sort"}"#).await;
        let id = made.value()["id"].as_str().unwrap().to_owned();
        let version = json!({"graph": sorting("practice/classify@2000ms"), "runnable_config": prompts(SEED)});
        assert_eq!(root.post(&format!("/api/workflows/{id}/versions"), &version).await.status, 201);
        id
    };
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let (own, foreign) = (make("default").await, make("other").await);
    let run = root.post(&runs_of(&own), &evaluation(24, json!({"max_concurrency": 1}))).await.value();
    let run = run["id"].as_str().unwrap().to_owned();
    let path = format!("/workflows/{own}/training?run={run}");
    let plain = t.get(&path).await;
    assert_eq!((plain.status, plain.header("location").unwrap().starts_with("../../login?")), (303, true));
    let reader = root.token(&["workflows:read"], &["default"]).await;
    assert_eq!(t.bearer(&reader).get(&path).await.status, 200);
    assert_eq!(t.bearer(&reader).get(&format!("/workflows/{foreign}/training")).await.status, 404);

    let bob = json!({"email": "bob@example.org", "role": "viewer"});
    let bob = root.post("/api/workspaces/default/members", &bob).await.value();
    until("the invitation", async || !mail.mails().is_empty()).await;
    let mut browser = Browser::start().await;
    browser.network_may_fail();
    let base = format!("http://{}", t.address());
    browser.goto(&format!("{base}{path}")).await;
    browser.until("location.pathname === '/login'").await;
    sign_in(&browser, &mail, "bob@example.org").await;
    browser.until("location.pathname.endsWith('/training')").await;
    assert_eq!(browser.js("return location.search").await, format!("?run={run}"));
    becomes(&browser, "Running").await;
    browser.until("document.querySelector('#cases .entry')").await;
    assert_eq!(browser.text("#account").await, "bob@example.org");
    assert!(browser.texts(".controls button").await.is_empty(), "a viewer has no controls");
    let script = "return JSON.stringify([{...localStorage}, {...sessionStorage}]) + document.cookie + document.documentElement.outerHTML";
    assert!(!browser.js(script).await.as_str().unwrap().contains("eyJ"), "no token outside of the module");

    let role = |role: &str| json!({"role": role});
    let member = format!("/api/workspaces/default/members/{}", bob["user_id"].as_str().unwrap());
    assert_eq!(root.json("PATCH", &member, &role("editor")).await.status, 200);
    browser.reload().await;
    browser.until("document.querySelector('[data-control=pause]')?.checkVisibility()").await;
    assert_eq!(root.json("PATCH", &member, &role("viewer")).await.status, 200);
    browser.click("[data-control=pause]").await;
    browser.until("document.querySelector('.head .said').innerText.startsWith('You may not do this')").await;
    browser.assert_accessible("a refused control").await;

    for nothing in [foreign.as_str(), "nonsense"] {
        browser.goto(&format!("{base}/workflows/{nothing}/training")).await;
        assert_eq!(browser.text("h1").await, "Workflow not found");
    }
    browser.assert_accessible("the page of a workflow that is not found").await;
    browser.goto(&format!("{base}/workflows/{own}/training?run=nonsense")).await;
    browser
        .until("document.querySelector('#problem').innerText.includes('The training was not found')")
        .await;
    assert_eq!(root.post(&format!("{}/{run}/cancel", runs_of(&own)), &json!({})).await.status, 200);
    browser.finish().await;
}
