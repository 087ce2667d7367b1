//! Addresses that begin a run when they are called.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, TestService, Workflow, graphs, until};
use kernel::Clock;
use ring::hmac;
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");
const SECRET: &str = "a-secret-of-the-webhook";

fn path(workflow: &Workflow) -> String {
    format!("/api/workflows/{}/triggers/webhook", workflow.id)
}

async fn configure(t: &TestService, workflow: &Workflow, config: Value) -> Answer {
    t.send("PUT", &format!("{}/config", path(workflow)), &[JSON], config.to_string()).await
}

async fn hooked(t: &TestService, config: Value) -> Workflow {
    let graph =
        graphs::chain(&[json!({"name": "t", "type": "template", "template": "{{ inputs.method }}"})], None);
    let workflow = t.workflow().graph(graph).create().await;
    let answer = configure(t, &workflow, config).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
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
async fn it_is_configured_and_keeps_its_secrets() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
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
    // Shown, and put back as it is shown: the secret is the same.
    let shown = t.get(&format!("{}/config", path(&workflow))).await.value();
    let mut again = shown.as_object().unwrap().clone();
    again.retain(|name, value| !value.is_null() && !name.ends_with("_at"));
    let again = configure(&t, &workflow, Value::Object(again)).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(t.send("POST", &path(&workflow), &[("x-token", SECRET)], "").await.status, 202);
    let stored = t.scalar("SELECT encode(secrets, 'escape') || config::text FROM webhook_triggers").await;
    assert!(!stored.contains(SECRET));
    done(&t, "1").await;
}

#[tokio::test]
async fn a_call_begins_a_run_with_what_it_brought() {
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
    let large = t.send("POST", &path(&workflow), &[("x-token", SECRET)], vec![b'x'; (1 << 20) + 1]).await;
    assert_eq!(large.status, 413);
}

#[tokio::test]
async fn a_signed_call_is_taken_once_by_all_instances() {
    let t = TestService::start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).start().await;
    let config =
        json!({"hmac_header": "X-Signature", "hmac_secret": SECRET, "hmac_timestamp_header": "X-Time"});
    let workflow = hooked(&t, config).await;
    let now = kernel::SystemClock::new().now().timestamp();
    let (time, raw) = (now.to_string(), "{\"a\":  1}");
    let signature = format!("sha256={}", sign(&format!("{time}.{raw}")));
    let call = async |t: &TestService, time: &str, signature: &str, raw: &str| {
        refusal(
            &t.send(
                "POST",
                &path(&workflow),
                &[JSON, ("x-time", time), ("x-signature", signature)],
                raw.to_owned(),
            )
            .await,
        )
    };
    assert_eq!(call(&t, &time, &signature, "{\"a\": 1}").await, "401 webhook.signature_invalid");
    assert_eq!(call(&t, &time, &signature, raw).await, "202 ");
    assert_eq!(call(&other, &time, &signature, raw).await, "401 webhook.replayed");
    // The same in other letters is the same.
    assert_eq!(call(&other, &time, &signature[7..].to_uppercase(), raw).await, "401 webhook.replayed");
    let old = (now - 400).to_string();
    assert_eq!(call(&t, &old, &sign(&format!("{old}.{raw}")), raw).await, "401 webhook.stale");
    done(&t, "1").await;
}

#[tokio::test]
async fn slack_is_answered_what_it_asks_and_nothing_runs() {
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
async fn no_more_calls_are_taken_than_may_be() {
    let t = TestService::with_manual_clock().await;
    let config = json!({"allow_unsigned": true, "rate_limit": {"limit": 2, "interval_seconds": 60}});
    let workflow = hooked(&t, config).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(t.while_time_passes(t.send("POST", &path(&workflow), &[], "")).await);
    }
    assert_eq!(seen.iter().map(|answer| answer.status).collect::<Vec<_>>(), [202, 202, 429]);
    assert!(["29", "30"].contains(&seen[2].header("retry-after").unwrap()), "{}", seen[2].text());
    t.advance(Duration::from_secs(30));
    assert_eq!(t.while_time_passes(t.send("POST", &path(&workflow), &[], "")).await.status, 202);
    done(&t, "3").await;
}
