//! `email_send` over HTTP and SMTP: sent after its step is done, and again only if the mail server has not accepted it.

use std::time::Duration;

use integration_tests::{AnswerExt, Builder, MailServer, TestService, graphs, until};
use kernel::Clock;
use serde_json::{Value, json};

/// The clock step; an attempt's timeouts are minutes long.
const STEP: Duration = Duration::from_millis(250);

/// A service that sends through this mail server.
fn mailing(server: &MailServer) -> Builder {
    TestService::builder()
        .set("SERVICE_SMTP_URL", server.url())
        .set("SERVICE_MAIL_FROM", "Callboard <service@example.com>")
}

async fn run(t: &TestService, graph: Value, inputs: Value) -> Value {
    let workflow = t.workflow().graph(graph).create().await;
    t.post(&workflow.path("/runs?wait=30"), &json!({"inputs": inputs}).to_string()).await.value()
}

/// The single delivery in a run's trace.
async fn delivery(t: &TestService, run: &Value) -> Value {
    let trace = t.get(&format!("/api/runs/{}/trace", run["id"].as_str().unwrap())).await.value();
    assert_eq!(trace["deliveries"].as_array().unwrap().len(), 1, "{trace}");
    trace["deliveries"][0].clone()
}

fn mail(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "email_send", "to": ["{{ inputs.to }}"], "subject": "Größe {{ inputs.n }}",
                          "text": "Hello\n.\nworld"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn a_mail_is_sent_after_its_step_succeeds_and_not_when_it_fails() {
    let server = MailServer::start().await;
    let t = mailing(&server).start().await;
    // Rejected once, so that it is sent again.
    server.refuse(Some("421 later"));
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
    t.until_scalar("the mail was attempted", "SELECT count(*) FROM outbox WHERE error IS NOT NULL", "1")
        .await;
    let waits = delivery(&t, &done).await;
    assert_eq!(
        (&waits["id"], &waits["status"], &waits["finished_at"]),
        (&done["output"]["delivery_id"], &json!("queued"), &Value::Null)
    );
    assert!(waits["error"].as_str().unwrap().contains("the mail server answered 421"), "{waits}");
    assert!(waits["next_attempt_at"].as_str() > waits["created_at"].as_str(), "{waits}");
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
    t.until_scalar("the delivery ended", "SELECT count(*) FROM outbox WHERE next_attempt_at IS NULL", "1")
        .await;
    let sent = delivery(&t, &done).await;
    assert_eq!((&sent["status"], &sent["error"]), (&json!("sent"), &Value::Null));
    assert!(sent["attempts"].as_i64() >= Some(2), "{sent}");
    assert!(sent["finished_at"].is_string() && sent["next_attempt_at"].is_null(), "{sent}");
    let injected = run(&t, graph, json!({"to": "a@example.com\r\nBcc: eve@example.com", "n": 1})).await;
    assert_eq!(injected["error"]["code"], "node.failed");
    // A permanent rejection is not retried.
    server.refuse(Some("550 no such mailbox"));
    let graph = graphs::chain(&[mail(json!({}))], None);
    let rejected = run(&t, graph, json!({"to": "gone@example.com", "n": 2})).await;
    until("the delivery is abandoned", async || {
        t.scalar("SELECT count(*) FROM outbox WHERE next_attempt_at IS NULL").await == "2"
    })
    .await;
    assert_eq!(server.mails().len(), 1);
    let failed = delivery(&t, &rejected).await;
    assert_eq!(
        (&failed["status"], &failed["error"], &failed["attempts"]),
        (&json!("failed"), &json!("the mail server answered 550"), &json!(1))
    );
}

#[tokio::test]
async fn a_rejected_recipient_does_not_block_the_others() {
    let server = MailServer::start().await;
    server.refuse_one("gone@example.com", Some("550 no such mailbox"));
    let mut t = mailing(&server).start().await;
    let final_result = async |t: &TestService, done: &Value| -> (Value, Value) {
        until("the delivery ended", async || delivery(t, done).await["status"] != "queued").await;
        let final_result = delivery(t, done).await;
        (final_result["status"].clone(), final_result["error"].clone())
    };
    let waits = async |t: &TestService, done: &Value| -> Value {
        until("the mail was attempted", async || delivery(t, done).await["error"].is_string()).await;
        let waits = delivery(t, done).await;
        assert_eq!(waits["status"], "queued", "{waits}");
        waits["error"].clone()
    };
    let send = async |t: &TestService, to: &[&str], cc: &[&str]| -> Value {
        run(t, graphs::chain(&[mail(json!({"to": to, "cc": cc}))], None), json!({"n": 1})).await
    };
    let recipients = || server.mails().into_iter().flat_map(|mail| mail.to).collect::<Vec<_>>();

    let done = send(&t, &["a@example.com", "gone@example.com"], &["c@example.com", "a@example.com"]).await;
    let why = "2 of 3 recipients received it, but not gone@example.com (the mail server answered 550)";
    assert_eq!(final_result(&t, &done).await, (json!("failed"), json!(why)));
    assert_eq!(recipients(), ["a@example.com", "c@example.com"], "each recipient has the mail once");
    for mail in server.mails() {
        // The header shows all recipients to each of them.
        assert_eq!(mail.header("to"), Some("a@example.com, gone@example.com"), "{}", mail.data);
    }

    // A temporarily rejected recipient gets the mail later, even from the next process; the others do not get it again.
    server.refuse_one("late@example.com", Some("450 come again"));
    let done = send(&t, &["late@example.com", "gone@example.com", "a@example.com"], &[]).await;
    let why = "1 of 3 recipients received it, but not gone@example.com (the mail server answered 550), \
               late@example.com (the mail server answered 450)";
    assert_eq!(waits(&t, &done).await, why);
    t.restart().await;
    server.refuse_one("late@example.com", None);
    let why = "2 of 3 recipients received it, but not gone@example.com (the mail server answered 550)";
    assert_eq!(final_result(&t, &done).await, (json!("failed"), json!(why)));
    assert_eq!(recipients()[2..], ["a@example.com", "late@example.com"]);

    // In the end every recipient has it.
    server.refuse_one("late@example.com", Some("451 come again"));
    let done = send(&t, &["a@example.com", "late@example.com"], &[]).await;
    assert_eq!(
        waits(&t, &done).await,
        "1 of 2 recipients received it, but not late@example.com (the mail server answered 451)"
    );
    server.refuse_one("late@example.com", None);
    assert_eq!(final_result(&t, &done).await, (json!("sent"), Value::Null));
    assert_eq!(recipients()[4..], ["a@example.com", "late@example.com"]);
}

#[tokio::test]
async fn a_recipient_that_causes_a_hang_up_does_not_block_the_others() {
    let server = MailServer::start().await;
    server.refuse_one("a@example.com", Some("421 closing"));
    let t = mailing(&server).start().await;
    let to = json!(["a@example.com", "b@example.com"]);
    let done = run(&t, graphs::chain(&[mail(json!({"to": to}))], None), json!({"n": 1})).await;
    let why = "1 of 2 recipients received it, but not a@example.com (the mail server answered 421)";
    until("the other recipient has the mail", async || delivery(&t, &done).await["error"] == why).await;
    server.refuse_one("a@example.com", None);
    until("the delivery ended", async || delivery(&t, &done).await["status"] == "sent").await;
    let recipients: Vec<String> = server.mails().into_iter().flat_map(|mail| mail.to).collect();
    assert_eq!(recipients, ["b@example.com", "a@example.com"]);
}

/// Sent at most once per attempt: after a late reply, the recipients may already have the mail.
#[tokio::test]
async fn a_slow_server_gets_no_mail_twice_in_one_attempt() {
    let server = MailServer::start().await;
    let t = mailing(&server).manual_clock().start().await;
    let too_long = "the mail server did not respond in time";
    let many = format!(
        "0 of 2 recipients received it, but not a@example.com ({too_long}), b@example.com ({too_long})"
    );
    for (to, why) in
        [(json!(["a@example.com"]), too_long), (json!(["a@example.com", "b@example.com"]), &many)]
    {
        let before = server.mails().len();
        server.be_silent(true);
        let run = run(&t, graphs::chain(&[mail(json!({"to": to}))], None), json!({"n": 1}));
        let done = t.while_time_passes_in(STEP, run).await;
        // Quickly to nearly the server's timeout, and then slowly: another attempt follows soon after it.
        let started = t.clock().monotonic();
        let almost =
            until("the attempt waits", async || t.clock().monotonic() - started > Duration::from_secs(44));
        t.while_time_passes_in(STEP, almost).await;
        let tried = until("the mail was attempted", async || delivery(&t, &done).await["error"].is_string());
        t.while_time_passes_in(Duration::from_millis(10), tried).await;
        assert_eq!(
            (delivery(&t, &done).await["error"].as_str(), server.mails().len()),
            (Some(why), before + 1)
        );
        server.be_silent(false);
        let sent = until("the delivery ended", async || delivery(&t, &done).await["status"] == "sent");
        t.while_time_passes_in(STEP, sent).await;
    }
}

/// The recipients may have it, so none gets it again before the next attempt.
#[tokio::test]
async fn a_server_that_hangs_up_after_a_mail_gets_it_once_per_attempt() {
    let server = MailServer::start().await;
    server.hang_up(true);
    let t = mailing(&server).manual_clock().start().await;
    let to = json!(["a@example.com", "b@example.com"]);
    let run = run(&t, graphs::chain(&[mail(json!({"to": to}))], None), json!({"n": 1}));
    let step = Duration::from_millis(50);
    let done = t.while_time_passes_in(step, run).await;
    let twice = until("the mail was attempted twice", async || {
        let error = delivery(&t, &done).await["error"].clone();
        error
            .as_str()
            .is_some_and(|error| error.starts_with("0 of 2 recipients received it, but not a@example.com ("))
    });
    t.while_time_passes_in(step, twice).await;
    let mails = server.mails().len();
    let attempts = delivery(&t, &done).await["attempts"].as_u64().unwrap();
    assert!(u64::try_from(mails).unwrap() <= attempts, "{mails} mails in {attempts} attempts");
    server.hang_up(false);
    let sent = until("the delivery ended", async || delivery(&t, &done).await["status"] == "sent");
    t.while_time_passes_in(STEP, sent).await;
    let last: Vec<Vec<String>> = server.mails().into_iter().rev().take(2).map(|mail| mail.to).collect();
    assert!(last.contains(&vec!["a@example.com".to_owned()]), "each recipient separately: {last:?}");
    assert!(last.contains(&vec!["b@example.com".to_owned()]), "each recipient separately: {last:?}");
}

/// One recipient's failure does not discard the results of the others.
#[tokio::test]
async fn a_recipient_without_a_server_reply_does_not_block_the_others() {
    let server = MailServer::start().await;
    server.refuse_one("gone@example.com", Some("550 no such mailbox"));
    server.refuse_one("b@example.com", Some(""));
    let t = mailing(&server).manual_clock().start().await;
    let to = json!(["gone@example.com", "a@example.com", "b@example.com"]);
    let run = run(&t, graphs::chain(&[mail(json!({"to": to}))], None), json!({"n": 1}));
    let done = t.while_time_passes_in(STEP, run).await;
    let why = "1 of 3 recipients received it, but not b@example.com (the mail server did not respond in time), \
               gone@example.com (the mail server answered 550)";
    let tried =
        until("the other recipients have the mail", async || delivery(&t, &done).await["error"] == why);
    t.while_time_passes_in(STEP, tried).await;
    server.refuse_one("b@example.com", None);
    let failed = until("the delivery ended", async || delivery(&t, &done).await["status"] == "failed");
    t.while_time_passes_in(STEP, failed).await;
    let recipients: Vec<String> = server.mails().into_iter().flat_map(|mail| mail.to).collect();
    assert_eq!(recipients, ["a@example.com", "b@example.com"]);
}

#[tokio::test]
async fn a_missing_mail_server_is_reported_in_the_trace() {
    let t = TestService::start().await;
    let done = run(&t, graphs::chain(&[mail(json!({"to": "a@example.com"}))], None), json!({"n": 1})).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    until("the delivery ended", async || delivery(&t, &done).await["status"] != "queued").await;
    let result = delivery(&t, &done).await;
    assert_eq!(
        (&result["status"], &result["error"]),
        (&json!("failed"), &json!("SERVICE_SMTP_URL is not set, so no mail is sent"))
    );
}
