//! Visitor data: large exports, each kind of caller, and the database after erasures.

mod canary;
mod exports;
mod identities;
mod traces;
mod unread;

use integration_tests::{Answer, AnswerExt, JSON, RawAnswer, TestService, Workflow, chat, thread_of, until};
use serde_json::{Value, json};

use crate::attachments::{form, form_type};

/// A caller of a workflow's chat.
struct Person<'a> {
    t: &'a TestService,
    workflow: &'a Workflow,
    /// The header that identifies the caller.
    header: (&'static str, String),
}

impl<'a> Person<'a> {
    fn with(t: &'a TestService, workflow: &'a Workflow, name: &'static str, value: String) -> Self {
        Self { t, workflow, header: (name, value) }
    }

    /// A browser with the cookie from its first response; also returns that response's thread.
    async fn browser(t: &'a TestService, workflow: &'a Workflow, text: &str) -> (Self, String) {
        let body = chat::create(workflow, text).to_string();
        let answer = t.while_time_passes(t.send("POST", "/api/chat", &[JSON], body)).await;
        (Self::with(t, workflow, "cookie", cookie(&answer)), thread(&answer))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let mut headers = vec![(self.header.0, self.header.1.as_str())];
        headers.extend_from_slice(more);
        self.t.while_time_passes(self.t.send(method, path, &headers, body.into())).await
    }

    async fn post(&self, body: &Value) -> Answer {
        self.send("POST", "/api/chat", &[JSON], body.to_string()).await
    }

    async fn ask(&self, kind: &str, params: Value) -> Answer {
        self.post(&chat::ask(self.workflow, kind, params)).await
    }

    /// Starts a thread.
    async fn create(&self, text: &str) -> Answer {
        self.post(&chat::create(self.workflow, text)).await.expect(200)
    }

    /// The path of the caller's data in this workflow.
    fn path(&self, of: &str) -> String {
        format!("/api/chat/{of}?workflow_id={}", self.workflow.id)
    }

    async fn export(&self) -> Answer {
        self.send("GET", &self.path("me/export"), &[], "").await
    }

    /// An export, read piece by piece.
    async fn open_export(&self) -> RawAnswer {
        self.t.open("GET", &self.path("me/export"), &[(self.header.0, &self.header.1)], "").await
    }

    async fn erase(&self) -> Answer {
        self.send("DELETE", &self.path("me"), &[], "").await
    }

    /// Uploads a file; returns the attachment id.
    async fn upload(&self, name: &str, bytes: &[u8]) -> Value {
        let kind = form_type();
        let headers = [("content-type", kind.as_str())];
        let uploaded = self.send("POST", &self.path("upload"), &headers, form(name, bytes)).await;
        assert_eq!(uploaded.status, 200, "{name}: {}", uploaded.text());
        uploaded.value()["id"].clone()
    }

    /// Sends a message; its turn is read piece by piece.
    async fn open(&self, thread: &str, text: &str) -> RawAnswer {
        let body = chat::add(self.workflow, thread, text).to_string();
        let headers = [JSON, (self.header.0, self.header.1.as_str())];
        self.t.while_time_passes(self.t.open("POST", "/api/chat", &headers, body)).await
    }

    async fn items(&self, thread: &str) -> Vec<Value> {
        let params = json!({"thread_id": thread, "order": "asc", "limit": 100});
        self.ask("items.list", params).await.value()["data"].as_array().unwrap().clone()
    }
}

/// The cookie in a response.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// The thread that a response starts.
fn thread(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    thread_of(&answer.text())
}

/// Waits for the erasure that a response has accepted.
async fn is_erased(t: &TestService, answer: &Answer) {
    assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
    let open = "SELECT count(*) FROM erasures WHERE erased_at IS NULL";
    t.while_time_passes(until("the erasure is complete", async || t.scalar(open).await == "0")).await;
}

fn lines(export: &Answer) -> Vec<Value> {
    assert_eq!(export.status, 200, "{}", export.text());
    export.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of one type.
fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// The texts of exported messages.
fn texts(lines: &[Value]) -> Vec<&str> {
    let items = of_type(lines, "item").into_iter();
    items.map(|line| line["item"]["content"][0]["text"].as_str().unwrap()).collect()
}

/// The hexadecimal digits in a thread id.
pub(crate) fn digits(thread: &str) -> &str {
    thread.strip_prefix("thr_").unwrap()
}

/// Adds copies of a thread's assistant message after its last item. If `hidden`, a condition on the copy's number `n`,
/// is true, it copies the thread's hidden item instead.
pub(crate) async fn add_items(t: &TestService, thread: &str, count: u32, hidden: &str) {
    t.execute(&format!(
        "INSERT INTO thread_items (thread_id, id, content, run_id)
         SELECT i.thread_id, k.id, replace(i.content, encode(i.id, 'hex'), encode(k.id, 'hex')), i.run_id
         FROM generate_series(1, {count}) n
         JOIN thread_items i ON i.thread_id = '{}'
             AND i.content LIKE CASE WHEN {hidden} THEN '%\"hidden_context_item\"%' ELSE '%\"assistant_message\"%' END
         CROSS JOIN LATERAL (SELECT substring(l.id FROM 1 FOR 6) || int2send((2000 + n)::int2) || substring(l.id FROM 9) AS id
             FROM thread_items l WHERE l.thread_id = i.thread_id ORDER BY l.id DESC LIMIT 1) k",
        digits(thread)
    ))
    .await;
}
