//! A visitor who uses every chat route, and says the same word on each.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{
    Answer, AnswerExt, Echo, Endpoint, JSON, RawAnswer, TestService, Workflow, chat, events, until,
};
use serde_json::{Value, json};

use super::{Person, digits, thread};
use crate::attachments::red;
use crate::waiting_runs::answer;

/// A word that occurs only in a recording.
pub(super) const SPOKEN: &str = "canary-7d2a-spoken";

fn card(text: &str) -> Value {
    json!({"type": "Card", "children": [{"type": "Text", "id": "text", "value": text}]})
}

/// Shows, stores and sends the message in the way that it names.
fn desk(hook: &str) -> Value {
    let text = "{{ inputs.message }}";
    let shows = [
        json!({"name": "note", "type": "hidden", "content": {"about": text}}),
        json!({"name": "reading", "type": "progress", "text": text}),
        json!({"name": "late", "type": "notice", "message": text, "title": text}),
        json!({"name": "mark", "type": "client_effect", "effect": "highlight", "data": {"order": text}}),
        json!({"name": "title", "type": "thread", "title": "About {{ inputs.message }}"}),
        json!({"name": "card", "type": "widget", "key": "card", "copy_text": text, "widget": card(text)}),
        json!({"name": "task", "type": "show", "kind": "task", "task": {"type": "custom", "title": text}}),
        json!({"name": "steps", "type": "show", "kind": "workflow", "key": text,
               "workflow": {"type": "custom", "tasks": [{"type": "custom", "title": text}]}}),
        json!({"name": "picture", "type": "show", "kind": "image", "image": {"base64": STANDARD.encode(red())}}),
        json!({"name": "large", "type": "set", "values": {"text": "{{ inputs.message * 2000 }}"}}),
        json!({"name": "each", "type": "for_each", "items": [text], "body": {"type": "template", "template": "{{ item }}"}}),
        json!({"name": "failed", "type": "assert", "when": "false", "message": text, "on_error": "continue"}),
        json!({"name": "tell", "type": "webhook_send", "url": hook, "json": {"order": text}}),
        json!({"name": "shown", "type": "reply", "text": "Shown: {{ inputs.message }}",
               "annotations": [{"source": {"type": "url", "title": text, "url": "https://example.org/"}}]}),
    ];
    let look = json!({"type": "node", "name": "look", "description": "Looks for something.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        "node": {"type": "template", "template": "Found {{ args.what }}."}});
    let others = [
        json!({"name": "tool", "type": "client_tool", "tool": "get_place", "arguments": {"for": text}}),
        json!({"name": "placed", "type": "reply", "text": "{{ results.tool.output | tojson }}"}),
        json!({"name": "ask", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Sure, {{ inputs.message }}?"}]}),
        json!({"name": "answered", "type": "reply", "text": "{{ results.ask.answers | tojson }}"}),
        json!({"name": "approve", "type": "wait_for_input", "message": "Pay, {{ inputs.message }}?"}),
        json!({"name": "approved", "type": "reply", "text": "{{ results.approve.value | tojson }}"}),
        json!({"name": "agent", "type": "agent", "model": "openai/x", "messages": "{{ messages }}", "stream": true, "tools": [look]}),
        json!({"name": "fail", "type": "assert", "when": "false", "message": text}),
        json!({"name": "slow", "type": "reply", "text": "{{ inputs.message }} b c d e f g h", "pieces": "words", "pause_ms": 60_000}),
        json!({"name": "acted", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card("{{ inputs.action.payload.note }}")}),
        json!({"name": "told", "type": "reply", "text": "{{ inputs.action | tojson }}"}),
        json!({"name": "hello", "type": "reply", "text": text}),
    ];
    let case = |word: &str, to: &str| json!({"when": format!("'{word}' in inputs.message"), "to": to});
    let mut cases = vec![json!({"when": "inputs.action and inputs.action.type == 'note'", "to": "acted"})];
    cases.push(case("show", "note"));
    cases.extend(["tool", "ask", "approve", "agent", "fail", "slow"].map(|word| case(word, word)));
    let mut edges = vec![json!({"from": "START", "cases": cases, "else": "hello"})];
    edges.extend(shows.windows(2).map(|pair| json!({"from": pair[0]["name"], "to": pair[1]["name"]})));
    for (from, to) in [("tool", "placed"), ("ask", "answered"), ("approve", "approved"), ("acted", "told")] {
        edges.push(json!({"from": from, "to": to}));
    }
    for last in ["shown", "placed", "answered", "approved", "agent", "fail", "slow", "told", "hello"] {
        edges.push(json!({"from": last, "to": "END"}));
    }
    let nodes: Vec<Value> = shows.into_iter().chain(others).collect();
    json!({"format": "graph/1", "nodes": nodes, "edges": edges, "output": {"said": text}})
}

/// A service with a published workflow, and the model that it calls.
pub(super) async fn service() -> (TestService, Endpoint, Workflow) {
    let (model, hook) = (Endpoint::quick().await, Echo::start().await);
    let t = model.builder().manual_clock().set("SERVICE_EGRESS_ALLOW", hook.allow()).start().await;
    let settings =
        json!({"chat": {"title": {"model": "openai/x"}, "transcription": {"model": "practice/transcribe"}}});
    let graph = desk(&hook.url("/hook"));
    let workflow = t.workflow().graph(graph).published().settings(settings).create().await;
    (t, model, workflow)
}

/// A visitor with a running turn, a parked one, and an open question.
pub(super) struct VisitorTraces<'a> {
    pub(super) person: Person<'a>,
    thread: String,
    canary: &'a str,
    model: &'a Endpoint,
    /// The stream of the running turn.
    _slow: Option<RawAnswer>,
}

impl<'a> VisitorTraces<'a> {
    /// Uses the canary on every route.
    pub(super) async fn leave(
        t: &'a TestService,
        model: &'a Endpoint,
        workflow: &'a Workflow,
        canary: &'a str,
    ) -> Self {
        model.says(&format!("Title of {canary}")).await;
        let (person, thread) = Person::browser(t, workflow, &format!("hello {canary}")).await;
        let mut traces = Self { person, thread, canary, model, _slow: None };
        traces.is_titled().await;
        traces.files_and_items().await;
        traces.actions().await;
        traces.answers().await;
        traces.models().await;
        traces.words().await;
        traces.deleted_thread().await;
        traces.unended_turns().await;
        traces
    }

    async fn ask(&self, kind: &str, params: Value) -> Answer {
        let answer = self.person.ask(kind, params).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
        answer
    }

    /// The events of a successful turn.
    async fn turn(&self, kind: &str, params: Value) -> Vec<Value> {
        let received = events(&self.ask(kind, params).await.text());
        assert_ne!(received.last().unwrap()["type"], "error", "{received:#?}");
        received
    }

    async fn say(&self, word: &str) -> Vec<Value> {
        let input = chat::input(&format!("{word} {}", self.canary));
        self.turn("threads.add_user_message", json!({"thread_id": self.thread, "input": input})).await
    }

    /// The id of the first item with a type.
    async fn item(&self, kind: &str) -> Value {
        let items = self.person.items(&self.thread).await;
        items.iter().find(|item| item["type"] == kind).unwrap()["id"].clone()
    }

    /// Waits for the model's title.
    async fn is_titled(&self) {
        let t = self.person.t;
        let titled = format!("SELECT count(*) FROM threads WHERE title = 'Title of {}'", self.canary);
        t.while_time_passes(until("the title is stored", async || t.scalar(&titled).await == "1")).await;
    }

    /// Attachments that are sent, deleted and only announced, and a turn that shows all item types.
    async fn files_and_items(&self) {
        let (person, canary) = (&self.person, self.canary);
        let text = person.upload(&format!("{canary}.txt"), format!("A file of {canary}.").as_bytes()).await;
        let image = person.upload(&format!("{canary}.png"), &red()).await;
        let deleted = person.upload("deleted.txt", format!("Not {canary}.").as_bytes()).await;
        self.ask("attachments.delete", json!({"attachment_id": deleted})).await;
        let announced = json!({"name": format!("{canary}.pdf"), "size": 5, "mime_type": "application/pdf"});
        self.ask("attachments.create", announced).await;
        let mut input = chat::input(&format!("show {canary}"));
        input["attachments"] = json!([text, image]);
        input["quoted_text"] = json!(format!("quoted {canary}"));
        let params = json!({"thread_id": self.thread, "input": input});
        let mut body = chat::ask(person.workflow, "threads.add_user_message", params);
        body["metadata"] = json!({"page": canary});
        let received = events(&person.post(&body).await.text());
        assert_ne!(received.last().unwrap()["type"], "error", "{received:#?}");
        for kind in ["widget", "task", "workflow", "generated_image"] {
            self.item(kind).await;
        }
    }

    async fn actions(&self) {
        let card = self.item("widget").await;
        let params = |note: &str| {
            let action = json!({"type": "note", "payload": {"note": format!("{note} {}", self.canary)}});
            json!({"thread_id": self.thread, "item_id": card, "action": action})
        };
        self.turn("threads.custom_action", params("first")).await;
        let body = chat::ask(self.person.workflow, "threads.sync_custom_action", params("second"));
        let key = format!("key-{}", self.canary);
        let headers = [JSON, ("idempotency-key", key.as_str())];
        let acted = self.person.send("POST", "/api/chat", &headers, body.to_string()).await.value();
        let text = &acted["updated_item"]["widget"]["children"][0]["value"];
        assert_eq!(*text, format!("second {}", self.canary), "{acted}");
    }

    async fn answers(&self) {
        let called = self.say("tool").await;
        assert_eq!(called.last().unwrap()["item"]["type"], "client_tool_call", "{called:#?}");
        let output =
            json!({"thread_id": self.thread, "result": {"place": format!("street of {}", self.canary)}});
        self.turn("threads.add_client_tool_output", output).await;
        let received = self.say("ask").await;
        let input = json!({"answers": {"q": {"values": [format!("yes, {}", self.canary)]}}});
        let item = &received.last().unwrap()["item"]["id"];
        let submission = json!({"thread_id": self.thread, "item_id": item, "input": input});
        self.turn("threads.add_structured_input", submission).await;
        let (mut open, run) = self.parked().await;
        let t = self.person.t;
        let value = json!({"note": format!("paid, {}", self.canary)});
        assert_eq!(answer(t, &run, "approve", value).await.status, 202);
        let rest = t.while_time_passes(open.rest()).await;
        assert!(rest.contains(&format!("paid, {}", self.canary)), "{rest}");
    }

    /// A turn that waits for a person: its stream and its run.
    async fn parked(&self) -> (RawAnswer, Value) {
        let t = self.person.t;
        let mut open = self.person.open(&self.thread, &format!("approve {}", self.canary)).await;
        t.while_time_passes(open.until("\"clock\"")).await;
        let waiting = format!(
            "SELECT coalesce(string_agg(id::text, ' '), '') FROM runs WHERE status = 'waiting' AND thread_id = '{}'",
            digits(&self.thread)
        );
        t.while_time_passes(until("the turn is parked", async || !t.scalar(&waiting).await.is_empty())).await;
        (open, json!({"id": t.scalar(&waiting).await}))
    }

    /// An agent that reads the file and calls a tool, a retry of its reply, and a failing run.
    async fn models(&self) {
        self.model.calls("look", &json!({"what": self.canary})).await;
        self.model.says(&format!("It is {}.", self.canary)).await;
        let received = self.say("agent").await;
        let requests = json!(self.model.requests().await).to_string();
        assert!(requests.contains(&format!("A file of {}.", self.canary)), "the model reads the file");
        let message = received.iter().find(|event| event["item"]["type"] == "user_message").unwrap();
        let again = json!({"thread_id": self.thread, "item_id": message["item"]["id"]});
        self.turn("threads.retry_after_item", again).await;
        let input = chat::input(&format!("fail {}", self.canary));
        let failed =
            self.ask("threads.add_user_message", json!({"thread_id": self.thread, "input": input})).await;
        assert_eq!(events(&failed.text()).last().unwrap()["type"], "error");
    }

    /// A title, feedback and a recording.
    async fn words(&self) {
        let title = json!({"thread_id": self.thread, "title": format!("Mine: {}", self.canary)});
        self.ask("threads.update", title).await;
        let reply = self.item("assistant_message").await;
        let comment = format!("No, {}", self.canary);
        let feedback =
            json!({"thread_id": self.thread, "item_ids": [reply], "kind": "negative", "comment": comment});
        self.ask("items.feedback", feedback).await;
        let audio = STANDARD.encode(format!("noise practice:{SPOKEN}"));
        let recording = json!({"audio_base64": audio, "mime_type": "audio/webm"});
        assert_eq!(self.ask("input.transcribe", recording).await.value(), json!({"text": SPOKEN}));
    }

    /// A thread that the visitor has deleted.
    async fn deleted_thread(&self) {
        self.model.says(&format!("Title of {}", self.canary)).await;
        let other = thread(&self.person.create(&format!("hello {} again", self.canary)).await);
        self.is_titled().await;
        self.ask("threads.delete", json!({"thread_id": other})).await;
    }

    /// Unfinished turns, and data that the workflow's owner writes.
    async fn unended_turns(&mut self) {
        self.say("ask").await;
        drop(self.parked().await);
        let (t, canary) = (self.person.t, self.canary);
        let mut slow = self.person.open(&self.thread, &format!("slow {canary}")).await;
        t.while_time_passes(slow.until("assistant_message")).await;
        self._slow = Some(slow);
        let path = format!("/api/workflows/{}/chat/threads/{}", self.person.workflow.id, self.thread);
        let change = json!({"title": format!("{canary}, by the owner"), "status": "locked", "reason": format!("We check {canary}.")});
        t.while_time_passes(t.json("PATCH", &path, &change)).await.expect(200);
    }
}
