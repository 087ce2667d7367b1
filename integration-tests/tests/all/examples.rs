//! The ready-to-use workflows in `examples/`, against simulated services.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{AnswerExt, Echo, Endpoint, JSON, MailServer, TestService, Workflow, until};
use serde_json::{Value, json};

/// A service with a vault that may call the simulated one, and a scripted model.
async fn service(others: &Echo, model: &Endpoint, mail: Option<&MailServer>) -> TestService {
    let keys = json!({"active": "a", "keys": {"a": STANDARD.encode([7; 32])}});
    let builder = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_VAULT_KEYS", keys.to_string())
        .set("SERVICE_MODEL_BASE_URL", model.base_url())
        .set("SERVICE_MODEL_API_KEY", "sk-test")
        .set("SERVICE_EGRESS_ALLOW", others.allow());
    let builder = match mail {
        Some(server) => {
            builder.set("SERVICE_SMTP_URL", server.url()).set("SERVICE_MAIL_FROM", "Shop <shop@example.com>")
        }
        None => builder,
    };
    builder.start().await
}

fn graph(file: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

async fn secret(t: &TestService, name: &str, secret: &str) {
    t.root().post("/api/credentials", &json!({"name": name, "secret": secret})).await.expect(201);
}

async fn example(t: &TestService, file: &str, config: Value) -> Workflow {
    t.workflow().graph(graph(file)).config(config).create().await
}

async fn run(t: &TestService, workflow: &Workflow, inputs: Value) -> Value {
    let done = t.root().post(&workflow.path("/runs?wait=30"), &json!({"inputs": inputs})).await.value();
    assert_eq!(done["status"], "succeeded", "{done:#}");
    done
}

/// Bodies of requests with this prefix.
fn request_bodies(others: &Echo, begin: &str) -> Vec<String> {
    let requests = others.requests().into_iter().filter(|request| request.starts_with(begin));
    requests.map(|request| request.split_once("\r\n\r\n").unwrap().1.to_owned()).collect()
}

#[tokio::test]
async fn the_support_desk_looks_up_orders_refunds_and_escalates() {
    let order = json!({"state": "delivered", "total": 42.5, "days": 3});
    let old = json!({"state": "delivered", "total": 42.5, "days": 90});
    let shop = Echo::start()
        .await
        .with_page("GET /orders/10017?email=ana", order)
        .with_page("GET /orders/10018?", old);
    let model = Endpoint::quick().await;
    let t = service(&shop, &model, None).await;
    secret(&t, "shop", "token-of-the-shop").await;
    secret(&t, "support channel", &shop.url("/slack")).await;
    let config = json!({"model": "openai/x", "shop": shop.url("")});
    let refund = t.workflow().named("support-desk-refund").graph(graph("support-desk/refund.json"));
    let refund = refund.config(config.clone()).create().await;
    assert_eq!(refund.handle, "support-desk-refund");
    let desk = example(&t, "support-desk/workflow.json", config).await;
    let lookup = json!({"number": "10017", "email": "ana@example.com"});
    model.calls("order", &lookup).await;
    model.calls("refund", &lookup).await;
    // Too old, and not a number: both are reported to the model, and nothing is paid.
    model.calls("refund", &json!({"number": "10018", "email": "ana@example.com"})).await;
    model.calls("order", &json!({"number": "../admin", "email": "ana@example.com"})).await;
    model.calls("colleague", &json!({"summary": "wants 10018 back too"})).await;
    model.says("42.50 are on their way; a colleague writes today.").await;
    let done = run(&t, &desk, json!({"message": "10017 and 10018 came broken. I want my money back."})).await;
    assert_eq!(done["output"]["reply"], "42.50 are on their way; a colleague writes today.");
    assert_eq!(done["output"]["tools"], json!(["order", "refund", "refund", "order", "colleague"]));
    assert_eq!(request_bodies(&shop, "POST /orders"), [r#"{"amount":42.5}"#]);
    let paid = shop.requests().into_iter().find(|request| request.starts_with("POST /orders")).unwrap();
    assert!(paid.to_lowercase().contains("idempotency-key: refund-10017"), "{paid}");
    assert!(request_bodies(&shop, "POST /slack")[0].contains("A customer waits: wants 10018 back too"));
    assert!(shop.requests()[0].contains("Bearer token-of-the-shop"));
    let calls = model.requests().await;
    let tool_result =
        |n: usize| calls[n]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(
        tool_result(1).contains("delivered") && tool_result(2).contains("42.5"),
        "{} {}",
        tool_result(1),
        tool_result(2)
    );
    assert!(!tool_result(1).contains("headers"), "headers are not sent to a model: {}", tool_result(1));
    assert!(tool_result(3).contains("rules do not allow"), "{}", tool_result(3));
    assert!(!json!(calls).to_string().contains("token-of-the-shop"));
}

#[tokio::test]
async fn documents_are_indexed_and_questions_answered_from_them() {
    let handbook =
        "Leave\n\nEverybody has thirty days of leave.\n\nTravel\n\nTrains are paid, planes are not.";
    let web = Echo::start().await.with_page("GET /handbook.md", json!(handbook));
    let model = Endpoint::quick().await;
    let t = service(&web, &model, None).await;
    let config = json!({"model": "openai/x", "embedding_model": "openai/e", "index": "handbook"});
    let learn = example(&t, "ask-documents/learn.json", config.clone()).await;
    let ask = example(&t, "ask-documents/ask.json", config).await;
    model.says("Nobody asks me").await;
    let nothing = run(&t, &ask, json!({"message": "How many days of leave?"})).await;
    assert_eq!(
        nothing["output"],
        json!({"reply": "Nothing in the documents speaks of that.", "sources": []})
    );
    let document = json!({"url": web.url("/handbook.md"), "title": "The handbook"});
    for replaced in [0, 1] {
        let learned = run(&t, &learn, document.clone()).await;
        assert_eq!(
            (&learned["output"]["chunks"], &learned["output"]["replaced"]),
            (&json!(1), &json!(replaced))
        );
    }
    let answered = run(&t, &ask, json!({"message": "How many days of leave?"})).await;
    assert_eq!(answered["output"], json!({"reply": "Nobody asks me", "sources": [document["url"]]}));
    let calls = model.requests().await;
    let system = calls.last().unwrap()["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("[1] The handbook\n") && system.contains("thirty days of leave"), "{system}");
}

#[tokio::test]
async fn a_release_waits_for_an_administrator_across_restarts() {
    let others = Echo::start().await;
    let model = Endpoint::quick().await;
    let mut t = service(&others, &model, None).await;
    secret(&t, "release channel", &others.url("/slack")).await;
    secret(&t, "deployer", "shared-with-the-deployer").await;
    let config = json!({"deployer": others.url("/deploy")});
    let workflow = example(&t, "deploy-approval/workflow.json", config).await;
    let hook = workflow.path("/triggers/webhook");
    t.root()
        .json(
            "PUT",
            &format!("{hook}/config"),
            &json!({"shared_secret_header": "X-Token", "shared_secret": "of-the-ci-0123456789"}),
        )
        .await
        .expect(200);
    let call = async |t: &TestService, version: &str| {
        let headers = [JSON, ("x-token", "of-the-ci-0123456789")];
        let body = json!({"service": "shop", "version": version, "by": "Ana"}).to_string();
        t.send("POST", &hook, &headers, body).await.expect(202).member("run_id")
    };
    let waits = async |t: &TestService, run: &str| {
        until("the run to wait for an answer", async || {
            t.root().get(&format!("/api/runs/{run}")).await.value()["status"] == "waiting"
        })
        .await;
    };
    let (good, bad) = (call(&t, "1.8.2").await, call(&t, "1.8.3").await);
    waits(&t, &good).await;
    waits(&t, &bad).await;
    t.restart().await;
    let answer = async |t: &TestService, run: &str, answer: Value| {
        let path = format!("/api/runs/{run}/inputs/release");
        let accepted = t.root().post(&path, &answer).await;
        assert!(accepted.status < 300, "{}", accepted.text());
        until("the run to end", async || {
            t.root().get(&format!("/api/runs/{run}")).await.value()["status"] == "succeeded"
        })
        .await;
        t.root().get(&format!("/api/runs/{run}")).await.value()["output"].clone()
    };
    assert_eq!(answer(&t, &good, json!({"approved": true})).await, "released");
    assert_eq!(answer(&t, &bad, json!({"approved": false, "reason": "Not on a Friday."})).await, "refused");
    until("the deployer to be notified", async || request_bodies(&others, "POST /deploy").len() == 1).await;
    let deployment: Value = serde_json::from_str(&request_bodies(&others, "POST /deploy")[0]).unwrap();
    assert_eq!((&deployment["service"], &deployment["version"]), (&json!("shop"), &json!("1.8.2")));
    let deploy = others.requests().into_iter().find(|request| request.starts_with("POST /deploy")).unwrap();
    assert!(deploy.to_lowercase().contains("x-signature: sha256="), "{deploy}");
    let messages = request_bodies(&others, "POST /slack").join("\n");
    for part in [
        "Ana wants to release shop 1.8.2",
        &format!("callboard answer {good} "),
        "1.8.2 is handed to the deployer",
        "1.8.3 stays: Not on a Friday.",
    ] {
        assert!(messages.contains(part), "{part} is missing from {messages}");
    }
}

#[tokio::test]
async fn the_nightly_report_is_computed_written_and_mailed() {
    let orders = json!({"orders": [
        {"state": "paid", "total": 30.0, "lines": [{"product": "Tea", "count": 2}, {"product": "Cup", "count": 1}]},
        {"state": "paid", "total": 10.5, "lines": [{"product": "Tea", "count": 1}]},
        {"state": "refunded", "total": 99.0, "lines": [{"product": "Pot", "count": 1}]}]});
    let shop =
        Echo::start().await.with_page("GET /orders", orders).with_page("GET /visits", json!({"visits": 80}));
    let (model, mail) = (Endpoint::quick().await, MailServer::start().await);
    let t = service(&shop, &model, Some(&mail)).await;
    secret(&t, "shop", "token-of-the-shop").await;
    let config = json!({"model": "openai/x", "shop": shop.url(""), "analytics": shop.url(""), "to": ["owner@example.com"]});
    let report = example(&t, "nightly-report/workflow.json", config).await;
    model.says("A quiet day.").await;
    let cron = report.path("/triggers/cron");
    let schedule = json!({"expression": "* * * * * *", "timezone": "Europe/Berlin"});
    let set = t.root().json("PUT", &cron, &schedule).await;
    assert!(set.status < 300, "{}", set.text());
    let sent_mail = mail.mail(1).await;
    assert_eq!(t.root().json("DELETE", &cron, &json!({})).await.status, 204);
    assert_eq!(sent_mail.to, ["owner@example.com"]);
    assert_eq!(sent_mail.header("subject"), Some("3 orders, 40.5 in all"));
    assert!(
        sent_mail.data.contains("A quiet day.") && sent_mail.data.contains("3 x Tea"),
        "{}",
        sent_mail.data
    );
    let runs = t.root().get(&report.path("/runs")).await.value();
    let first = runs["data"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let run = t.root().get(&format!("/api/runs/{first}")).await.value();
    let numbers = json!({"orders": 3, "revenue": 40.5, "average": 20.25, "refunded_percent": 33.3, "visits": 80,
        "conversion_percent": 2.5, "best": [{"product": "Tea", "count": 3}, {"product": "Cup", "count": 1}]});
    assert_eq!(run["output"]["numbers"], numbers);
    assert!(shop.requests()[0].contains("until=20"), "{}", shop.requests()[0]);
    t.settled().await;
}

#[tokio::test]
async fn an_invoice_is_read_checked_and_reread_until_valid() {
    let others = Echo::start().await;
    let model = Endpoint::quick().await;
    let t = service(&others, &model, None).await;
    let workflow = example(&t, "invoice-extraction/workflow.json", json!({"model": "openai/x"})).await;
    let invoice = |quantity: i32| {
        json!({"number": "2026-118", "date": "2026-11-02", "due": "2026-11-30", "seller": "Tea & Co", "currency": "EUR",
            "lines": [{"text": "Tea", "quantity": quantity, "unit_price": 12.5}], "net": 100, "tax": 19, "gross": 119})
    };
    // The first does not fit the schema, the second does not add up, the third is valid.
    model.says(r#"{"number": 118}"#).await;
    model.says(&invoice(7).to_string()).await;
    model.says(&invoice(8).to_string()).await;
    let done = run(&t, &workflow, json!({"text": "Invoice 2026-118 …"})).await;
    let sound = json!({"invoice": invoice(8), "sound": true, "problems": [], "tries": 2});
    assert_eq!(done["output"], sound);
    let calls = model.requests().await;
    assert!(calls[2]["messages"].to_string().contains("the lines come to 87.5"), "{}", calls[2]["messages"]);
    for _ in 0..2 {
        model.says(&invoice(7).to_string()).await;
    }
    let done = run(&t, &workflow, json!({"text": "Invoice 2026-118 …"})).await;
    let problems = json!(["the lines come to 87.5, the net amount is 100"]);
    assert_eq!((&done["output"]["sound"], &done["output"]["problems"]), (&json!(false), &problems));
}

#[tokio::test]
async fn the_gallery_shows_every_item_kind() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graph("gallery.json")).published().create().await;
    let client = t.visitor();
    let turn = client.say(&workflow.id, "Where is my order?").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.error), ("It left on Monday, and arrives on Thursday.", None));
    let thread = client.thread(&workflow.id, &turn.thread_id).await.unwrap();
    let kind = |item: &wire::chat::ThreadItem| {
        serde_json::to_value(item).unwrap()["type"].as_str().unwrap().to_owned()
    };
    let kinds: Vec<String> = thread.items.data.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["user_message", "workflow", "widget", "generated_image", "assistant_message", "end_of_turn"]
    );
    assert_eq!(thread.title.as_deref(), Some("Order 7"));
}

#[tokio::test]
async fn the_refund_asks_before_it_acts() {
    let t = TestService::start().await;
    for (choice, expected) in [
        ("Yes, send it back", "A label is on its way. Reason: none."),
        ("No, keep it", "Nothing changes. Enjoy the tea."),
    ] {
        let workflow = t.workflow().graph(graph("refund.json")).published().create().await;
        let question = crate::questions::PendingQuestion::start_with(&t, workflow, "order 7").await;
        let answers = json!({"answers": {"ok": {"values": [choice]}}});
        let answered = t.chat(&question.submission(answers)).await;
        assert!(answered.text().contains(expected), "{}", answered.text());
    }
}
