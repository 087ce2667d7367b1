//! Exports whose client does not read them.

use integration_tests::{AnswerExt, Builder, RawAnswer, TestService, Workflow, chat, until, within};
use serde_json::Value;

use super::{Person, add_items, is_erased};

/// More than a connection's sockets buffer.
const LARGE: usize = 16 << 20;

/// A single instance with two connections: one for writes, the other for all reads.
fn small() -> Builder {
    TestService::builder().alone().set("SERVICE_DATABASE_POOL", "2")
}

/// A browser whose export has 20 MB of items.
async fn talkative<'a>(t: &'a TestService, workflow: &'a Workflow) -> Person<'a> {
    let (person, thread) = Person::browser(t, workflow, &"word ".repeat(20_000)).await;
    add_items(t, &thread, 200, "false").await;
    person
}

/// A browser whose export has 23 MB of attachments.
async fn with_files<'a>(t: &'a TestService, workflow: &'a Workflow) -> Person<'a> {
    let (person, _) = Person::browser(t, workflow, "hello").await;
    person.upload("large.txt", &vec![b'a'; 1 << 20]).await;
    t.execute(
        "INSERT INTO attachments (id, workspace_id, workflow_id, owner_kind, owner_id, session, name, mime_type, size, digest, created_at)
         SELECT gen_random_uuid(), workspace_id, workflow_id, owner_kind, owner_id, session, 'copy ' || n, mime_type, size, digest,
             created_at FROM attachments, generate_series(1, 16) n",
    )
    .await;
    person
}

async fn opened(person: &Person<'_>) -> RawAnswer {
    person.open_export().await.expect(200)
}

#[tokio::test]
async fn an_unread_export_holds_no_database_connection() {
    let t = small().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (talkative, with_files) = (talkative(&t, &workflow).await, with_files(&t, &workflow).await);
    let mut exports = Vec::new();
    for person in [&talkative, &with_files, &talkative, &with_files] {
        exports.push(opened(person).await);
    }
    // There are more exports than connections, while others chat and read their data.
    for number in 0..2 {
        let turn = t.visitor().say(&workflow.id, &format!("{number}")).await.unwrap();
        assert_eq!(turn.text, format!("You said: {number}"));
        let (other, _) = Person::browser(&t, &workflow, "hello").await;
        assert_eq!(other.export().await.status, 200);
    }
    t.assert_healthy().await;
    // These exports were unread until now, and are complete.
    for mut export in exports.into_iter().take(2) {
        let body = export.rest().await;
        assert!(body.len() > LARGE, "{} bytes", body.len());
        let last: Value = serde_json::from_str(body.lines().next_back().unwrap()).unwrap();
        assert_eq!(last["type"], "end");
    }
}

#[tokio::test]
async fn an_export_ends_when_its_client_leaves() {
    let t = small().set("SERVICE_CHAT_MAX_STREAMS", "1").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let person = talkative(&t, &workflow).await;
    let export = opened(&person).await;
    assert_eq!(
        person.export().await.refusal(),
        "429 chat.rate_limited.streams",
        "it is a stream of the session"
    );
    drop(export);
    until("the export ends", async || person.open_export().await.status == 200).await;
}

#[tokio::test]
async fn an_export_is_truncated_if_its_data_is_erased_meanwhile() {
    let t = small().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let person = talkative(&t, &workflow).await;
    let mut export = opened(&person).await;
    is_erased(&t, &person.erase().await).await;
    let mut body = Vec::new();
    within("the export breaks off", async {
        while let Some(piece) = export.try_piece().await {
            body.extend_from_slice(&piece);
        }
    })
    .await;
    let body = String::from_utf8_lossy(&body);
    assert!(body.starts_with(r#"{"type":"visitor""#), "the export has started");
    assert!(!body.contains(r#"{"type":"end""#), "a client must see that it is incomplete");
    t.chat(&chat::create(&workflow, "hello")).await.expect(200);
}
