//! Database content after visitor erasures.

use std::time::Duration;

use integration_tests::{JSON, TestService, chat, until};

use super::traces::{SPOKEN, VisitorTraces, service};
use super::{Person, cookie, is_erased, lines};

/// The text of the visitor who erases their data.
const OWN: &str = "canary-7d2a-self";
/// The text of the visitor whose data the workflow's owner erases.
const MANAGED: &str = "canary-7d2a-other";

/// Some of the tables that the routes write to.
const WRITTEN: [&str; 12] = [
    "attachments",
    "blob_chunks",
    "feedback_turns",
    "idempotency_keys",
    "item_feedback",
    "outbox",
    "run_questions",
    "run_steps",
    "runs",
    "stream_events",
    "thread_items",
    "threads",
];

/// An event day that retention has detached and is about to drop.
const DETACHED: &str = "c.relname ~ '^stream_events_[0-9]{8}$' AND NOT c.relispartition";

/// The tables in all schemas that contain a text, as text or as bytes. Event days that are being dropped are left out,
/// because they could disappear before they are read.
async fn found_in(t: &TestService, text: &str) -> Vec<String> {
    let tables = format!(
        "SELECT string_agg(c.oid::regclass::text, ' ') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
             AND NOT ({DETACHED})"
    );
    let tables = t.scalar(&tables).await;
    let hex = hex::encode(text);
    let contains = |table: &str| {
        format!(
            "SELECT '{table}' AS name WHERE EXISTS (SELECT FROM {table} one
             WHERE one::text LIKE '%{text}%' OR one::text LIKE '%{hex}%')"
        )
    };
    let all: Vec<String> = tables.split(' ').map(contains).collect();
    let found = format!(
        "SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM ({}) f",
        all.join(" UNION ALL ")
    );
    t.scalar(&found).await.split_whitespace().map(str::to_owned).collect()
}

/// Asserts that only blob bytes remain; they are deleted later, when no row needs them.
async fn only_bytes_contain(t: &TestService, text: &str) {
    let left = found_in(t, text).await;
    assert!(left.iter().all(|table| table == "blob_chunks"), "{text} in {left:?}");
}

async fn all_tables_contain(t: &TestService, text: &str) {
    let found = found_in(t, text).await;
    for table in WRITTEN {
        assert!(found.iter().any(|name| name == table), "{text} in {table}: {found:?}");
    }
}

#[tokio::test]
async fn visitor_data_of_every_route_is_erased() {
    let (t, model, workflow) = service().await;
    let own = VisitorTraces::leave(&t, &model, &workflow, OWN).await;
    let managed = VisitorTraces::leave(&t, &model, &workflow, MANAGED).await;
    assert_eq!(found_in(&t, SPOKEN).await, [""; 0], "audio is not stored");
    // Each visitor has a running turn and a waiting one.
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "4");
    for canary in [OWN, MANAGED] {
        all_tables_contain(&t, canary).await;
    }
    let name = lines(&managed.person.export().await)[0]["visitor"].as_str().unwrap().to_owned();

    is_erased(&t, &own.person.erase().await).await;
    only_bytes_contain(&t, OWN).await;
    all_tables_contain(&t, MANAGED).await;

    let path = format!("/api/workflows/{}/chat/visitors/{name}", workflow.id);
    is_erased(&t, &t.while_time_passes(t.send("DELETE", &path, &[], "")).await).await;
    only_bytes_contain(&t, MANAGED).await;
    assert_eq!(t.scalar("SELECT count(*) FROM threads WHERE deleted_at IS NULL").await, "0");

    t.advance(Duration::from_secs(2 * 86_400));
    let gone = async || found_in(&t, OWN).await.is_empty() && found_in(&t, MANAGED).await.is_empty();
    t.while_time_passes_in(Duration::from_secs(600), until("the bytes are deleted", gone)).await;
    let detached = format!("SELECT count(*) FROM pg_class c WHERE {DETACHED}");
    let dropped = async || t.scalar(&detached).await == "0";
    t.while_time_passes_in(Duration::from_secs(600), until("detached days are dropped", dropped)).await;
    for table in ["attachments", "blob_uses", "blobs", "thread_items", "run_steps", "outbox"] {
        t.assert_no_rows(table).await;
    }
}

/// The first request has no cookie: its key is stored for the caller's address, too.
#[tokio::test]
async fn the_idempotency_key_of_a_first_message_is_erased_with_its_visitor() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hello").to_string();
    let first = t.send("POST", "/api/chat", &[JSON, ("idempotency-key", OWN)], body).await;
    let person = Person::with(&t, &workflow, "cookie", cookie(&first));
    assert_eq!(found_in(&t, OWN).await, ["idempotency_keys"]);
    is_erased(&t, &person.erase().await).await;
    assert_eq!(found_in(&t, OWN).await, [""; 0]);
}
