//! Widget and page actions: as a turn, and as a change to the widget only.

use futures_util::future::join_all;
use integration_tests::{Answer, AnswerExt, JSON, TestService, Workflow, chat, events, graphs};
use serde_json::{Value, json};

/// A card with a counter: the first message sends it, the action `add` increases it, `pause` increases it after 15
/// seconds. `slow`, `fail`, `ask` and `hang` first write 9 on it.
fn counter() -> Value {
    let card = |text: &str| {
        json!({"type": "Card", "children": [{"type": "Text", "id": "n", "value": text},
               {"type": "Button", "label": "More", "onClickAction": {"type": "add"}}]})
    };
    let more = "{{ ((inputs.action.widget.children[0].value | int) + (inputs.action.payload.by | default(1))) | string }}";
    let is =
        |kind: &str| json!({"when": format!("inputs.action and inputs.action.type == '{kind}'"), "to": kind});
    json!({"format": "graph/1",
    "nodes": [
        {"name": "first", "type": "widget", "key": "counter", "widget": card("1")},
        {"name": "add", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card(more)},
        {"name": "say", "type": "reply", "text": "{{ inputs.action | tojson }}"},
        {"name": "tried", "type": "widget", "key": "counter", "widget": card("9")},
        {"name": "pause", "type": "delay", "seconds": 15},
        {"name": "hang", "type": "llm", "model": "practice/rewrite@9000ms", "user": "a b c d e f", "timeout_seconds": 600},
        {"name": "slow", "type": "delay", "seconds": 600},
        {"name": "busy", "type": "llm", "model": "practice/rewrite@9000ms", "user": "a b c d e f", "timeout_seconds": 600},
        {"name": "fail", "type": "assert", "when": "false", "message": "no"},
        {"name": "ask", "type": "wait_for_input", "expires_seconds": 5, "on_error": "continue"},
        {"name": "question", "type": "ask", "expires_seconds": 5, "on_error": "continue",
         "inputs": [{"id": "q", "type": "freeform", "question": "Sure?"}]},
    ],
    "edges": [
        {"from": "START", "cases": [is("add"), is("say"), is("pause"), is("busy"),
            {"when": "inputs.action and inputs.action.type in ['slow', 'fail', 'ask', 'question', 'hang']", "to": "tried"}], "else": "first"},
        {"from": "tried", "cases": [is("slow"), is("fail"), is("ask"), is("question")], "else": "hang"},
        {"from": "pause", "to": "add"},
        {"from": ["first", "add", "say", "slow", "busy", "fail", "ask", "question", "hang"], "to": "END"},
    ]})
}

/// A thread with a card. Without a cookie, the thread is the session.
pub(crate) struct Card {
    pub(crate) workflow: Workflow,
    thread: String,
    item: String,
}

impl Card {
    async fn start(t: &TestService) -> Self {
        Self::start_with(t, counter()).await
    }

    /// Starts a thread whose first message sends a card.
    pub(crate) async fn start_with(t: &TestService, graph: Value) -> Self {
        let workflow = t.workflow().graph(graph).published().create().await;
        let began = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
        let widget = began.iter().find(|event| event["item"]["type"] == "widget").unwrap();
        let text = |name: &str| widget["item"][name].as_str().unwrap().to_owned();
        Self { workflow, thread: text("thread_id"), item: text("id") }
    }

    pub(crate) fn request(&self, kind: &str, action: Value) -> Value {
        let params = json!({"thread_id": self.thread, "item_id": self.item, "action": action});
        chat::ask(&self.workflow, kind, params)
    }

    pub(crate) async fn sync(&self, t: &TestService, action: Value) -> Answer {
        t.chat(&self.request("threads.sync_custom_action", action)).await
    }

    /// The number on the stored card.
    async fn number(&self, t: &TestService) -> String {
        let params = json!({"thread_id": self.thread, "order": "asc"});
        let items = t.chat(&chat::ask(&self.workflow, "items.list", params)).await.value();
        let items = items["data"].as_array().unwrap().clone();
        let widget = items.iter().find(|item| item["id"] == *self.item).unwrap();
        widget["widget"]["children"][0]["value"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_action_is_a_turn_without_a_message() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let action = json!({"type": "add", "payload": {"by": 4}});
    let answer = t.chat(&card.request("threads.custom_action", action)).await;
    let stream_events = events(&answer.text());
    let kinds: Vec<&str> = stream_events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["stream_options", "thread.item.replaced"]);
    assert_eq!(stream_events[1]["item"]["id"], *card.item);
    assert_eq!(card.number(&t).await, "5");
    let run = t.scalar("SELECT concat_ws(' ', trigger, status) FROM runs ORDER BY id DESC LIMIT 1").await;
    assert_eq!(run, "chat succeeded");
}

#[tokio::test]
async fn a_graph_receives_the_action_with_its_widget() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let action = json!({"type": "say", "payload": {"a": [null, 1]}});
    let stream_events = events(&t.chat(&card.request("threads.custom_action", action)).await.text());
    let text = stream_events.last().unwrap()["item"]["content"][0]["text"].as_str().unwrap().to_owned();
    let received: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&received["type"], &received["payload"]), (&json!("say"), &json!({"a": [null, 1]})));
    assert_eq!((&received["item_id"], &received["key"]), (&json!(card.item), &json!("counter")));
    assert_eq!(received["widget"]["children"][0]["value"], "1");
    // An action of the page itself.
    let params = json!({"thread_id": card.thread, "action": {"type": "say"}});
    let stream_events =
        events(&t.chat(&chat::ask(&card.workflow, "threads.custom_action", params)).await.text());
    let text = stream_events.last().unwrap()["item"]["content"][0]["text"].as_str().unwrap().to_owned();
    let expected = json!({"type": "say", "payload": null, "item_id": null, "key": null, "widget": null});
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[tokio::test]
async fn a_sync_action_returns_the_changed_widget() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let answer = card.sync(&t, json!({"type": "add"})).await.expect(200);
    let item = answer.value()["updated_item"].clone();
    assert_eq!((&item["id"], &item["widget"]["children"][0]["value"]), (&json!(card.item), &json!("2")));
    assert_eq!(card.number(&t).await, "2");
    let reply = card.sync(&t, json!({"type": "say"})).await;
    assert_eq!((reply.status, reply.value()), (200, json!({})), "a reply item is not returned");
    let items = "SELECT count(*) FROM thread_items";
    assert_eq!(t.scalar(items).await, "2", "the reply is not stored in the thread");
    let run = t.scalar("SELECT concat_ws(' ', trigger, status) FROM runs ORDER BY id DESC LIMIT 1").await;
    assert_eq!(run, "action succeeded");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items WHERE before IS NOT NULL").await, "0");
}

#[tokio::test]
async fn sync_actions_run_during_a_turn_and_the_last_write_wins() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let turn = t.open_chat(&card.request("threads.custom_action", json!({"type": "busy"}))).await;
    let acting = (1..=6).map(|by| card.sync(&t, json!({"type": "add", "payload": {"by": by}})));
    let answers = join_all(acting).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    // Each action reads the stored state, which may include other actions. The stored state is one of the results.
    let numbers: Vec<Value> = answers
        .iter()
        .map(|answer| answer.value()["updated_item"]["widget"]["children"][0]["value"].clone())
        .collect();
    let number = card.number(&t).await;
    assert!(numbers.contains(&json!(number)), "{number} of {numbers:?}");
    let busy = "SELECT count(*) FROM runs WHERE trigger = 'chat' AND finished_at IS NULL";
    assert_eq!(t.scalar(busy).await, "1", "the turn has not ended yet");
    t.stop_turn(turn.header("x-chat-stream-id").unwrap()).await;
}

#[tokio::test]
async fn a_failed_sync_action_changes_nothing() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    for kind in ["fail", "ask", "question", "slow"] {
        let answer = card.sync(&t, json!({"type": kind})).await;
        assert_eq!(answer.refusal(), "502 chat.action_failed", "{kind}");
    }
    assert_eq!(card.number(&t).await, "1");
    assert_eq!(
        t.scalar("SELECT count(*) FROM runs WHERE trigger = 'action' AND status = 'failed'").await,
        "4"
    );
    t.assert_no_rows("run_queue").await;
}

#[tokio::test]
async fn sync_actions_time_out_after_thirty_seconds() {
    let t = TestService::with_manual_clock().await;
    let card = Card::start(&t).await;
    let answer = t.while_time_passes(card.sync(&t, json!({"type": "hang"}))).await;
    assert_eq!(answer.refusal(), "504 chat.action_timeout");
    assert_eq!(card.number(&t).await, "1");
    let answer = t.while_time_passes(card.sync(&t, json!({"type": "pause"}))).await;
    assert_eq!(
        (answer.status, card.number(&t).await.as_str()),
        (200, "2"),
        "the action completes after a shorter delay"
    );
}

#[tokio::test]
async fn an_invalid_action_is_rejected_before_a_run_starts() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let items =
        t.chat(&chat::ask(&card.workflow, "items.list", json!({"thread_id": card.thread}))).await.value();
    let message = items["data"].as_array().unwrap().last().unwrap()["id"].clone();
    let long = "a".repeat(201);
    for (params, refusal, problem) in [
        (json!({"thread_id": "thr_1", "action": {"type": "add"}}), "404 thread.not_found", ""),
        (json!({"item_id": "msg_1", "action": {"type": "add"}}), "404 item.not_found", ""),
        (
            json!({"item_id": 1, "action": {"type": "add"}}),
            "422 chat.invalid_request",
            "/params/item_id type",
        ),
        (json!({"action": {"type": ""}}), "422 chat.invalid_request", "/params/action/type length"),
        (json!({"action": {"type": long}}), "422 chat.invalid_request", "/params/action/type length"),
        (json!({"action": {"type": 1}}), "422 chat.invalid_request", "/params/action/type type"),
        (json!({"action": {}}), "422 chat.invalid_request", "/params/action/type required"),
        (json!({"action": "add"}), "422 chat.invalid_request", "/params/action type"),
        (json!({}), "422 chat.invalid_request", "/params/action required"),
    ] {
        let mut all = json!({"thread_id": card.thread});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        for kind in ["threads.custom_action", "threads.sync_custom_action"] {
            let answer = t.chat(&chat::ask(&card.workflow, kind, all.clone())).await;
            assert_eq!(answer.refusal(), refusal, "{kind} {params}");
            assert_eq!(answer.problems().concat(), problem, "{kind} {params}");
        }
    }
    let params = json!({"thread_id": card.thread, "item_id": message, "action": {"type": "add"}});
    let sync = t.chat(&chat::ask(&card.workflow, "threads.sync_custom_action", params.clone())).await;
    assert_eq!(
        (sync.refusal(), sync.problems().concat()),
        ("422 chat.invalid_request".into(), "/params/item_id kind".into())
    );
    let stream_events =
        events(&t.chat(&chat::ask(&card.workflow, "threads.custom_action", params)).await.text());
    assert_eq!(
        (stream_events.len(), &stream_events[0]["type"], &stream_events[0]["code"]),
        (1, &json!("error"), &json!("stream.error"))
    );
    assert_eq!(stream_events[0]["allow_retry"], false);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_graph_that_does_not_read_actions_rejects_them() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let began = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
    let params = json!({"thread_id": began[0]["thread"]["id"], "action": {"type": "add"}});
    let stream_events =
        events(&t.chat(&chat::ask(&workflow, "threads.custom_action", params.clone())).await.text());
    assert_eq!(stream_events.len(), 2);
    assert_eq!(stream_events[0]["type"], "stream_options");
    assert_eq!(
        (&stream_events[1]["error_code"], &stream_events[1]["allow_retry"]),
        (&json!("chat.action_unhandled"), &json!(false))
    );
    let sync = t.chat(&chat::ask(&workflow, "threads.sync_custom_action", params)).await;
    assert_eq!(sync.refusal(), "422 chat.action_unhandled");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn an_idempotency_key_identifies_one_action() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    let headers = [JSON, ("idempotency-key", "0123456789abcdef")];
    let body = card.request("threads.sync_custom_action", json!({"type": "add"})).to_string();
    let answers = join_all((0..5).map(|_| t.send("POST", "/api/chat", &headers, &body))).await;
    assert!(
        answers.iter().all(|answer| answer.status == 200 && answer.value() == answers[0].value()),
        "{answers:?}"
    );
    assert_eq!(card.number(&t).await, "2");
    let other = card.request("threads.sync_custom_action", json!({"type": "say"})).to_string();
    let reused = t.send("POST", "/api/chat", &headers, &other).await;
    assert_eq!(reused.refusal(), "422 idempotency.key_reused");
    let again = body;
    let first = headers;
    let headers = [JSON, ("idempotency-key", "fedcba9876543210")];
    let body = card.request("threads.custom_action", json!({"type": "add"})).to_string();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let answer = t.send("POST", "/api/chat", &headers, &body).await;
        streams.push(answer.header("x-chat-stream-id").unwrap().to_owned());
    }
    assert_eq!((streams[0] == streams[1], card.number(&t).await.as_str()), (true, "3"));
    // The stored result is not returned after the thread is deleted.
    let params = json!({"thread_id": card.thread});
    assert_eq!(t.chat(&chat::ask(&card.workflow, "threads.delete", params)).await.status, 200);
    let gone = t.send("POST", "/api/chat", &first, &again).await;
    assert_eq!(gone.refusal(), "404 thread.not_found");
}

#[tokio::test]
async fn a_locked_thread_accepts_no_action() {
    let t = TestService::start().await;
    let card = Card::start(&t).await;
    for (status, code) in [("locked", "409 thread.locked"), ("closed", "409 thread.closed")] {
        t.execute(&format!("UPDATE threads SET status = '{status}'")).await;
        for kind in ["threads.custom_action", "threads.sync_custom_action"] {
            let answer = t.chat(&card.request(kind, json!({"type": "add"}))).await;
            assert_eq!(answer.refusal(), code, "{kind}");
        }
    }
}

#[tokio::test]
async fn an_action_does_not_see_messages_queued_after_it() {
    let t = TestService::start().await;
    let wait = json!({"name": "wait", "type": "llm", "model": "practice/rewrite@400ms", "user": "a b c d"});
    let tell = json!({"name": "tell", "type": "reply", "text": "{{ messages | map(attribute='content') | join('|') }}"});
    let mut graph = graphs::chain(&[wait, tell], None);
    graph["output"] = json!("{{ inputs.action }}");
    let workflow = t.workflow().graph(graph).published().create().await;
    let began = events(&t.chat(&chat::create(&workflow, "one")).await.text());
    let thread = began[0]["thread"]["id"].as_str().unwrap().to_owned();
    // The action waits for a running turn, and a message is stored after the action before the action begins.
    let mut first = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
    let params = json!({"thread_id": thread, "action": {"type": "x"}});
    let mut acting = t.open_chat(&chat::ask(&workflow, "threads.custom_action", params)).await;
    let mut last = t.open_chat(&chat::add(&workflow, &thread, "three")).await;
    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    assert_eq!(t.scalar(unfinished).await, "3", "all turns wait or execute");
    let text =
        |body: &str| events(body).last().unwrap()["item"]["content"][0]["text"].as_str().unwrap().to_owned();
    let (two, acted, three) = (first.rest().await, acting.rest().await, last.rest().await);
    assert_eq!(text(&two), "one|one|two");
    assert_eq!(text(&acted), "one|one|two|one|one|two");
    assert_eq!(text(&three), "one|one|two|one|one|two|one|one|two|one|one|two|three");
    t.until_scalar("all turns end", unfinished, "0").await;
}

#[tokio::test]
async fn the_example_card_updates_itself() {
    let t = TestService::start().await;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pictures.json");
    let graph: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let workflow = t.workflow().graph(graph).published().create().await;
    let stream_events = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
    let item = &stream_events.iter().find(|event| event["item"]["type"] == "widget").unwrap()["item"];
    let button = &item["widget"]["children"][1]["children"][0]["onClickAction"];
    let params = json!({"thread_id": item["thread_id"], "item_id": item["id"],
                        "action": {"type": button["type"], "payload": button["payload"]}});
    let answer = t.chat(&chat::ask(&workflow, "threads.sync_custom_action", params)).await;
    let text = answer.value()["updated_item"]["widget"]["children"][0]["value"].clone();
    assert_eq!(text, "You answered yes. Thank you.", "{}", answer.text());
}
