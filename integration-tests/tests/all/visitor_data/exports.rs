//! Exports that need several database reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{AnswerExt, TestService, graphs, noise};
use serde_json::{Value, json};

use super::{Person, add_items, digits, lines, of_type};

/// Bytes per chunk.
const CHUNK: usize = 256 << 10;

/// The text result of a query, split at spaces.
async fn column(t: &TestService, sql: &str) -> Vec<String> {
    t.scalar(sql).await.split(' ').map(str::to_owned).collect()
}

/// A thread's item ids as the visitor reads them, page by page.
async fn shown(person: &Person<'_>, thread: &str) -> Vec<Value> {
    let mut ids = Vec::new();
    let mut params = json!({"thread_id": thread, "order": "asc", "limit": 100});
    loop {
        let page = person.ask("items.list", params.clone()).await.value();
        ids.extend(page["data"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        if page["has_more"] == false {
            return ids;
        }
        params["after"] = page["after"].clone();
    }
}

#[tokio::test]
async fn an_export_contains_each_thread_once_in_order() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (person, first) = Person::browser(&t, &workflow, "first").await;
    let (other, _) = Person::browser(&t, &workflow, "another").await;
    // Seven threads share a time, so a read ends between threads with the same time.
    t.execute(&format!(
        "INSERT INTO threads (id, workflow_id, workspace_id, owner_kind, owner_id, title, status, created_at)
         SELECT gen_random_uuid(), workflow_id, workspace_id, owner_kind, owner_id, 'thread ' || n, status,
             created_at + interval '1 second' * (1 + n / 7)
         FROM threads, generate_series(1, 250) n WHERE id = '{}'",
        digits(&first)
    ))
    .await;
    t.execute(&format!(
        "INSERT INTO thread_items (thread_id, id, content)
         SELECT t.id, i.id, i.content FROM threads t JOIN thread_items i ON i.thread_id = '{}'
         WHERE t.title LIKE 'thread %' AND i.content LIKE '%\"user_message\"%'",
        digits(&first)
    ))
    .await;
    t.execute("UPDATE threads SET deleted_at = now() WHERE title = 'thread 30'").await;
    let expected = column(
        &t,
        "SELECT string_agg('thr_' || replace(id::text, '-', ''), ' ' ORDER BY created_at, id) FROM threads
         WHERE deleted_at IS NULL AND title <> 'another'",
    )
    .await;
    let exported = lines(&person.export().await);
    let threads: Vec<&str> =
        of_type(&exported, "thread").iter().map(|line| line["thread"]["id"].as_str().unwrap()).collect();
    assert_eq!(threads, expected);
    // The items of a thread follow it.
    let mut kinds = vec!["visitor", "thread", "item", "item"];
    kinds.extend(["thread", "item"].repeat(249));
    kinds.push("end");
    assert_eq!(exported.iter().map(|line| line["type"].as_str().unwrap()).collect::<Vec<_>>(), kinds);
    let end = json!({"type": "end", "threads": 250, "items": 251, "attachments": 0});
    assert_eq!(*exported.last().unwrap(), end);
    assert_eq!(of_type(&lines(&other.export().await), "thread").len(), 1);
}

#[tokio::test]
async fn an_export_contains_each_item_and_each_feedback_once_in_order() {
    let t = TestService::start().await;
    let note = json!({"name": "note", "type": "hidden", "content": "not for visitors"});
    let say = json!({"name": "say", "type": "reply", "text": "You said: {{ inputs.message }}"});
    let workflow = t.workflow().graph(graphs::chain(&[note, say], None)).published().create().await;
    let (person, thread) = Person::browser(&t, &workflow, "hello").await;
    // The thread has three items: rows 100, 101, 200 and 201 are hidden, the last and the first of a read.
    add_items(&t, &thread, 300, "n % 100 IN (97, 98)").await;
    t.execute(&format!(
        "INSERT INTO item_feedback (id, thread_id, workflow_id, item_id, author_kind, author_id, kind, created_at)
         SELECT gen_random_uuid(), i.thread_id, t.workflow_id, i.id, t.owner_kind, t.owner_id, 'positive', now()
         FROM threads t JOIN thread_items i ON i.thread_id = t.id
         WHERE t.id = '{}' AND i.content LIKE '%\"assistant_message\"%' ORDER BY i.id LIMIT 150",
        digits(&thread)
    ))
    .await;
    let export = person.export().await;
    let exported = lines(&export);
    let items: Vec<&Value> = of_type(&exported, "item").iter().map(|line| &line["item"]["id"]).collect();
    let shown = shown(&person, &thread).await;
    assert_eq!(items, shown.iter().collect::<Vec<_>>());
    assert!(!export.text().contains("not for visitors"));
    let feedback: Vec<&Value> = of_type(&exported, "feedback").iter().map(|line| &line["item_id"]).collect();
    assert_eq!(feedback, items[1..151], "on the first 150 answers");
    let end = json!({"type": "end", "threads": 1, "items": 296, "attachments": 0});
    assert_eq!(*exported.last().unwrap(), end);
}

#[tokio::test]
async fn an_export_contains_each_attachment_once_with_its_chunks() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (person, _) = Person::browser(&t, &workflow, "hello").await;
    let bytes = noise(2 * CHUNK + 1_000).into_bytes();
    person.upload("large.txt", &bytes).await;
    // Most are announced and have no bytes yet.
    t.execute(
        "INSERT INTO attachments (id, workspace_id, workflow_id, owner_kind, owner_id, session, name, mime_type, size, digest, created_at)
         SELECT gen_random_uuid(), workspace_id, workflow_id, owner_kind, owner_id, session, 'copy ' || n, mime_type, size,
             CASE WHEN n % 60 = 0 THEN digest END, created_at FROM attachments, generate_series(1, 230) n",
    )
    .await;
    let expected = column(
        &t,
        "SELECT string_agg('atc_' || replace(id::text, '-', '') || CASE WHEN digest IS NULL THEN '' ELSE '+' END, ' ' ORDER BY id)
         FROM attachments",
    )
    .await;
    let exported = lines(&person.export().await);
    let files: Vec<&Value> = exported
        .iter()
        .filter(|line| ["attachment", "attachment_chunk"].iter().any(|kind| line["type"] == *kind))
        .collect();
    let mut rest = files.as_slice();
    for name in &expected {
        let id = name.trim_end_matches('+');
        let (file, after) = rest.split_first().unwrap();
        assert_eq!((&file["type"], &file["id"]), (&json!("attachment"), &json!(id)));
        let count = if name.ends_with('+') { 3 } else { 0 };
        assert_eq!(file["sha256"].is_string(), count > 0);
        let (chunks, after) = after.split_at(count);
        let mut read = Vec::new();
        for (number, chunk) in chunks.iter().enumerate() {
            assert_eq!((&chunk["id"], &chunk["number"]), (&json!(id), &json!(number)));
            let part = STANDARD.decode(chunk["base64"].as_str().unwrap()).unwrap();
            assert!(part.len() == CHUNK || number == 2, "chunk {number} has {} bytes", part.len());
            read.extend(part);
        }
        assert!(count == 0 || read == bytes, "the bytes of {id}");
        rest = after;
    }
    assert!(rest.is_empty(), "{rest:?}");
    let end = json!({"type": "end", "threads": 1, "items": 2, "attachments": 231});
    assert_eq!(*exported.last().unwrap(), end);
}

#[tokio::test]
async fn an_export_contains_feedback_on_threads_of_others() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (person, own) = Person::browser(&t, &workflow, "hello").await;
    let (_, foreign) = Person::browser(&t, &workflow, "hello").await;
    let (_, deleted) = Person::browser(&t, &workflow, "hello").await;
    let given = format!(
        "INSERT INTO item_feedback (id, thread_id, workflow_id, item_id, author_kind, author_id, kind, created_at)
         SELECT gen_random_uuid(), i.thread_id, t.workflow_id, i.id, o.owner_kind, o.owner_id, 'negative', now()
         FROM threads t JOIN thread_items i ON i.thread_id = t.id, threads o
         WHERE o.id = '{}' AND i.content LIKE '%\"assistant_message\"%'",
        digits(&own)
    );
    t.execute(&given).await;
    t.execute(&format!("UPDATE threads SET deleted_at = now() WHERE id = '{}'", digits(&deleted))).await;
    let exported = lines(&person.export().await);
    let mut threads: Vec<&str> =
        of_type(&exported, "feedback").iter().map(|line| line["thread_id"].as_str().unwrap()).collect();
    threads.sort_unstable();
    let mut expected = [own.as_str(), foreign.as_str()];
    expected.sort_unstable();
    assert_eq!(threads, expected);
    assert_eq!(of_type(&exported, "thread").len(), 1);
}
