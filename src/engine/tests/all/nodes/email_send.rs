//! `email_send`: queued mails, and invalid ones.

use engine::outbox::{Delivery, Mail};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::{World, refused};

fn node(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "email_send", "to": "{{ inputs.to }}", "subject": "Order {{ inputs.n }}",
                          "text": "Hello"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

async fn queued(node: &Value, inputs: Value) -> (Vec<Delivery>, Result<Value, engine::RunError>) {
    let world = World::new().inputs(inputs);
    let output = world.run(&plan(&alone(node))).await;
    let deliveries = world.journal.rows.lock().iter().filter_map(|row| row.delivery.clone()).collect();
    (deliveries, output)
}

#[tokio::test]
async fn a_mail_is_queued_with_its_row() {
    let fields = json!({"cc": ["b@example.com", "b@example.com"], "reply_to": "c@example.com", "html": "<p>Hello</p>"});
    let inputs = json!({"to": ["a@example.com", " ö@exämple.com"], "n": 7});
    let (deliveries, output) = queued(&node(fields.clone()), inputs.clone()).await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(
        output.unwrap(),
        json!({"delivery_id": deliveries[0].id, "status": "queued", "recipients": 3})
    );
    let mail = Mail::from_request(&deliveries[0].request).unwrap();
    assert_eq!(
        (mail.to, mail.cc),
        (vec!["a@example.com".to_owned(), "ö@exämple.com".to_owned()], vec!["b@example.com".to_owned()])
    );
    assert_eq!((mail.subject.as_str(), mail.text.as_str()), ("Order 7", "Hello"));
    assert_eq!(queued(&node(fields), inputs).await.0, deliveries, "the delivery is deterministic");
}

#[tokio::test]
async fn an_invalid_mail_is_not_queued() {
    let many: Vec<String> = (0..51).map(|n| format!("a{n}@example.com")).collect();
    for (inputs, more, says) in [
        (json!({"to": "a@example.com\r\nBcc: eve@example.com", "n": 1}), json!({}), "is not an address"),
        (json!({"to": "a@example.com, b@example.com", "n": 1}), json!({}), "is not an address"),
        (json!({"to": "Ada <a@example.com>", "n": 1}), json!({}), "is not an address"),
        (json!({"to": [], "n": 1}), json!({}), "0 recipients"),
        (json!({"to": many, "n": 1}), json!({}), "51 recipients"),
        (json!({"to": "a@b.de", "n": "1\r\nBcc: eve@example.com"}), json!({}), "'subject' must be one line"),
        (json!({"to": "a@b.de", "n": "x".repeat(200)}), json!({}), "'subject' must be one line"),
        (
            json!({"to": "a@b.de", "n": 1, "r": "x\n@b.de"}),
            json!({"reply_to": "{{ inputs.r }}"}),
            "'reply_to'",
        ),
        (
            json!({"to": "a@b.de", "n": 1, "t": "x".repeat(262_145)}),
            json!({"text": "{{ inputs.t }}"}),
            "'text' must have",
        ),
        (json!({"to": "a@b.de", "n": 1}), json!({"html": "a\u{0}"}), "'html' must have"),
    ] {
        let (deliveries, output) = queued(&node(more), inputs).await;
        let error = output.unwrap_err();
        assert_eq!((error.code, deliveries.len()), (ErrorCode::NodeFailed, 0), "{error}");
        assert!(error.message.contains(says) && !error.message.contains('\r'), "{error}");
    }
}

#[test]
fn fields_are_checked() {
    let bare = json!({"name": "n", "type": "email_send"});
    assert_eq!(refused(&bare), ["/subject required", "/text required", "/to required"]);
    assert_eq!(refused(&node(json!({"to": 5}))), ["/to type"]);
    assert_eq!(refused(&node(json!({"cc": [1]}))), ["/cc type"]);
}
