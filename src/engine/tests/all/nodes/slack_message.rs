//! `slack_message`: by webhook, as a bot, and Slack's errors.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::Endpoint;
use crate::ports::{alone, plan};
use crate::world::{World, refused};

const TOKEN: &str = "xoxb-canary-0123456789";

fn node(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "slack_message", "text": "hi {{ inputs.name }}"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world(endpoint: &Endpoint) -> World {
    let world = World::new().allowing(endpoint.at).inputs(json!({"name": "[[bot]]"}));
    let webhook = format!("http://{}/services/T0/B0/canary-webhook", endpoint.at);
    world.credential("bot", TOKEN).credential("webhook", &webhook)
}

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn a_message_is_sent_by_webhook_or_bot() {
    let endpoint = Endpoint::answering(200, "", "ok").await;
    let by_webhook =
        plan(&alone(&node(json!({"webhook_url": "[[webhook]]", "blocks": [{"type": "divider"}]}))));
    let world_of = world(&endpoint);
    assert_eq!(world_of.run_outside(&by_webhook).await, Ok(json!({"ok": true})));
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with("POST /services/T0/B0/canary-webhook HTTP/1.1"), "{sent}");
    assert!(sent.ends_with(r#"{"text":"hi [[bot]]","blocks":[{"type":"divider"}]}"#), "{sent}");
    assert!(sent.contains("idempotency-key: run_1-tell-1") && !sent.contains(TOKEN), "{sent}");
    // Blocks alone are enough.
    let blocks = node(json!({"webhook_url": "[[webhook]]", "text": "", "blocks": [{"type": "divider"}]}));
    assert_eq!(world_of.run_outside(&plan(&alone(&blocks))).await, Ok(json!({"ok": true})));
    let sent = endpoint.requests.lock()[1].clone();
    assert!(sent.ends_with(r#"{"blocks":[{"type":"divider"}]}"#), "{sent}");

    let answer_body = format!(r#"{{"ok": true, "channel": "C1", "ts": "1.2", "echo": "{TOKEN}"}}"#);
    let endpoint = Endpoint::answering(200, JSON, &answer_body).await;
    let bot = json!({"token": "[[bot]]", "channel": "#{{ inputs.name }}", "thread_ts": "1.1",
                     "base_url": format!("http://{}/api/", endpoint.at)});
    let world_of = world(&endpoint);
    let output = world_of.run_outside(&plan(&alone(&node(bot)))).await;
    assert_eq!(output, Ok(json!({"ok": true, "channel": "C1", "ts": "1.2"})));
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with("POST /api/chat.postMessage HTTP/1.1"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {TOKEN}")), "{sent}");
    assert!(sent.contains(r##""channel":"#[[bot]]""##) && sent.contains(r#""thread_ts":"1.1""#), "{sent}");
    assert!(!format!("{:?}", world_of.journal.rows.lock()).contains("canary"));
}

#[tokio::test]
async fn rejections_have_a_reason_and_a_retry_hint() {
    let retry = json!({"max_attempts": 2, "initial_delay_seconds": 0});
    for (status, answer_body, message, attempts) in [
        (
            200,
            format!(r#"{{"ok": false, "error": "not_in_channel {TOKEN}"}}"#),
            "Slack rejected the message: not_in_channel [redacted]",
            1,
        ),
        (
            200,
            r#"{"ok": false, "error": "ratelimited"}"#.to_owned(),
            "Slack rejected the message: ratelimited",
            2,
        ),
        (200, "<html>".to_owned(), "did not respond like Slack", 1),
        (404, format!("no_service {TOKEN}"), "answered 404: no_service [redacted]", 1),
        (503, "later".to_owned(), "answered 503: later", 2),
    ] {
        let endpoint = Endpoint::answering(status, JSON, &answer_body).await;
        let bot = json!({"token": "[[bot]]", "channel": "C1", "retry": retry, "base_url": format!("http://{}", endpoint.at)});
        let error = world(&endpoint).run_outside(&plan(&alone(&node(bot)))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NodeFailed);
        assert!(error.message.ends_with(message), "{error}");
        assert_eq!(endpoint.requests.lock().len(), attempts, "{message}");
    }
    let closed = node(json!({"webhook_url": "http://127.0.0.1:9/x"}));
    let error =
        World::new().inputs(json!({"name": ""})).run_outside(&plan(&alone(&closed))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused);
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({}), vec!["/webhook_url required"]),
        (json!({"webhook_url": "[[x]]", "token": "y"}), vec!["/webhook_url required"]),
        (json!({"token": "[[a]]"}), vec!["/channel required"]),
        (json!({"webhook_url": "[[a]]", "channel": "c"}), vec!["/channel required"]),
        (json!({"webhook_url": "[[a]]", "text": 1}), vec!["/text type"]),
        (json!({"token": "[[a]]", "channel": "[[a]]"}), vec![]),
    ] {
        assert_eq!(refused(&node(more.clone())), problems, "{more}");
    }
}
