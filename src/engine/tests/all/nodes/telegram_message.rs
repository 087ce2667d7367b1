//! `telegram_message`: requests, and Telegram's errors.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::Endpoint;
use crate::ports::{alone, plan};
use crate::world::{World, refused};

const TOKEN: &str = "123456:canary-AAbbCC_0123456789";
const JSON: &str = "Content-Type: application/json\r\n";

fn node(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "telegram_message", "token": "[[bot]]", "chat": "{{ inputs.chat }}",
                          "text": "hi {{ inputs.name }}"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world(endpoint: &Arc<Endpoint>) -> World {
    let world = World::new().allowing(endpoint.at).credential("bot", TOKEN);
    world.inputs(json!({"name": "[[bot]]", "chat": "@news"}))
}

#[tokio::test]
async fn a_message_is_sent_to_a_chat() {
    let answer_body =
        format!(r#"{{"ok":true,"result":{{"message_id":7,"chat":{{"id":-100}},"text":"{TOKEN}"}}}}"#);
    let endpoint = Endpoint::answering(200, JSON, &answer_body).await;
    let more = json!({"base_url": format!("http://{}/", endpoint.at), "parse_mode": "HTML", "silent": true, "reply_to": "5"});
    let world_of = world(&endpoint);
    let done = world_of.run_outside(&plan(&alone(&node(more)))).await;
    assert_eq!(done, Ok(json!({"ok": true, "message_id": 7, "chat": -100})));
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with(&format!("POST /bot{TOKEN}/sendMessage HTTP/1.1")), "{sent}");
    let (_, body) = sent.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        body,
        json!({"chat_id": "@news", "text": "hi [[bot]]", "parse_mode": "HTML", "disable_notification": true,
               "reply_parameters": {"message_id": 5}})
    );
    assert!(!format!("{:?}", world_of.journal.rows.lock()).contains("canary"));
}

#[tokio::test]
async fn rejections_have_a_reason_and_a_retry_delay() {
    let retry = json!({"max_attempts": 2, "initial_delay_seconds": 0});
    for (status, answer_body, message, attempts) in [
        (
            400,
            json!({"ok": false, "description": format!("Bad Request: {TOKEN}")}),
            "message: Bad Request: [redacted]",
            1,
        ),
        (
            429,
            json!({"ok": false, "description": "Too Many Requests", "parameters": {"retry_after": 0}}),
            "Too Many Requests",
            2,
        ),
        (502, json!({"ok": false}), "no reason", 2),
        (200, json!("<html>"), "no reason", 1),
    ] {
        let endpoint = Endpoint::answering(status, JSON, &answer_body.to_string()).await;
        let more = json!({"base_url": format!("http://{}", endpoint.at), "retry": retry});
        let error = world(&endpoint).run_outside(&plan(&alone(&node(more)))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NodeFailed);
        assert!(error.message.ends_with(message), "{error}");
        assert_eq!(endpoint.requests.lock().len(), attempts, "{message}");
    }
    let endpoint = Endpoint::answering(502, "", "<html>").await;
    let more = json!({"base_url": format!("http://{}", endpoint.at), "retry": retry});
    let error = world(&endpoint).run_outside(&plan(&alone(&node(more)))).await.unwrap_err();
    assert!(error.message.ends_with("did not respond like Telegram"), "{error}");
    assert_eq!(endpoint.requests.lock().len(), 2, "a busy gateway may recover soon");
    // A template without a result must not send the message elsewhere.
    for nothing in [
        json!({"base_url": "{{ inputs.x | default(none) }}"}),
        json!({"chat": "{{ inputs.x | default(none) }}"}),
    ] {
        let error = world(&endpoint).run_outside(&plan(&alone(&node(nothing)))).await.unwrap_err();
        assert!(error.message.contains("its template returned null"), "{error}");
    }
    for nothing in
        [json!({"base_url": "{{ ' ' }}"}), json!({"chat": "{{ [] }}"}), json!({"base_url": "{{ {} }}"})]
    {
        let error = world(&endpoint).run_outside(&plan(&alone(&node(nothing)))).await.unwrap_err();
        assert!(
            error.message.contains("is empty") || error.message.contains("its template returned"),
            "{error}"
        );
    }
    // A token must not change the path on the server.
    let odd = world(&endpoint).credential("bot", "../../x?y");
    let more = json!({"base_url": format!("http://{}", endpoint.at)});
    let error = odd.run_outside(&plan(&alone(&node(more)))).await.unwrap_err();
    assert!(error.message.contains("'token'") && !error.message.contains("x?y"), "{error}");
    assert_eq!(endpoint.requests.lock().len(), 2);
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({}), vec![]),
        (json!({"chat": -100, "reply_to": 4}), vec![]),
        (json!({"chat": 1.5}), vec!["/chat type"]),
        (json!({"token": "123:plain"}), vec!["/token secret"]),
        (json!({"parse_mode": "Markdown"}), vec!["/parse_mode choice"]),
        (json!({"silent": "yes", "chanel": 1}), vec!["/chanel unknown_field", "/silent type"]),
    ] {
        assert_eq!(refused(&node(more.clone())), problems, "{more}");
    }
}
