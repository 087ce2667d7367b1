//! `email_send` over HTTP and SMTP: sent once its step is done, and again only where the mail server has not taken it.

use integration_tests::{AnswerExt, MailServer, TestService, graphs, until};
use serde_json::{Value, json};

async fn run(t: &TestService, graph: Value, inputs: Value) -> Value {
    let workflow = t.workflow().graph(graph).create().await;
    let path = format!("/api/workflows/{}/runs?wait=30", workflow.id);
    t.post(&path, &json!({"inputs": inputs}).to_string()).await.value()
}

fn mail(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "email_send", "to": ["{{ inputs.to }}"], "subject": "Größe {{ inputs.n }}",
                          "text": "Hello\n.\nworld"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn a_mail_is_sent_when_its_step_is_done_and_not_when_it_fails() {
    let server = MailServer::start().await;
    let t = TestService::builder()
        .set("SERVICE_SMTP_URL", server.url())
        .set("SERVICE_MAIL_FROM", "Callboard <service@example.com>")
        .start()
        .await;
    // Refused once, so that it is sent again.
    server.refuse(Some("451 later"));
    let graph = graphs::chain(
        &[mail(json!({"cc": "b@example.com", "html": "<p>Hello</p>"}))],
        Some(json!("{{ results.tell }}")),
    );
    let done = run(&t, graph.clone(), json!({"to": "a@example.com", "n": 1})).await;
    assert_eq!(
        (&done["output"]["status"], &done["output"]["recipients"]),
        (&json!("queued"), &json!(2)),
        "{done}"
    );
    until("it was tried", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE error IS NOT NULL").await == "1"
    })
    .await;
    assert_eq!(t.scalar("SELECT error FROM outbox").await, "the mail server answered 451");
    server.refuse(None);
    let sent = server.mail(1).await;
    assert_eq!(
        (sent.from.as_str(), sent.to.clone()),
        ("service@example.com", vec!["a@example.com".into(), "b@example.com".into()])
    );
    let id = done["output"]["delivery_id"].as_str().unwrap();
    assert_eq!(sent.header("message-id"), Some(format!("<{id}@example.com>").as_str()));
    assert!(sent.header("subject").unwrap().starts_with("=?utf-8?"), "{}", sent.data);
    assert!(sent.data.contains("text/html") && sent.data.contains("<p>Hello</p>"), "{}", sent.data);
    until("it is over", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE next_attempt_at IS NULL").await == "1"
    })
    .await;
    let injected = run(&t, graph, json!({"to": "a@example.com\r\nBcc: eve@example.com", "n": 1})).await;
    assert_eq!(injected["error"]["code"], "node.failed");
    // For good: nobody is asked twice.
    server.refuse(Some("550 no such mailbox"));
    let graph = graphs::chain(&[mail(json!({}))], None);
    run(&t, graph, json!({"to": "gone@example.com", "n": 2})).await;
    until("it is given up", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE next_attempt_at IS NULL").await == "2"
    })
    .await;
    assert_eq!(server.mails().len(), 1);
}
