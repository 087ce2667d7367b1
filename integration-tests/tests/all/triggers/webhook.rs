//! Webhooks that start a run.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, JSON, TestService, Workflow, graphs, until};
use kernel::Clock;
use ring::hmac;
use serde_json::{Value, json};

const SECRET: &str = "a-secret-of-the-webhook";

fn path(workflow: &Workflow) -> String {
    workflow.path("/triggers/webhook")
}

async fn configure(t: &TestService, workflow: &Workflow, config: Value) -> Answer {
    t.send("PUT", &format!("{}/config", path(workflow)), &[JSON], config.to_string()).await
}

fn graph() -> Value {
    graphs::chain(&[json!({"name": "t", "type": "template", "template": "{{ inputs.method }}"})], None)
}

async fn hooked(t: &TestService, config: Value) -> Workflow {
    let workflow = t.workflow().graph(graph()).create().await;
    configure(t, &workflow, config).await.expect(200);
    workflow
}

fn sign(text: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), text.as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn done(t: &TestService, count: &str) {
    let ended = "SELECT count(*)::text FROM runs WHERE status = 'succeeded'";
    t.while_time_passes(until("runs end", async || t.scalar(ended).await == count)).await;
}

fn refusal(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.code())
}

#[tokio::test]
async fn a_webhook_is_configured_and_hides_its_secrets() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graph()).create().await;
    let unknown = t.send("POST", "/api/workflows/nobody/triggers/webhook", &[], "").await;
    let none = t.send("POST", &path(&workflow), &[], "").await;
    assert_eq!((refusal(&none), none.text().len()), (refusal(&unknown), unknown.text().len()));
    assert_eq!(refusal(&none), "404 trigger.not_found");
    let open = configure(&t, &workflow, json!({})).await;
    assert_eq!(open.value()["detail"]["errors"][0]["code"], "unsigned", "{}", open.text());
    let config = json!({"shared_secret_header": "X-Token", "shared_secret": SECRET});
    let made = configure(&t, &workflow, config).await;
    assert_eq!((made.status, &made.value()["shared_secret"]), (200, &json!("********")));
    assert!(!made.text().contains(SECRET));
    // The shown configuration can be set again: the secret stays the same.
    let shown = t.get(&format!("{}/config", path(&workflow))).await.value();
    let mut again = shown.as_object().unwrap().clone();
    again.retain(|name, value| !value.is_null() && !name.ends_with("_at"));
    configure(&t, &workflow, Value::Object(again)).await.expect(200);
    for (config, problem) in [
        (json!({"hmac_header": "X-S"}), "/hmac_secret required"),
        (json!({"hmac_secret": SECRET, "allow_unsigned": true}), "/hmac_secret incomplete"),
        (json!({"hmac_header": "X-S", "hmac_secret": "short"}), "/hmac_secret format"),
        (
            json!({"allow_unsigned": true, "hmac_timestamp_header": "X-T"}),
            "/hmac_timestamp_header incomplete",
        ),
        (json!({"allow_unsigned": true, "allowed_methods": ["TRACE"]}), "/allowed_methods/0 choice"),
        (json!({"allow_unsigned": true, "allowed_methods": []}), "/allowed_methods length"),
        (
            json!({"allow_unsigned": true, "rate_limit": {"limit": 0}}),
            "/rate_limit/interval_seconds required",
        ),
        (json!({"allow_unsigned": true, "hmac_tolerance_seconds": 3601}), "/hmac_tolerance_seconds range"),
        (json!({"allow_unsigned": true, "hmac_algorithm": "md5"}), "/hmac_algorithm choice"),
        (json!({"allow_unsigned": true, "delivery_id_header": "a b"}), "/delivery_id_header format"),
    ] {
        let refused = configure(&t, &workflow, config).await;
        let errors = refused.value()["detail"]["errors"].as_array().unwrap().clone();
        let describe =
            |e: &Value| format!("{} {}", e["pointer"].as_str().unwrap(), e["code"].as_str().unwrap());
        assert!(errors.iter().any(|error| describe(error) == problem), "{problem}: {}", refused.text());
        assert_eq!(refusal(&refused), "422 request.invalid");
        assert!(!refused.text().contains(SECRET));
    }
    assert_eq!(t.send("POST", &path(&workflow), &[("x-token", SECRET)], "").await.status, 202);
    let stored = t.scalar("SELECT encode(secrets, 'escape') || config::text FROM webhook_triggers").await;
    assert!(!stored.contains(SECRET));
    done(&t, "1").await;
}

#[tokio::test]
async fn a_call_starts_a_run_with_its_request() {
    let t = TestService::start().await;
    let config = json!({"shared_secret_header": "X-Token", "shared_secret": SECRET, "allowed_methods": ["POST", "PUT"]});
    let workflow = hooked(&t, config).await;
    let address = format!("{}?a=1&b=2&b=3", path(&workflow));
    let headers =
        [JSON, ("x-token", SECRET), ("authorization", "Bearer x"), ("cookie", "a=b"), ("X-Other", "y")];
    let begun = t.send("PUT", &address, &headers, "{\"n\": [1]}").await;
    assert_eq!((begun.status, &begun.value()["status"]), (202, &json!("queued")), "{}", begun.text());
    done(&t, "1").await;
    let inputs: Value = serde_json::from_str(&t.scalar("SELECT inputs FROM runs").await).unwrap();
    assert_eq!(
        (&inputs["method"], &inputs["query"], &inputs["body"], &inputs["raw"]),
        (&json!("PUT"), &json!({"a": "1", "b": ["2", "3"]}), &json!({"n": [1]}), &json!("{\"n\": [1]}"))
    );
    assert_eq!(inputs["headers"]["x-other"], "y");
    for hidden in ["x-token", "authorization", "cookie"] {
        assert!(inputs["headers"].get(hidden).is_none(), "{hidden}");
    }
    assert_eq!(t.scalar("SELECT trigger FROM runs").await, "webhook");
    for (headers, expected) in [
        (vec![], "401 webhook.secret_invalid"),
        (vec![("x-token", "wrong")], "401 webhook.secret_invalid"),
        (vec![("x-token", SECRET), ("x-token", SECRET)], "401 webhook.secret_invalid"),
    ] {
        assert_eq!(refusal(&t.send("POST", &path(&workflow), &headers, "").await), expected);
    }
    let other = t.send("DELETE", &path(&workflow), &[("x-token", SECRET)], "").await;
    assert_eq!((other.status, other.header("allow")), (405, Some("POST, PUT")));
    t.send("POST", &path(&workflow), &[("x-token", SECRET)], vec![b'x'; (1 << 20) + 1]).await.expect(413);
}

/// A webhook that requires a signature with a timestamp, and calls to it.
struct Hook {
    path: String,
}

impl Hook {
    async fn create(t: &TestService) -> Self {
        let config =
            json!({"hmac_header": "X-Signature", "hmac_secret": SECRET, "hmac_timestamp_header": "X-Time"});
        Self { path: path(&hooked(t, config).await) }
    }

    async fn call(&self, t: &TestService, headers: &[(&str, &str)], raw: &str) -> Answer {
        let headers: Vec<_> = [JSON].iter().chain(headers).copied().collect();
        t.send("POST", &self.path, &headers, raw.to_owned()).await
    }

    /// A correctly signed call with this delivery id.
    async fn signed(&self, t: &TestService, time: i64, delivery: Option<&str>, raw: &str) -> Answer {
        let (time, signature) = (time.to_string(), sign(&format!("{time}.{raw}")));
        let mut headers = vec![("x-time", time.as_str()), ("x-signature", &signature)];
        headers.extend(delivery.map(|id| ("idempotency-key", id)));
        self.call(t, &headers, raw).await
    }
}

fn now() -> i64 {
    kernel::SystemClock::new().now().timestamp()
}

#[tokio::test]
async fn only_calls_with_a_valid_signature_of_the_raw_body_are_accepted() {
    let t = TestService::start().await;
    let hook = Hook::create(&t).await;
    let (time, raw) = (now().to_string(), "{\"a\":  1}");
    let good = sign(&format!("{time}.{raw}"));
    let other = (now() - 1).to_string();
    let bare = sign(raw);
    for headers in [
        &[][..],
        &[("x-signature", good.as_str())],
        &[("x-time", time.as_str()), ("x-signature", "")],
        &[("x-time", &time), ("x-signature", "sha256=zz")],
        &[("x-time", &time), ("x-signature", &good[..62])],
        &[("x-time", &time), ("x-signature", &bare)],
        &[("x-time", &other), ("x-signature", &good)],
        &[("x-time", &time), ("x-signature", &good), ("x-signature", &good)],
    ] {
        let refused = hook.call(&t, headers, raw).await;
        let code = if headers.len() == 1 { "401 webhook.stale" } else { "401 webhook.signature_invalid" };
        assert_eq!(refusal(&refused), code, "{headers:?}");
        assert!(!refused.text().contains(&good), "{}", refused.text());
    }
    // Different white space means different bytes.
    let headers = [("x-time", time.as_str()), ("x-signature", &good)];
    let reformatted = hook.call(&t, &headers, "{\"a\": 1}").await;
    assert_eq!(refusal(&reformatted), "401 webhook.signature_invalid");
    for away in [-400, 400] {
        assert_eq!(refusal(&hook.signed(&t, now() + away, None, raw).await), "401 webhook.stale");
    }
    t.assert_no_rows("runs").await;
    let audited = "SELECT count(*)::text FROM audit_log WHERE action = 'auth.failed'";
    assert_eq!(t.scalar(audited).await, "8");
    let prefixed = format!("sha256={}", good.to_uppercase());
    let headers = [("x-time", time.as_str()), ("x-signature", &prefixed)];
    assert_eq!(hook.call(&t, &headers, raw).await.status, 202);
    // After too many guesses, calls to this webhook are not checked any more, valid ones included; other webhooks still
    // work.
    let mut refusals = Vec::new();
    for _ in 0..3 {
        refusals.push(refusal(&hook.call(&t, &[("x-time", &time), ("x-signature", &bare)], raw).await));
    }
    assert_eq!(refusals[..2], ["401 webhook.signature_invalid"; 2]);
    assert_eq!(refusals[2], "429 auth.rate_limited");
    assert_eq!(refusal(&hook.signed(&t, now(), Some("d"), raw).await), "429 auth.rate_limited");
    assert_eq!(Hook::create(&t).await.signed(&t, now(), None, raw).await.status, 202);
    done(&t, "2").await;
}

#[tokio::test]
async fn a_signed_call_is_accepted_once_across_instances_and_restarts() {
    let mut t = TestService::start().await;
    let dsn = t.variables()["SERVICE_POSTGRES_DSN"].clone();
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", &dsn).start().await;
    let hook = Hook::create(&t).await;
    let at = now();
    let calls = (0..8).map(|n| hook.signed(if n % 2 == 0 { &t } else { &other }, at, None, "{}"));
    let mut refusals: Vec<_> = futures_util::future::join_all(calls).await.iter().map(refusal).collect();
    refusals.sort();
    assert_eq!(refusals.remove(0), "202 ");
    assert_eq!(refusals, ["401 webhook.replayed"; 7]);
    // With a delivery id that it did not have before, it is still a replay.
    assert_eq!(refusal(&hook.signed(&other, at, Some("d-1"), "{}").await), "401 webhook.replayed");
    t.execute(
        "INSERT INTO webhook_replays SELECT workflow_id, '\\x00', 'old', '2026-01-01' FROM webhook_replays",
    )
    .await;
    t.stop().await;
    t.start_again().await;
    let old = "SELECT count(*)::text FROM webhook_replays WHERE key = 'old'";
    t.until_scalar("expired deliveries are deleted", old, "0").await;
    assert_eq!(refusal(&hook.signed(&t, at, None, "{}").await), "401 webhook.replayed");
    assert_eq!(refusal(&hook.signed(&t, at - 1, None, "{}").await), "202 ");
    done(&t, "2").await;
    assert_eq!(t.scalar("SELECT count(*)::text FROM runs").await, "2");
}

#[tokio::test]
async fn a_repeated_delivery_returns_its_run() {
    let t = TestService::start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).start().await;
    let hook = Hook::create(&t).await;
    let at = now();
    let calls =
        (0..8).map(|n| hook.signed(if n % 2 == 0 { &t } else { &other }, at - n % 3, Some("d-1"), "{}"));
    let answers = futures_util::future::join_all(calls).await;
    for answer in &answers {
        assert_eq!((answer.status, answer.value()), (202, answers[0].value()));
    }
    let replayed = |answer: &&Answer| answer.header("idempotency-replayed") == Some("true");
    assert_eq!(answers.iter().filter(replayed).count(), 7);
    let otherwise = hook.signed(&t, at, Some("d-1"), "{\"a\": 1}").await;
    assert_eq!(refusal(&otherwise), "422 idempotency.key_reused");
    let stolen = hook.signed(&t, at, Some("d-2"), "{}").await;
    assert_eq!(refusal(&stolen), "401 webhook.replayed");
    // GitHub's form: no timestamp, and a separate header for the delivery.
    let github = json!({"hmac_header": "X-Hub-Signature-256", "hmac_secret": SECRET,
                        "delivery_id_header": "X-GitHub-Delivery"});
    let github = hooked(&t, github).await;
    let (signature, raw) = (format!("sha256={}", sign("{\"zen\": 1}")), "{\"zen\": 1}");
    let mut runs = Vec::new();
    for delivery in ["g-1", "g-1", "g-2"] {
        let headers = [JSON, ("x-hub-signature-256", &signature), ("x-github-delivery", delivery)];
        let answer = t.send("POST", &path(&github), &headers, raw).await.expect(202);
        runs.push(answer.value()["run_id"].clone());
    }
    assert!(runs[0] == runs[1] && runs[1] != runs[2], "{runs:?}");
    done(&t, "3").await;
}

#[tokio::test]
async fn a_webhook_accepts_any_body() {
    let t = TestService::start().await;
    let workflow = hooked(&t, json!({"allow_unsigned": true})).await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (headers, raw, body, text) in [
        (&[][..], &b""[..], Value::Null, json!("")),
        (&[JSON], b" ", Value::Null, json!(" ")),
        (
            &[("content-type", "application/cloudevents+json; charset=utf-8")],
            b"[1]",
            json!([1]),
            json!("[1]"),
        ),
        (&[form], b"a=1&a=2&b=%20", json!({"a": ["1", "2"], "b": " "}), json!("a=1&a=2&b=%20")),
        // `curl -d '{"a": 1}'`
        (&[form], b"{\"a\": 1}", json!({"a": 1}), json!("{\"a\": 1}")),
        (&[("content-type", "text/plain")], b"{\"a\": 1}", Value::Null, json!("{\"a\": 1}")),
        (&[("content-type", "application/octet-stream")], b"\xff\x00", Value::Null, json!("/wA=")),
    ] {
        let run = t.send("POST", &path(&workflow), headers, raw.to_vec()).await.expect(202).member("run_id");
        let inputs = t.scalar(&format!("SELECT inputs FROM runs WHERE id = '{run}'")).await;
        let inputs: Value = serde_json::from_str(&inputs).unwrap();
        assert_eq!((&inputs["body"], &inputs["raw"]), (&body, &text), "{headers:?}");
    }
    let broken = t.send("POST", &path(&workflow), &[JSON], "{\"a\":").await;
    assert_eq!(refusal(&broken), "400 request.invalid_json");
    t.send("POST", &path(&workflow), &[JSON, ("content-encoding", "gzip")], "x").await.expect(415);
    done(&t, "7").await;
}

#[tokio::test]
async fn run_errors_are_shown_only_to_authenticated_callers() {
    let t = TestService::start().await;
    let mut picky = graphs::chain(&[json!({"name": "t", "type": "template", "template": "x"})], None);
    picky["inputs"] = json!({"type": "object", "properties": {"body": {"type": "object"}}});
    let picky = t.workflow().graph(picky).create().await;
    let bare = t.workflow().without_version().create().await;
    let token = ("x-token", SECRET);
    for (workflow, code) in [(&picky, "422 run.inputs_invalid"), (&bare, "409 workflow.no_version")] {
        let config = json!({"shared_secret_header": "X-Token", "shared_secret": SECRET});
        assert_eq!(configure(&t, workflow, config).await.status, 200);
        let unauthenticated = t.send("POST", &path(workflow), &[JSON], "[]").await;
        assert_eq!(refusal(&unauthenticated), "401 webhook.secret_invalid");
        assert_eq!(refusal(&t.send("POST", &path(workflow), &[JSON, token], "[]").await), code);
    }
    assert_eq!(t.send("POST", &path(&picky), &[JSON, token], "{}").await.status, 202);
    done(&t, "1").await;
    // After the deletion, the response is the same as if it had never existed.
    let config = format!("{}/config", path(&picky));
    assert_eq!(t.send("DELETE", &config, &[], "").await.status, 204);
    assert_eq!(refusal(&t.send("DELETE", &config, &[], "").await), "404 trigger.not_found");
    assert_eq!(refusal(&t.send("POST", &path(&picky), &[token], "{}").await), "404 trigger.not_found");
    assert_eq!(t.send("DELETE", &bare.path(""), &[], "").await.status, 200);
    assert_eq!(refusal(&t.send("POST", &path(&bare), &[token], "{}").await), "404 trigger.not_found");
    let audited = "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log WHERE action LIKE 'trigger%'";
    assert_eq!(t.scalar(audited).await, "trigger.webhook_set trigger.webhook_set trigger.webhook_removed");
}

#[tokio::test]
async fn a_slack_url_verification_is_answered_without_a_run() {
    let t = TestService::start().await;
    let workflow = hooked(&t, json!({"signature_scheme": "slack", "hmac_secret": SECRET})).await;
    let time = kernel::SystemClock::new().now().timestamp().to_string();
    let raw = r#"{"type": "url_verification", "challenge": "c1"}"#;
    let signature = format!("v0={}", sign(&format!("v0:{time}:{raw}")));
    let headers = [JSON, ("x-slack-request-timestamp", time.as_str()), ("x-slack-signature", &signature)];
    let answer = t.send("POST", &path(&workflow), &headers, raw).await;
    assert_eq!((answer.status, answer.value()), (200, json!({"challenge": "c1"})));
    assert_eq!(t.send("POST", &path(&workflow), &[JSON], raw).await.status, 401);
    t.assert_no_rows("runs").await;
}

#[tokio::test]
async fn calls_are_rate_limited() {
    let t = TestService::with_manual_clock().await;
    let config = json!({"allow_unsigned": true, "rate_limit": {"limit": 2, "interval_seconds": 60}});
    let workflow = hooked(&t, config).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(t.send("POST", &path(&workflow), &[], "").await);
    }
    assert_eq!(seen.iter().map(|answer| answer.status).collect::<Vec<_>>(), [202, 202, 429]);
    assert_eq!(seen[2].header("retry-after"), Some("30"), "{}", seen[2].text());
    t.advance(Duration::from_secs(30));
    assert_eq!(t.send("POST", &path(&workflow), &[], "").await.status, 202);
    done(&t, "3").await;
}
