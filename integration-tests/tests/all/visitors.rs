//! Visitor data: exported, erased, and read by the workflow's owner.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{
    Answer, AnswerExt, JSON, RawAnswer, TestService, Workflow, chat, events, graphs, thread_of, until,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::attachments::{form, form_type};

pub(crate) const CANARY: &str = "canary-5b1f";

/// A browser with the cookie from its first response.
pub(crate) struct Visitor<'a> {
    t: &'a TestService,
    workflow: &'a Workflow,
    cookie: String,
    pub(crate) thread: String,
}

impl<'a> Visitor<'a> {
    /// Starts a thread.
    pub(crate) async fn start(t: &'a TestService, workflow: &'a Workflow, text: &str) -> Self {
        let body = chat::create(workflow, text).to_string();
        let answer = t.while_time_passes(t.send("POST", "/api/chat", &[JSON], body)).await;
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let thread = thread_of(&answer.text());
        Self { t, workflow, cookie, thread }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
        let headers = [("content-type", kind), ("cookie", self.cookie.as_str())];
        self.t.while_time_passes(self.t.send(method, path, &headers, body.into())).await
    }

    pub(crate) async fn ask(&self, kind: &str, params: Value) -> Answer {
        let body = chat::ask(self.workflow, kind, params).to_string();
        self.send("POST", "/api/chat", "application/json", body).await
    }

    async fn open(&self, text: &str) -> RawAnswer {
        let headers = [JSON, ("cookie", self.cookie.as_str())];
        let body = chat::add(self.workflow, &self.thread, text).to_string();
        self.t.while_time_passes(self.t.open("POST", "/api/chat", &headers, &body)).await
    }

    pub(crate) async fn items(&self) -> Vec<Value> {
        let params = json!({"thread_id": self.thread, "order": "asc", "limit": 100});
        self.ask("items.list", params).await.value()["data"].as_array().unwrap().clone()
    }

    async fn export(&self) -> Answer {
        let path = format!("/api/chat/me/export?workflow_id={}", self.workflow.id);
        self.send("GET", &path, "application/json", "").await
    }

    async fn erase(&self) -> Answer {
        let path = format!("/api/chat/me?workflow_id={}", self.workflow.id);
        self.send("DELETE", &path, "application/json", "").await
    }

    /// The visitor's name in the owner's lists.
    async fn name(&self) -> String {
        let id = self.thread.strip_prefix("thr_").unwrap();
        let owner = format!("SELECT owner_kind || ':' || owner_id FROM threads WHERE id = '{id}'");
        self.t.scalar(&owner).await
    }
}

fn lines(export: &Answer) -> Vec<Value> {
    assert_eq!(export.status, 200, "{}", export.text());
    assert_eq!(export.header("content-type").unwrap(), "application/x-ndjson");
    export.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replies with the message; `ask` asks, `slow` takes long.
fn desk() -> Value {
    json!({"format": "graph/1", "nodes": [
        {"name": "say", "type": "reply", "text": "You said {{ inputs.message }}."},
        {"name": "note", "type": "hidden", "content": "about {{ inputs.message }}"},
        {"name": "sure", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Sure, {{ inputs.message }}?"}]},
        {"name": "slow", "type": "reply", "text": "a b c d e f g h", "pieces": "words", "pause_ms": 60_000}],
      "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "note"},
        {"from": "note", "cases": [{"when": "'ask' in inputs.message", "to": "sure"}, {"when": "'slow' in inputs.message", "to": "slow"}],
         "else": "END"},
        {"from": "sure", "to": "END"}, {"from": "slow", "to": "END"}]})
}

pub(crate) async fn published(t: &TestService) -> Workflow {
    t.workflow().graph(desk()).published().create().await
}

/// Fills a thread with all kinds of data that a visitor can leave.
pub(crate) async fn leave_everything(visitor: &Visitor<'_>) {
    let path = format!("/api/chat/upload?workflow_id={}", visitor.workflow.id);
    let file = form(&format!("{CANARY}.txt"), format!("a file of {CANARY}").repeat(20_000).as_bytes());
    let attachment = visitor.send("POST", &path, &form_type(), file.clone()).await.value();
    visitor.send("POST", &path, &form_type(), form("loose.txt", CANARY.as_bytes())).await.expect(200);
    let mut input = chat::input(&format!("{CANARY} with a file"));
    input["attachments"] = json!([attachment["id"]]);
    let sent =
        visitor.ask("threads.add_user_message", json!({"thread_id": visitor.thread, "input": input})).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    let title = json!({"thread_id": visitor.thread, "title": format!("About {CANARY}")});
    assert_eq!(visitor.ask("threads.update", title).await.status, 200);
    let items = visitor.items().await;
    let reply = items.iter().find(|item| item["type"] == "assistant_message").unwrap();
    let feedback = json!({"thread_id": visitor.thread, "item_ids": [reply["id"]], "kind": "negative", "comment": CANARY});
    assert_eq!(visitor.ask("items.feedback", feedback).await.status, 200);
    let message = json!({"thread_id": visitor.thread, "input": chat::input(&format!("ask {CANARY}"))});
    let turn = visitor.ask("threads.add_user_message", message).await;
    let item = events(&turn.text()).last().unwrap()["item"]["id"].clone();
    let input = json!({"answers": {"q": {"values": [CANARY]}}});
    let answer = json!({"thread_id": visitor.thread, "item_id": item, "input": input});
    visitor.ask("threads.add_structured_input", answer).await.expect(200);
    // One more question that stays open.
    let message = json!({"thread_id": visitor.thread, "input": chat::input(&format!("ask {CANARY} again"))});
    visitor.ask("threads.add_user_message", message).await;
}

/// The tables that contain a text, also as bytes.
pub(crate) async fn found_in(t: &TestService, text: &str) -> Vec<String> {
    let tables = t
        .scalar("SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'stream_events\\_%'")
        .await;
    let hex = hex::encode(text);
    let mut found = Vec::new();
    for table in tables.split(' ') {
        let rows =
            format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%{text}%' OR t::text LIKE '%{hex}%'");
        if t.scalar(&rows).await != "0" {
            found.push(table.to_owned());
        }
    }
    found
}

#[tokio::test]
async fn an_export_contains_all_data_of_a_visitor() {
    let t = TestService::with_manual_clock().await;
    let workflow = published(&t).await;
    let visitor = Visitor::start(&t, &workflow, CANARY).await;
    leave_everything(&visitor).await;
    let other = Visitor::start(&t, &workflow, "another visitor").await;
    let export = visitor.export().await;
    let lines = lines(&export);
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["visitor", "thread", "item"]);
    assert_eq!(lines[0]["visitor"], visitor.name().await);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<_>>();
    let exported: Vec<Value> = of("item").iter().map(|line| line["item"]["id"].clone()).collect();
    let shown: Vec<Value> = visitor.items().await.iter().map(|item| item["id"].clone()).collect();
    assert_eq!(exported, shown, "as the visitor sees them");
    assert_eq!(of("thread")[0]["thread"]["title"], format!("About {CANARY}"));
    assert_eq!(
        (&of("feedback")[0]["kind"], &of("feedback")[0]["comment"]),
        (&json!("negative"), &json!(CANARY))
    );
    let file = of("attachment").into_iter().find(|file| file["name"] == format!("{CANARY}.txt")).unwrap();
    assert_eq!(file["thread_id"], visitor.thread);
    let chunks: Vec<Value> =
        of("attachment_chunk").into_iter().filter(|chunk| chunk["id"] == file["id"]).collect();
    assert!(chunks.len() > 1, "a file of several chunks");
    let bytes: Vec<u8> =
        chunks.iter().flat_map(|chunk| STANDARD.decode(chunk["base64"].as_str().unwrap()).unwrap()).collect();
    assert_eq!(json!(bytes.len()), file["size"]);
    assert_eq!(hex::encode(digest(&SHA256, &bytes)), file["sha256"]);
    let end = json!({"type": "end", "threads": 1, "items": shown.len(), "attachments": 2});
    assert_eq!(*lines.last().unwrap(), end);
    assert!(
        !export.text().contains("another visitor") && !export.text().contains("about "),
        "hidden or foreign"
    );
    assert!(!other.export().await.text().contains(CANARY));
    // The owner's export is the same except for its time.
    let path = format!("/api/workflows/{}/chat/visitors/{}/export", workflow.id, visitor.name().await);
    let owners = t.while_time_passes(t.get(&path)).await;
    let rest = |export: &Answer| export.text().split_once('\n').unwrap().1.to_owned();
    assert_eq!(rest(&owners), rest(&export));
}

#[tokio::test]
async fn an_erased_visitor_is_in_no_table_afterwards() {
    let t = TestService::with_manual_clock().await;
    let workflow = published(&t).await;
    let visitor = Visitor::start(&t, &workflow, CANARY).await;
    leave_everything(&visitor).await;
    let other = Visitor::start(&t, &workflow, "another visitor").await;
    let thread = format!("/api/workflows/{}/chat/threads/{}", workflow.id, visitor.thread);
    let title = json!({"title": format!("{CANARY} by the owner")}).to_string();
    let key = [("Content-Type", "application/json"), ("Idempotency-Key", "owner")];
    for _ in 0..2 {
        let renamed = t.send("PATCH", &thread, &key, &title).await;
        assert_eq!(
            (renamed.status, renamed.value()["title"].clone()),
            (200, json!(format!("{CANARY} by the owner")))
        );
    }
    // A running turn.
    let mut slow = visitor.open(&format!("slow {CANARY}")).await;
    t.while_time_passes(slow.until("You said")).await;
    assert!(found_in(&t, CANARY).await.len() > 5, "existing data is found");
    let name = visitor.name().await;
    let id = name.split_once(':').unwrap().1;
    let erased = visitor.erase().await;
    assert_eq!((erased.status, erased.value()), (200, json!({"threads": 1})), "{}", erased.text());
    let left = found_in(&t, CANARY).await;
    let blobs = ["blob_chunks", "blobs"];
    assert!(left.iter().all(|table| blobs.contains(&table.as_str())), "bytes are deleted later: {left:?}");
    assert_eq!(visitor.ask("threads.list", json!({})).await.value()["data"], json!([]));
    assert_eq!(visitor.ask("threads.get_by_id", json!({"thread_id": visitor.thread})).await.status, 404);
    assert_eq!(lines(&visitor.export().await).len(), 2, "the visitor and the end");
    let again = visitor.erase().await;
    assert_eq!(again.value(), json!({"threads": 0}));
    // Unreferenced data is deleted within a day, as is the visitor's name.
    t.advance(Duration::from_secs(2 * 86_400));
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("nothing is left", async || {
            found_in(&t, CANARY).await.is_empty() && found_in(&t, id).await.is_empty()
        }),
    )
    .await;
    assert_eq!(other.items().await.len(), 2, "others keep their threads");
    let audit = t.scalar("SELECT actor_kind || ' ' || reason || ' ' || (address IS NULL) FROM audit_log WHERE action = 'chat.visitor_erased' ORDER BY id LIMIT 1").await;
    assert!(audit.starts_with("anonymous visitor ") && audit.ends_with(" true"), "{audit}");
}

#[tokio::test]
async fn files_without_a_workflow_are_in_no_export() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let visitor = Visitor::start(&t, &workflow, "hello").await;
    let file = form("elsewhere.txt", CANARY.as_bytes());
    visitor.send("POST", "/api/chat/upload", &form_type(), file).await.expect(200);
    assert_eq!(t.scalar("SELECT count(*) FROM attachments WHERE workflow_id IS NULL").await, "1");
    let owners = format!("/api/workflows/{}/chat/visitors/{}/export", workflow.id, visitor.name().await);
    for export in [t.get(&owners).await, visitor.export().await] {
        assert!(lines(&export).iter().all(|line| line["type"] != "attachment"), "{}", export.text());
    }
    let audit = t.scalar("SELECT reason FROM audit_log WHERE action = 'chat.visitor_exported'").await;
    assert!(audit.starts_with("visitor "), "{audit}");
    assert_eq!(visitor.erase().await.status, 200);
    assert_eq!(t.scalar("SELECT count(*) FROM attachments").await, "1", "of another workflow, perhaps");
}

#[tokio::test]
async fn feedback_given_after_an_erasure_request_is_kept() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let visitor = Visitor::start(&t, &workflow, "hello").await;
    let other = Visitor::start(&t, &workflow, "hello").await;
    let id = visitor.name().await.split_once(':').unwrap().1.to_owned();
    let feedback = |at: &str, item: u8| {
        format!(
            "INSERT INTO item_feedback (id, thread_id, workflow_id, item_id, author_kind, author_id, kind, created_at)
             SELECT gen_random_uuid(), thread_id, '{}', id, 'visitor', '{id}', 'positive', now() + interval '{at}'
             FROM thread_items WHERE thread_id = '{}' ORDER BY id OFFSET {item} LIMIT 1",
            workflow.id,
            other.thread.strip_prefix("thr_").unwrap()
        )
    };
    t.execute(&feedback("-1 minute", 0)).await;
    t.execute(&feedback("1 hour", 1)).await;
    assert_eq!(visitor.erase().await.status, 200);
    assert_eq!(t.scalar("SELECT count(*) FROM item_feedback").await, "1");
}

#[tokio::test]
async fn an_interrupted_erasure_is_completed() {
    let mut t = TestService::start().await;
    let workflow = published(&t).await;
    let id = {
        let visitor = Visitor::start(&t, &workflow, CANARY).await;
        visitor.name().await.split_once(':').unwrap().1.to_owned()
    };
    // The request was stored, and its instance killed.
    t.execute(&format!(
        "INSERT INTO erasures (workflow_id, owner_kind, owner_id, requested_at) VALUES ('{}', 'visitor', '{id}', now())",
        workflow.id
    ))
    .await;
    t.restart().await;
    until("the erasure is completed", async || {
        t.scalar("SELECT count(*) FROM erasures WHERE erased_at IS NOT NULL").await == "1"
    })
    .await;
    assert_eq!(found_in(&t, CANARY).await, [""; 0]);
}

#[tokio::test]
async fn a_long_erasure_is_accepted() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let visitor = Visitor::start(&t, &workflow, CANARY).await;
    let held = t.hold("LOCK TABLE thread_items IN ACCESS EXCLUSIVE MODE").await;
    let accepted = visitor.erase().await;
    assert_eq!((accepted.status, accepted.value()), (202, json!({"status": "erasing"})));
    drop(held);
    until("the erasure is completed", async || found_in(&t, CANARY).await.is_empty()).await;
}

#[tokio::test]
async fn usage_of_earlier_days_has_no_visitor() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::chain(&[json!({"name": "a", "type": "llm", "model": "practice/reply", "user": "{{ inputs.message }}", "stream": true})], None)).published().create().await;
    let one = Visitor::start(&t, &workflow, "one").await;
    let two = Visitor::start(&t, &workflow, "two").await;
    let sessions = async || {
        t.scalar("SELECT string_agg(session || ' ' || calls || ' calls, ' || turns || ' turns', '; ' ORDER BY session) FROM chat_usage").await
    };
    let (first, second) = (one.name().await, two.name().await);
    assert_eq!(one.erase().await.status, 200);
    let counted = sessions().await;
    assert!(counted.contains(&first), "a limit of the day still counts: {counted}");
    assert_eq!(two.erase().await.status, 200);
    t.advance(Duration::from_secs(86_400));
    t.while_time_passes(until("the day is over", async || sessions().await == " 2 calls, 2 turns")).await;
    assert_eq!(found_in(&t, first.split_once(':').unwrap().1).await, [""; 0]);
    assert_eq!(found_in(&t, second.split_once(':').unwrap().1).await, [""; 0]);
}

#[tokio::test]
async fn an_unknown_visitor_has_no_data() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let private = t.workflow().graph(desk()).create().await;
    for (method, path) in [("GET", "/api/chat/me/export"), ("DELETE", "/api/chat/me")] {
        let send = async |query: &str| t.send(method, &format!("{path}{query}"), &[], "").await.refusal();
        assert_eq!(send("").await, "400 chat.workflow_id_required", "{method}");
        assert_eq!(send("?workflow_id=x").await, "400 chat.workflow_id_invalid");
        assert_eq!(send(&format!("?workflow_id={}", uuid::Uuid::nil())).await, "404 workflow.not_found");
        assert_eq!(send(&format!("?workflow_id={}", private.id)).await, "403 chat.not_published");
        assert_eq!(send(&format!("?workflow_id={}", workflow.id)).await, "401 chat.visitor_unknown");
        let more = t.send(method, &format!("{path}?workflow_id={}&x=1", workflow.id), &[], "").await;
        assert_eq!(more.problems(), ["/x unknown_parameter"], "{}", more.text());
    }
    let foreign = [("origin", "https://evil.example"), ("cookie", "x=y")];
    let path = format!("/api/chat/me?workflow_id={}", workflow.id);
    assert_eq!(t.send("DELETE", &path, &foreign, "").await.refusal(), "401 chat.visitor_unknown");
    let visitor = Visitor::start(&t, &workflow, "hello").await;
    let foreign = [("origin", "https://evil.example"), ("cookie", visitor.cookie.as_str())];
    assert_eq!(t.send("DELETE", &path, &foreign, "").await.status, 403);
    assert_eq!(visitor.items().await.len(), 2);
}

#[tokio::test]
async fn an_owner_lists_reads_and_changes_threads() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let first = Visitor::start(&t, &workflow, "first").await;
    let second = Visitor::start(&t, &workflow, "ask second").await;
    let base = workflow.path("/chat/threads");
    let list = async |query: &str| t.get(&format!("{base}{query}")).await.value();
    let all = list("").await;
    let threads = all["data"].as_array().unwrap();
    assert_eq!(
        (&threads[0]["id"], &threads[1]["id"]),
        (&json!(second.thread), &json!(first.thread)),
        "{all:#}"
    );
    assert_eq!(threads[1]["visitor"], first.name().await);
    assert_eq!((&threads[1]["items"], &threads[0]["items"]), (&json!(2), &json!(3)), "visible ones: {all:#}");
    assert_eq!(threads[1]["status"], json!({"type": "active"}));
    assert!(threads[1]["last_item_at"].as_str().unwrap() >= threads[1]["created_at"].as_str().unwrap());
    let page = list("?limit=1").await;
    let next = page["next_cursor"].as_str().unwrap();
    let rest = list(&format!("?limit=1&cursor={next}")).await;
    assert_eq!((&rest["data"][0]["id"], &rest["next_cursor"]), (&json!(first.thread), &json!(null)));
    let mine = list(&format!("?visitor={}", first.name().await)).await;
    assert_eq!(mine["data"].as_array().unwrap().len(), 1);
    let thread = format!("{base}/{}", first.thread);
    let items = t.get(&format!("{thread}/items?limit=1")).await.value();
    let next = items["next_cursor"].as_str().unwrap();
    let rest = t.get(&format!("{thread}/items?cursor={next}")).await.value();
    assert_eq!(
        [&items["data"][0], &rest["data"][0]].map(|item| item["id"].clone()),
        first.items().await.iter().map(|item| item["id"].clone()).collect::<Vec<_>>()[..]
    );

    let patch = async |body: Value| t.send("PATCH", &thread, &[JSON], body.to_string()).await;
    let locked = patch(json!({"status": "locked", "reason": "We look into it.", "title": " Order 7 "})).await;
    assert_eq!(locked.value()["status"], json!({"type": "locked", "reason": "We look into it."}));
    assert_eq!(locked.value()["title"], "Order 7");
    let more = json!({"thread_id": first.thread, "input": chat::input("more")});
    let refused = first.ask("threads.add_user_message", more.clone()).await;
    assert_eq!(refused.refusal(), "409 thread.locked");
    assert_eq!(list("?status=locked").await["data"].as_array().unwrap().len(), 1);
    assert_eq!(patch(json!({"status": "active"})).await.value()["status"], json!({"type": "active"}));
    assert_eq!(first.ask("threads.add_user_message", more).await.status, 200);
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'chat.thread_changed'").await, "2");
    for (body, problem) in [
        (json!({}), " required"),
        (json!({"status": "open"}), "/status choice"),
        (json!({"status": "active", "reason": "x"}), "/reason status"),
        (json!({"reason": "x"}), "/reason status"),
        (json!({"title": " "}), "/title length"),
        (json!({"title": "x".repeat(201)}), "/title length"),
        (json!({"status": "locked", "reason": "x".repeat(501)}), "/reason length"),
        (json!({"status": 1}), "/status type"),
        (json!({"name": "x"}), "/name unknown_field"),
    ] {
        let problems = patch(body.clone()).await.problems();
        assert!(problems.iter().any(|found| found == problem), "{body}: {problems:?}");
    }
    for (path, refusal) in [
        (format!("{base}?visitor=anyone:x"), "422 request.invalid"),
        (format!("{base}?status=open"), "422 request.invalid"),
        (format!("{base}/thr_0/items"), "404 thread.not_found"),
        (format!("{base}/thr_{}/items", "0".repeat(32)), "404 thread.not_found"),
        ("/api/workflows/none/chat/threads".to_owned(), "404 workflow.not_found"),
        (workflow.path("/chat/visitors/x/export"), "404 chat.visitor_not_found"),
    ] {
        assert_eq!(t.get(&path).await.refusal(), refusal, "{path}");
    }
    let other = published(&t).await;
    let foreign = format!("/api/workflows/{}/chat/threads/{}/items", other.id, first.thread);
    assert_eq!(t.get(&foreign).await.refusal(), "404 thread.not_found", "of another workflow");
    let erased = format!("/api/workflows/{}/chat/visitors/{}", workflow.id, first.name().await);
    assert_eq!(t.send("DELETE", &erased, &[], "").await.value(), json!({"threads": 1}));
    assert_eq!(list("").await["data"].as_array().unwrap().len(), 1);
}
