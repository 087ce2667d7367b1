//! The vault: credentials over HTTP, graphs that use them, and key rotation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{AnswerExt, Echo, JSON, TestService, graphs, until};
use serde_json::{Value, json};

const ALL: &str = "/api/credentials";
const SECRET: &str = "sk-canary/7f3c 1d9a+b2&e8=45-x4";

fn keys(active: &str, ids: &[(&str, u8)]) -> String {
    let keys: serde_json::Map<String, Value> =
        ids.iter().map(|(id, byte)| ((*id).to_owned(), json!(STANDARD.encode([*byte; 32])))).collect();
    json!({"active": active, "keys": keys}).to_string()
}

async fn service(echo: &Echo) -> TestService {
    TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_VAULT_KEYS", keys("a", &[("a", 1)]))
        .set("SERVICE_EGRESS_ALLOW", echo.allow())
        .start()
        .await
}

async fn make(t: &TestService, name: &str) -> Value {
    let made = t.root().post(ALL, &json!({"name": name, "secret": SECRET, "provider": "stripe"})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    made.value()
}

fn call(url: String, more: Value) -> Value {
    let mut node = json!({"name": "call", "type": "http_request", "url": url});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    graphs::chain(&[node], Some(json!("{{ results.call }}")))
}

async fn run(t: &TestService, workflow: &str, inputs: Value) -> Value {
    let path = format!("/api/workflows/{workflow}/runs?wait=20");
    t.root().post(&path, &json!({"inputs": inputs})).await.value()
}

#[tokio::test]
async fn credentials_are_managed_without_revealing_their_secrets() {
    let t = service(&Echo::start().await).await;
    let root = t.root();
    let made = make(&t, "stripe").await;
    assert_eq!(
        (&made["name"], &made["preview"], &made["description"]),
        (&json!("stripe"), &json!("sk-…x4"), &json!(null))
    );
    let mut members: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["created_at", "description", "id", "name", "preview", "provider", "updated_at"]);
    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    let again = json!({"name": "stripe", "secret": "other"});
    assert_eq!(root.post(ALL, &again).await.refusal(), "409 credential.name_taken");
    make(&t, "second").await;
    let part = root.get(&format!("{ALL}?limit=1")).await.value();
    assert_eq!((part["data"].as_array().unwrap().len(), &part["data"][0]["name"]), (1, &json!("second")));
    let rest = root.get(&format!("{ALL}?cursor={}", part["next_cursor"].as_str().unwrap())).await;
    assert_eq!(rest.value(), json!({"data": [made], "next_cursor": null}));
    let change = json!({"secret": "short", "provider": null, "description": "new"});
    let changed = root.json("PATCH", &one, &change).await.value();
    assert_eq!(
        (&changed["preview"], &changed["provider"], &changed["description"], &changed["id"]),
        (&json!("…"), &json!(null), &json!("new"), &made["id"])
    );
    let changed = root.json("PATCH", &one, &json!({"description": null})).await.value();
    assert_eq!((&changed["preview"], &changed["description"]), (&json!("…"), &json!(null)));
    assert_eq!(root.json("DELETE", &one, &json!({})).await.status, 204);
    for (method, body) in [("DELETE", json!({})), ("PATCH", json!({"secret": "x"}))] {
        assert_eq!(root.json(method, &one, &body).await.refusal(), "404 credential.not_found");
    }
    let trail = root.get("/api/admin/audit").await.value();
    let mut rows: Vec<String> = Vec::new();
    for row in trail["data"].as_array().unwrap() {
        let action = row["action"].as_str().unwrap();
        if action.starts_with("credential.") {
            rows.push(format!("{action} {}", row["reason"].as_str().unwrap_or_default()));
        }
    }
    assert_eq!(
        rows,
        [
            "credential.deleted stripe",
            "credential.changed stripe",
            "credential.rotated stripe",
            "credential.created second",
            "credential.created stripe"
        ]
    );
    // Two requests with the same key create one credential.
    let headers = [("idempotency-key", "k"), JSON];
    let body = json!({"name": "once", "secret": SECRET}).to_string();
    let first = root.send("POST", ALL, &headers, &body).await;
    let second = root.send("POST", ALL, &headers, &body).await;
    assert_eq!((first.status, second.status, first.value()), (201, 201, second.value()));
    let rows = t.scalar("SELECT string_agg(k::text, ' ') || (SELECT string_agg(c::text, ' ') FROM credentials c) FROM idempotency_keys k").await;
    assert!(!rows.contains("canary") && !rows.contains("63616e617279"), "{rows}");
}

#[tokio::test]
async fn bad_requests_are_rejected_with_their_problems_without_the_secret() {
    let t = service(&Echo::start().await).await;
    let root = t.root();
    let made = make(&t, "stripe").await;
    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    let cases = [
        ("POST", ALL, json!({}), vec!["/name", "/secret"]),
        ("POST", ALL, json!({"name": "2fa", "secret": "canary"}), vec!["/name"]),
        ("POST", ALL, json!({"name": "a]]b", "secret": "canary", "kind": "canary"}), vec!["/name", "/kind"]),
        ("POST", ALL, json!({"name": "a", "secret": "c".repeat(65 * 1024)}), vec!["/secret"]),
        ("POST", ALL, json!({"name": "a", "secret": ["canary"]}), vec!["/secret"]),
        ("PATCH", &one, json!({}), vec![""]),
        ("PATCH", &one, json!({"secret": "", "name": "b"}), vec!["/secret", "/name"]),
    ];
    for (method, path, body, pointers) in cases {
        let answer = root.json(method, path, &body).await;
        assert_eq!(answer.refusal(), "422 request.invalid", "{body}");
        let problems: Vec<String> = answer.value()["detail"]["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| problem["pointer"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(problems, pointers, "{body}");
        assert!(!answer.text().contains("canary") && answer.text().len() < 2_000, "{}", answer.text());
    }
    assert_eq!(root.get(&format!("{ALL}?colour=1")).await.refusal(), "422 request.invalid");
    assert_eq!(root.get(&one).await.status, 405);
    assert_eq!(
        root.json("PATCH", &format!("{ALL}/none"), &json!({"secret": "x"})).await.refusal(),
        "404 credential.not_found"
    );
    // A credential in another workspace is inaccessible, and names are separate per workspace.
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let elsewhere =
        root.token(&["vault:read", "vault:write", "workflows:read", "workflows:write"], &["other"]).await;
    let elsewhere = t.bearer(&elsewhere);
    assert_eq!(
        elsewhere.json("PATCH", &one, &json!({"secret": "x"})).await.refusal(),
        "403 auth.workspace_forbidden"
    );
    assert_eq!(elsewhere.get(ALL).await.value()["data"], json!([]));
    assert_eq!(elsewhere.post(ALL, &json!({"name": "stripe", "secret": "x"})).await.status, 201);
    assert_eq!(
        elsewhere.post("/api/admin/vault/rotate", &json!({})).await.refusal(),
        "403 auth.workspace_forbidden"
    );
}

#[tokio::test]
async fn a_secret_in_a_graph_reaches_only_the_called_server() {
    let echo = Echo::start().await;
    let t = service(&echo).await;
    let root = t.root();
    let made = make(&t, "stripe").await;
    let workflow = root.post("/api/workflows", &json!({"name": "Desk"})).await.value();
    let id = workflow["id"].as_str().unwrap();
    let versions = format!("/api/workflows/{id}/versions");
    // A misspelled name is reported when the version is saved, and by the check.
    let graph = |name: &str| {
        let more = json!({"method": "POST", "headers": {"X-Key": format!("Bearer [[{name}]]")},
                          "json": {"k": format!("[[{name}]]"), "said": "{{ inputs.message }}"}});
        call(echo.url("/charge"), more)
    };
    for path in [versions.as_str(), "/api/workflows/check"] {
        let answer = root.post(path, &json!({"graph": graph("strpe")})).await;
        let errors = if path == versions {
            assert_eq!(answer.refusal(), "422 graph.invalid");
            answer.value()["detail"]["errors"].clone()
        } else {
            answer.value()["errors"].clone()
        };
        let line = |n: usize| {
            format!("{} {} {}", errors[n]["pointer"], errors[n]["code"], errors[n]["suggestion"])
                .replace('"', "")
        };
        assert_eq!(line(0), "/nodes/0/headers/X-Key unknown_credential did you mean 'stripe'?", "{path}");
        assert_eq!(line(1), "/nodes/0/json/k unknown_credential did you mean 'stripe'?", "{path}");
    }
    // Name suggestions are only for callers who may list them.
    let blind = root.token(&["workflows:read"], &[]).await;
    let checked =
        t.bearer(&blind).post("/api/workflows/check", &json!({"graph": graph("strpe")})).await.text();
    assert!(checked.contains("unknown_credential") && !checked.contains("stripe'?"), "{checked}");
    // Names in an agent's tools are checked, too.
    let tool = json!({"type": "http", "name": "look", "description": "Looks.", "parameters": {"type": "object"},
                      "request": {"url": "https://example.com", "headers": {"X-Key": "[[strpe]]"}}});
    let agent =
        json!({"name": "a", "type": "agent", "model": "practice/reply", "user": "hi", "tools": [tool]});
    let checked =
        root.post("/api/workflows/check", &json!({"graph": graphs::chain(&[agent], None)})).await.value();
    assert_eq!(checked["errors"][0]["pointer"], "/nodes/0/tools/0/request/headers/X-Key", "{checked}");
    assert_eq!(root.post(&versions, &json!({"graph": graph("stripe")})).await.status, 201);
    let shown = root.get(&format!("/api/workflows/{id}")).await.value();
    assert_eq!(shown["readiness"], json!({"ready": true, "missing_credentials": []}));

    let ran = run(&t, id, json!({"message": "say [[stripe]] to me"})).await;
    assert_eq!(ran["status"], "succeeded", "{ran}");
    let sent = echo.requests().join("\n");
    assert!(sent.contains(&format!("x-key: Bearer {SECRET}")), "{sent}");
    assert!(sent.contains("say [[stripe]] to me"), "{sent}");
    assert!(ran["output"]["json"]["raw"].as_str().unwrap().contains("x-key: Bearer [redacted]"), "{ran}");
    let run_id = ran["id"].as_str().unwrap();
    let trace = root.get(&format!("/api/runs/{run_id}/trace")).await.text();
    let events = root.get(&format!("/api/runs/{run_id}/events")).await.text();
    let rows = t.scalar("SELECT (SELECT string_agg(s::text, ' ') FROM run_steps s) || (SELECT string_agg(r::text, ' ') FROM runs r)").await;
    for text in [ran.to_string(), trace, events, rows] {
        for form in ["canary", "63616e617279", "c2stY2FuYXJ5", "NrLWNhbmFyeS", "zay1jYW5hcnkv"] {
            assert!(!text.contains(form), "{form}: {text}");
        }
    }

    // The next call uses the new secret; a deleted credential is reported.
    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    assert_eq!(root.json("PATCH", &one, &json!({"secret": "the-second-secret"})).await.status, 200);
    run(&t, id, json!({"message": ""})).await;
    assert!(echo.requests().last().unwrap().contains("x-key: Bearer the-second-secret"));
    assert_eq!(root.json("DELETE", &one, &json!({})).await.status, 204);
    let ran = run(&t, id, json!({"message": ""})).await;
    assert_eq!(
        (&ran["status"], &ran["error"]["code"]),
        (&json!("failed"), &json!("credential.missing")),
        "{ran}"
    );
    assert_eq!(ran["error"]["message"], "this workspace has no credential 'stripe'");
    let shown = root.get(&format!("/api/workflows/{id}")).await.value();
    assert_eq!(shown["readiness"], json!({"ready": false, "missing_credentials": ["stripe"]}));
    assert_eq!(echo.requests().len(), 2);
}

#[tokio::test]
async fn only_public_and_allowed_addresses_are_called() {
    let (open, closed) = (Echo::start().await, Echo::start().await);
    let t = service(&open).await;
    let own = format!("http://{}/healthz", t.address());
    for (url, code) in [
        (open.url("/"), None),
        (closed.url("/"), Some("egress.refused")),
        (own, Some("egress.refused")),
        ("http://169.254.169.254/latest".to_owned(), Some("egress.refused")),
        (open.url("/fail"), Some("node.failed")),
    ] {
        let workflow = t.workflow().graph(call(url.clone(), json!({}))).create().await;
        let ran = run(&t, &workflow.id, json!({})).await;
        assert_eq!(ran["error"]["code"].as_str(), code, "{url}: {ran}");
    }
    assert!(closed.requests().is_empty());
}

#[tokio::test]
async fn the_vault_key_is_rotated_during_operation() {
    let echo = Echo::start().await;
    let mut t = service(&echo).await;
    for name in ["one", "two", "three"] {
        make(&t, name).await;
    }
    let graph = call(echo.url("/"), json!({"headers": {"X-Key": "[[one]]"}}));
    let workflow = t.workflow().graph(graph).create().await;
    t.set("SERVICE_VAULT_KEYS", &keys("b", &[("a", 1), ("b", 2)]));
    t.restart().await;
    make(&t, "four").await;
    assert_eq!(t.scalar("SELECT string_agg(key_id, '' ORDER BY id) FROM credentials").await, "aaab");
    assert_eq!(run(&t, &workflow.id, json!({})).await["status"], "succeeded", "mixed ids are readable");
    let rotated = t.root().post("/api/admin/vault/rotate", &json!({})).await.value();
    assert_eq!((&rotated["active"], &rotated["remaining"]), (&json!("b"), &json!(0)));
    let again = t.root().post("/api/admin/vault/rotate", &json!({})).await.value();
    assert_eq!(again, json!({"active": "b", "rewrapped": 0, "remaining": 0}));
    assert_eq!(t.scalar("SELECT count(*) FROM service_keys WHERE sealed_under <> 'b'").await, "0");
    t.set("SERVICE_VAULT_KEYS", &keys("b", &[("b", 2)]));
    t.restart().await;
    assert_eq!(run(&t, &workflow.id, json!({})).await["status"], "succeeded", "the old key can be removed");
    assert!(echo.requests().iter().all(|sent| sent.contains(&format!("x-key: {SECRET}"))));
    assert_eq!(t.get("/readyz").await.value()["parts"]["vault"], json!({"ready": true}));
    // A missing key is reported by its id.
    t.execute("UPDATE credentials SET key_id = 'gone' WHERE name = 'one'").await;
    until("readiness to end", async || t.get("/readyz").await.status == 503).await;
    let ready = t.get("/readyz").await;
    let reason = ready.value()["parts"]["vault"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(
        reason,
        "the vault key \"gone\" is missing; add it to SERVICE_VAULT_KEYS again; 1 stored secrets need it"
    );
    let ran = run(&t, &workflow.id, json!({})).await;
    assert_eq!(ran["error"]["code"], "vault.key_missing", "{ran}");
    let refused = t.root().post("/api/admin/vault/rotate", &json!({})).await;
    assert_eq!(refused.refusal(), "503 vault.key_missing");
    assert!(refused.message().contains("\"gone\""), "{}", refused.message());
}

#[tokio::test]
async fn the_vault_is_unavailable_without_keys() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let id = "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b";
    for (method, path) in [
        ("GET", ALL.to_owned()),
        ("POST", ALL.to_owned()),
        ("PATCH", format!("{ALL}/{id}")),
        ("DELETE", format!("{ALL}/{id}")),
        ("POST", "/api/admin/vault/rotate".to_owned()),
    ] {
        let answer = root.json(method, &path, &json!({"name": "a", "secret": "s"})).await;
        assert_eq!(answer.refusal(), "503 vault.key_missing", "{method} {path}");
        assert_eq!(t.send(method, &path, &[], "").await.status, 401, "{method} {path}");
    }
    assert_eq!(t.get("/readyz").await.status, 200, "readiness does not need vault keys");
    let graph = call("https://example.org/".to_owned(), json!({"headers": {"X-Key": "[[a]]"}}));
    let checked = root.post("/api/workflows/check", &json!({"graph": graph})).await.value();
    assert_eq!(
        (&checked["valid"], &checked["warnings"][0]["code"]),
        (&json!(false), &json!("vault_key_missing"))
    );
}

#[tokio::test]
async fn a_silent_receiver_does_not_delay_others() {
    let echo = Echo::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = silent.local_addr().unwrap();
    let mut allow: Vec<String> = serde_json::from_str(&echo.allow()).unwrap();
    allow.push(place.to_string());
    let allow = json!(allow).to_string();
    let t = TestService::builder().with_bootstrap_token().set("SERVICE_EGRESS_ALLOW", allow).start().await;
    let tell = |url: String| json!({"name": "tell", "type": "webhook_send", "url": url, "json": {"k": 1}});
    let slow = graphs::chain(&[tell(format!("http://{place}/"))], None);
    let slow = t.workflow().graph(slow).create().await;
    let quick = t.workflow().graph(graphs::chain(&[tell(echo.url("/quick"))], None)).create().await;
    assert_eq!(run(&t, &slow.id, json!({})).await["status"], "succeeded");
    let (_waits, _) = silent.accept().await.unwrap();
    for _ in 0..3 {
        assert_eq!(run(&t, &quick.id, json!({})).await["status"], "succeeded");
    }
    until("the others are sent", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE finished_at IS NOT NULL AND error IS NULL").await == "3"
    })
    .await;
    assert_eq!(t.scalar("SELECT count(*) FROM outbox WHERE finished_at IS NULL AND attempts = 1").await, "1");
}

#[tokio::test]
async fn a_webhook_is_sent_after_its_step_and_retried_until_accepted() {
    let echo = Echo::start().await;
    let mut t = service(&echo).await;
    make(&t, "hook").await;
    let node = |path: &str| json!({"name": "tell", "type": "webhook_send", "url": echo.url(path), "secret": "[[hook]]", "json": {"k": "[[hook]]"}});
    let graph = graphs::chain(&[node("/once")], Some(json!("{{ results.tell }}")));
    let workflow = t.workflow().graph(graph).create().await;
    let ran = run(&t, &workflow.id, json!({})).await;
    assert_eq!(ran["output"]["status"], "queued", "{ran}");
    let id = ran["output"]["delivery_id"].as_str().unwrap().to_owned();
    until("the delivery is accepted", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE finished_at IS NOT NULL AND error IS NULL").await == "1"
    })
    .await;
    let sent = echo.requests();
    assert_eq!(sent.len(), 2, "refused once");
    for request in &sent {
        assert!(
            request.contains(&format!("idempotency-key: {id}")) && request.contains("x-signature: sha256="),
            "{request}"
        );
    }
    assert_eq!(t.scalar("SELECT attempts FROM outbox").await, "2");
    // A permanently rejected delivery shows the reason, without the secret.
    let refused = t.workflow().graph(graphs::chain(&[node("/fail/[[hook]]")], None)).create().await;
    let ran = run(&t, &refused.id, json!({})).await;
    assert_eq!(ran["status"], "succeeded");
    until("the delivery is abandoned", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE finished_at IS NOT NULL AND error LIKE '%answered 422%'")
            .await
            == "1"
    })
    .await;
    let rows = t.scalar("SELECT string_agg(o::text, ' ') FROM outbox o").await;
    assert!(!rows.contains("canary") && rows.contains("[redacted]"), "{rows}");
    let trace = t.root().get(&format!("/api/runs/{}/trace", ran["id"].as_str().unwrap())).await.value();
    let given_up = &trace["deliveries"][0];
    assert_eq!((&given_up["status"], &given_up["attempts"]), (&json!("failed"), &json!(1)), "{trace}");
    let why = given_up["error"].as_str().unwrap();
    assert!(why.contains("answered 422") && why.contains("[redacted]") && !why.contains("canary"), "{why}");
    // The next process sends the deliveries that were in progress when the process died.
    t.execute("UPDATE outbox SET finished_at = NULL, next_attempt_at = now() + interval '1 hour', claimed_by = (SELECT writer_id FROM runs LIMIT 1) WHERE attempts = 2").await;
    t.restart().await;
    until("the delivery is retried", async || echo.requests().len() == 4).await;
}
