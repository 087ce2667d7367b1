//! `webhook_send`: queued events, and their delivery.

use engine::outbox::{Delivery, Undelivered, deliver};
use kernel::SystemClock;
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::ports::{alone, plan};
use crate::world::{World, outbound, refused};

const SECRET: &str = "canary-of-the-hook-0123456789";

fn node(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "webhook_send", "url": "https://example.org/hook"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

/// Returns the delivery that this node's run leaves.
async fn queued(node: &Value) -> (Delivery, Value) {
    let world = World::new().inputs(json!({"order": "[[hook]]"}));
    let output = world.run(&plan(&alone(node))).await.unwrap();
    let mut deliveries: Vec<Delivery> =
        world.journal.rows.lock().iter().filter_map(|row| row.delivery.clone()).collect();
    assert_eq!(deliveries.len(), 1);
    (deliveries.remove(0), output)
}

async fn sent(endpoint: &Endpoint, delivery: &Delivery, world: &World) -> Result<u16, Undelivered> {
    let world = World { allow: world.allow.clone(), credentials: world.credentials.clone(), ..World::new() };
    let world = world.allowing(endpoint.at);
    let (client, clock) = (outbound(&world.allow), SystemClock::new());
    deliver(delivery.id, delivery.request.clone(), &world.credentials, &client, &clock).await
}

#[tokio::test]
async fn a_webhook_is_queued_with_its_row_and_signed_when_sent() {
    let endpoint = Endpoint::answering(202, "", "").await;
    let fields = json!({"url": format!("http://{}/hook", endpoint.at), "secret": "[[hook]]",
                        "headers": {"X-Kind": "order"}, "json": {"order": "{{ inputs.order }}", "key": "[[hook]]"}});
    let (delivery, output) = queued(&node(fields.clone())).await;
    assert_eq!(output, json!({"delivery_id": delivery.id, "status": "queued"}));
    assert_eq!(queued(&node(fields)).await.0, delivery, "the delivery is deterministic");
    assert!(!delivery.request.to_string().contains("canary"));
    let world = World::new().credential("hook", SECRET);
    assert_eq!(sent(&endpoint, &delivery, &world).await, Ok(202));
    let request = endpoint.requests.lock()[0].clone();
    let header = |name: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name}: {request}")).to_owned()
    };
    let body = request.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(body, format!(r#"{{"order":"[[hook]]","key":"{SECRET}"}}"#));
    for name in ["x-delivery-id", "idempotency-key"] {
        assert_eq!(header(name), delivery.id.to_string());
    }
    assert_eq!((header("x-kind").as_str(), header("content-type").as_str()), ("order", "application/json"));
    let signed = format!("{}.{body}", header("x-timestamp"));
    let signature = hex::decode(header("x-signature").strip_prefix("sha256=").unwrap()).unwrap();
    assert!(verify(&Key::new(HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes(), &signature).is_ok());
}

#[tokio::test]
async fn a_rejection_is_marked_retryable_or_not_and_has_no_secret() {
    let fields = json!({"url": "http://127.0.0.1:9/", "secret": "[[hook]]", "body": "x"});
    let (mut delivery, _) = queued(&node(fields)).await;
    let world = World::new().credential("hook", SECRET);
    for (status, permanent) in [(400, true), (410, true), (429, false), (500, false)] {
        let endpoint = Endpoint::answering(status, "Retry-After: 7\r\n", &format!("no {SECRET}")).await;
        delivery.request["fields"]["url"] = json!(format!("http://{}/", endpoint.at));
        let refused = sent(&endpoint, &delivery, &world).await.unwrap_err();
        assert_eq!(refused.permanent, permanent, "{status}");
        assert_eq!(refused.message, format!("{} answered {status}: no [redacted]", endpoint.at));
        assert_eq!(refused.retry_after.map(|wait| wait.as_secs()), (!permanent).then_some(7));
        let missing = sent(&endpoint, &delivery, &World::new()).await.unwrap_err();
        assert!(!missing.permanent, "it may be retried");
    }
    delivery.request["fields"]["url"] = json!("http://127.0.0.1:9/");
    let elsewhere = Endpoint::answering(200, "", "").await;
    let refused = sent(&elsewhere, &delivery, &world).await.unwrap_err();
    assert!(refused.permanent && refused.message.contains("may not be called"), "{refused:?}");
}

#[tokio::test]
async fn a_failed_step_sends_nothing() {
    for more in [json!({"url": "{{ 'file:///x' }}", "body": ""}), json!({"body": "{{ inputs.none }}"})] {
        let world = World::new();
        world.run(&plan(&alone(&node(more)))).await.unwrap_err();
        assert!(world.journal.rows.lock().iter().all(|row| row.delivery.is_none()));
    }
    assert_eq!(refused(&node(json!({}))), ["/json body"]);
    assert_eq!(refused(&node(json!({"json": 1, "body": "x"}))), ["/json body"]);
    assert_eq!(refused(&node(json!({"json": 1, "headers": {"Host": "x"}}))), ["/headers/Host header"]);
}
