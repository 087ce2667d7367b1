//! Turns that end with a question, and the answers that continue them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{
    Answer, AnswerExt, Endpoint, JSON, TestService, Workflow, chat, events, graphs, until, within,
};
use serde_json::{Value, json};

use crate::waiting_runs::answer;

/// Asks for confirmation, refunds on `yes`, and reads the thread at the end.
pub(crate) fn desk() -> Value {
    json!({"format": "graph/1", "nodes": [
        {"name": "checking", "type": "reply", "text": "Checking {{ inputs.message }}. "},
        {"name": "confirm", "type": "ask", "inputs": [
            {"id": "ok", "type": "multiple_choice", "question": "Send it back?", "options": [{"value": "yes"}, {"value": "no"}]},
            {"id": "why", "type": "freeform", "question": "Why?"}]},
        {"name": "refund", "type": "reply", "text": "Refunded: {{ results.confirm.answers.why['values'] | join }}."},
        {"name": "kept", "type": "reply", "text": "Kept."},
        {"name": "read", "type": "set", "values": {"messages": "{{ messages }}", "by": "{{ results.confirm.answered_by }}"}}],
      "edges": [{"from": "START", "to": "checking"}, {"from": "checking", "to": "confirm"},
        {"from": "confirm", "cases": [{"when": "'yes' in results.confirm.answers.ok['values']", "to": "refund"}], "else": "kept"},
        {"from": "refund", "to": "read"}, {"from": "kept", "to": "read"}, {"from": "read", "to": "END"}],
      "output": {"read": "{{ results.read }}"}})
}

/// Calls a page tool and says its result.
fn place() -> Value {
    graphs::chain(
        &[
            json!({"name": "where", "type": "client_tool", "tool": "get_location", "arguments": {"for": "{{ inputs.message }}"}}),
            json!({"name": "say", "type": "reply", "text": "You are in {{ results.where.output.city }}."}),
        ],
        None,
    )
}

/// A turn that has ended with a question.
pub(crate) struct PendingQuestion {
    pub(crate) workflow: Workflow,
    pub(crate) thread: String,
    item: Value,
}

impl PendingQuestion {
    pub(crate) async fn start(t: &TestService, graph: Value) -> Self {
        let workflow = t.workflow().graph(graph).published().create().await;
        Self::start_with(t, workflow, "order 7").await
    }

    pub(crate) async fn start_with(t: &TestService, workflow: Workflow, text: &str) -> Self {
        let answer = within("the turn ends", t.chat(&chat::create(&workflow, text))).await;
        Self::from(workflow, answer)
    }

    /// Like [`Self::start`], with a manual clock.
    pub(crate) async fn start_timed(t: &TestService, graph: Value) -> Self {
        let workflow = t.workflow().graph(graph).published().create().await;
        let answer = t.while_time_passes(t.chat(&chat::create(&workflow, "order 7"))).await;
        Self::from(workflow, answer)
    }

    fn from(workflow: Workflow, answer: Answer) -> Self {
        let received = events(&answer.text());
        let last = received.last().unwrap();
        assert_eq!(
            (&last["type"], &last["item"]["status"]),
            (&json!("thread.item.done"), &json!("pending")),
            "{received:#?}"
        );
        let thread = last["item"]["thread_id"].as_str().unwrap().to_owned();
        Self { workflow, thread, item: last["item"].clone() }
    }

    pub(crate) fn submission(&self, input: Value) -> Value {
        let params = json!({"thread_id": self.thread, "item_id": self.item["id"], "input": input});
        chat::ask(&self.workflow, "threads.add_structured_input", params)
    }

    pub(crate) fn output(&self, result: Value) -> Value {
        let params = json!({"thread_id": self.thread, "result": result});
        chat::ask(&self.workflow, "threads.add_client_tool_output", params)
    }

    pub(crate) async fn items(&self, t: &TestService) -> Vec<Value> {
        let params = json!({"thread_id": self.thread, "order": "asc", "limit": 100});
        let list = t.chat(&chat::ask(&self.workflow, "items.list", params)).await.value();
        list["data"].as_array().unwrap().clone()
    }

    /// The item types, with their text or status.
    pub(crate) async fn shown(&self, t: &TestService) -> Vec<String> {
        let label = |item: &Value| match item["type"].as_str().unwrap() {
            "user_message" | "assistant_message" => item["content"][0]["text"].as_str().unwrap().to_owned(),
            kind => format!("{kind} {}", item["status"].as_str().unwrap()),
        };
        self.items(t).await.iter().map(label).collect()
    }
}

/// Counts the succeeded runs.
pub(crate) const SUCCEEDED: &str = "SELECT count(*) FROM runs WHERE status = 'succeeded'";

pub(crate) fn yes() -> Value {
    json!({"answers": {"ok": {"values": ["yes"]}, "why": {"values": ["broken"]}}})
}

pub(crate) async fn run_at(t: &TestService, place: usize) -> Value {
    let id = t.scalar(&format!("SELECT id FROM runs ORDER BY id OFFSET {place} LIMIT 1")).await;
    t.get(&format!("/api/runs/{id}")).await.value()
}

fn kinds(answer: &Answer) -> Vec<String> {
    events(&answer.text()).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn answers_continue_the_turn_that_asked() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    assert_eq!(question.shown(&t).await, ["order 7", "Checking order 7. ", "structured_input pending"]);
    let first = run_at(&t, 0).await;
    let waits =
        json!({"key": "confirm", "kind": "ask", "item_id": question.item["id"], "message": "Send it back?"});
    for (name, expected) in waits.as_object().unwrap() {
        assert_eq!(first["waits_for"][0][name], *expected, "{first:#}");
    }
    assert_eq!(
        (&first["status"], &first["output"], &first["continued_by"]),
        (&json!("succeeded"), &json!(null), &json!(null))
    );

    let answered = within("the answer", t.chat(&question.submission(yes()))).await;
    let received = events(&answered.text());
    assert_eq!(received[0]["type"], "stream_options");
    let replaced = &received[1];
    assert_eq!(
        (&replaced["type"], &replaced["item"]["id"]),
        (&json!("thread.item.replaced"), &question.item["id"])
    );
    assert_eq!(replaced["item"]["status"], "answered");
    assert_eq!(replaced["item"]["inputs"][1]["answer"], json!({"values": ["broken"], "skipped": false}));
    assert!(!answered.text().contains("Checking"), "sent text is not repeated: {}", answered.text());
    assert_eq!(
        question.shown(&t).await,
        ["order 7", "Checking order 7. ", "structured_input answered", "Refunded: broken."]
    );
    let (first, second) = (run_at(&t, 0).await, run_at(&t, 1).await);
    assert_eq!((&first["continued_by"], &first["waits_for"]), (&second["id"], &json!([])));
    assert_eq!((&second["origin_run_id"], &second["version_id"]), (&first["id"], &first["version_id"]));
    assert_eq!((&second["inputs"], &second["status"]), (&first["inputs"], &json!("succeeded")), "{second:#}");
    // The answer is part of the messages, after the earlier ones.
    let read = &second["output"]["read"];
    let history: Vec<(&str, &str)> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    let expected = [
        ("user", "order 7"),
        ("assistant", "Checking order 7. "),
        ("user", "Send it back?: yes\nWhy?: broken"),
    ];
    assert_eq!(history, expected);
    assert_eq!(read["by"], json!(null), "a caller without a cookie has no name");
    // Each step was executed once: the second run has copies of the first run's steps.
    let trace = t.get(&format!("/api/runs/{}/trace", second["id"].as_str().unwrap())).await.value();
    assert!(trace["steps"].is_array(), "{trace:#}");
    let nodes: Vec<&str> =
        trace["steps"].as_array().unwrap().iter().map(|step| step["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["checking", "confirm", "refund", "read"]);
    assert_eq!(
        t.scalar("SELECT count(*) FROM run_steps WHERE node = 'checking' AND status = 'succeeded'").await,
        "2"
    );
}

#[tokio::test]
async fn a_turn_continues_after_a_restart_and_a_day() {
    let mut t = TestService::with_manual_clock().await;
    let question = PendingQuestion::start_timed(&t, desk()).await;
    t.advance(Duration::from_secs(30 * 3_600));
    t.restart().await;
    let answered = t.while_time_passes(t.chat(&question.submission(json!({"status": "skipped"})))).await;
    let received = events(&answered.text());
    assert_eq!(received[1]["item"]["status"], "skipped", "{}", answered.text());
    assert_eq!(question.shown(&t).await.last().unwrap(), "Kept.", "{}", answered.text());
}

#[tokio::test]
async fn one_of_many_concurrent_answers_continues_the_turn() {
    let t = TestService::start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let body = question.submission(yes());
    let send = |number: usize| {
        let (body, t) = (body.clone(), if number.is_multiple_of(2) { &t } else { &other });
        async move { t.chat(&body).await }
    };
    let answers = within("fifty answers", join_all((0..50).map(send))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(taken.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    let stream = taken[0].header("x-chat-stream-id").unwrap();
    for refused in refused {
        assert_eq!(refused.refusal(), "409 item.not_pending");
        assert_eq!(refused.value()["detail"]["stream_id"], stream, "{}", refused.text());
    }
    assert!(taken[0].text().contains("Refunded: broken."), "{}", taken[0].text());
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
    // Another device reads the same stream.
    let again = other.resume(stream, None).await.rest().await;
    assert!(again.contains("Refunded: broken."), "{again}");
}

#[tokio::test]
async fn a_repeated_answer_with_a_key_returns_the_stream() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let headers = [JSON, ("idempotency-key", "an-answer-of-mine-1")];
    let mut streams = BTreeSet::new();
    for _ in 0..3 {
        let answer = t.send("POST", "/api/chat", &headers, question.submission(yes()).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("Refunded"));
        streams.insert(answer.header("x-chat-stream-id").unwrap().to_owned());
    }
    assert_eq!(streams.len(), 1);
    let other = t.send("POST", "/api/chat", &headers, question.submission(json!({})).to_string()).await;
    assert_eq!(other.refusal(), "422 idempotency.key_reused");
}

#[tokio::test]
async fn a_client_tool_output_continues_the_turn() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, place()).await;
    let call = &question.item;
    assert_eq!((&call["type"], &call["name"]), (&json!("client_tool_call"), &json!("get_location")));
    assert_eq!(call["arguments"], json!({"for": "order 7"}));
    assert_eq!(run_at(&t, 0).await["waits_for"][0]["kind"], "client_tool");
    let answered =
        within("the output", t.chat(&question.output(json!({"city": "Paris", "none": null})))).await;
    assert!(answered.text().contains("You are in Paris."), "{}", answered.text());
    let items = question.items(&t).await;
    assert_eq!(
        (&items[1]["status"], &items[1]["output"]),
        (&json!("completed"), &json!({"city": "Paris", "none": null}))
    );
    // It is not the last item any more.
    let again = t.chat(&question.output(json!(1))).await;
    assert_eq!(again.problems(), ["/params/thread_id state"], "{}", again.text());
}

#[tokio::test]
async fn an_agent_calls_client_tools() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let graph = graphs::chain(
        &[
            json!({"name": "help", "type": "agent", "model": "openai/x", "messages": "{{ messages }}", "stream": true, "tools": [
            {"type": "client", "name": "get_location", "description": "Where the user is.",
             "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}}}]}),
        ],
        None,
    );
    model.calls("get_location", &json!({"precise": true})).await;
    let question = PendingQuestion::start(&t, graph).await;
    assert_eq!(question.item["arguments"], json!({"precise": true}));
    model.calls("get_location", &json!({"precise": false})).await;
    let answered = within("the output", t.chat(&question.output(json!({"city": "Paris"})))).await;
    let received = events(&answered.text());
    assert_eq!(received.last().unwrap()["item"]["arguments"], json!({"precise": false}), "it asks again");
    model.says("Paris it is.").await;
    let ended = within("the end", t.chat(&question.output(json!("here")))).await;
    assert!(ended.text().contains("Paris it is."), "{}", ended.text());
    // Each model call was made once, and read the earlier calls once.
    let requests = model.requests().await;
    assert_eq!(requests.len(), 3);
    let roles: Vec<&str> =
        requests[2]["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(requests[2]["messages"][2]["content"], r#"{"city":"Paris"}"#);
    // A later turn reads the calls with their outputs.
    t.chat(&chat::add(&question.workflow, &question.thread, "thanks")).await.expect(200);
    let requests = model.requests().await;
    let messages = requests[3]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"]);
    assert_eq!(messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]);
}

/// Two questions at once, in parallel branches.
pub(crate) fn both(second: Value) -> Value {
    let ask = |name: &str| json!({"name": name, "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": format!("{name}?")}]});
    let text = "{{ results.%.answers.q['values'] | join }}. ";
    json!({"format": "graph/1", "nodes": [
        ask("left"), second,
        {"name": "said_left", "type": "reply", "text": format!("Left: {}", text.replace('%', "left"))},
        {"name": "said_right", "type": "reply", "text": "Right: {{ (results.right is defined) | string | lower }}."}],
      "edges": [{"from": "START", "to": "left"}, {"from": "START", "to": "right"}, {"from": "left", "to": "said_left"}, {"from": "right", "to": "said_right"},
                {"from": ["said_left", "said_right"], "to": "END"}]})
}

#[tokio::test]
async fn each_answer_continues_its_branch() {
    let t = TestService::start().await;
    let right = json!({"name": "right", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "right?"}]});
    let question = PendingQuestion::start(&t, both(right)).await;
    let (pending, answered) = ("structured_input pending", "structured_input answered");
    assert_eq!(question.shown(&t).await, ["order 7", pending, pending]);
    let items = question.items(&t).await;
    let of = |item: &Value, text: &str| {
        let input = json!({"answers": {"q": {"values": [text]}}});
        let params = json!({"thread_id": question.thread, "item_id": item["id"], "input": input});
        chat::ask(&question.workflow, "threads.add_structured_input", params)
    };
    let (left, right) = match items[1]["inputs"][0]["question"] == "left?" {
        true => (&items[1], &items[2]),
        false => (&items[2], &items[1]),
    };
    let first = within("the first", t.chat(&of(left, "one"))).await;
    // The step after both branches waits for both.
    assert_eq!(kinds(&first), ["stream_options", "thread.item.replaced"], "{}", first.text());
    assert_eq!(run_at(&t, 1).await["waits_for"][0]["item_id"], right["id"], "the other question moves");
    let second = within("the second", t.chat(&of(right, "two"))).await;
    assert!(second.text().contains("Left: one. "), "{}", second.text());
    assert_eq!(question.shown(&t).await, ["order 7", answered, answered, "Left: one. Right: true."]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded'").await, "3");
}

#[tokio::test]
async fn answers_without_a_pending_question_are_rejected() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let ask = |kind: &str, params: Value| {
        let body = chat::ask(&question.workflow, kind, params);
        let t = &t;
        async move { t.chat(&body).await }
    };
    let (submit, output) = ("threads.add_structured_input", "threads.add_client_tool_output");
    let (thread, item) = (&question.thread, &question.item["id"]);
    let message = question.items(&t).await[0]["id"].clone();
    let unknown = format!("msg_{}", "0".repeat(48));
    for (params, expected) in [
        (json!({"thread_id": thread, "item_id": unknown, "input": {}}), "404 item.not_found"),
        (json!({"thread_id": thread, "item_id": "msg_1", "input": {}}), "404 item.not_found"),
        (json!({"thread_id": thread, "item_id": message, "input": {}}), "422 chat.invalid_request"),
        (
            json!({"thread_id": "thr_00000000000000000000000000000000", "item_id": item, "input": {}}),
            "404 thread.not_found",
        ),
        (json!({"thread_id": thread, "item_id": item}), "422 chat.invalid_request"),
        (json!({"thread_id": thread, "item_id": item, "input": []}), "422 chat.invalid_request"),
        (
            json!({"thread_id": thread, "item_id": item, "input": {"status": "done"}}),
            "422 chat.invalid_request",
        ),
        (json!({"thread_id": thread, "item_id": item, "input": {"answers": []}}), "422 chat.invalid_request"),
        (
            json!({"thread_id": thread, "item_id": item, "input": {"answers": {"ok": "yes"}}}),
            "422 chat.invalid_request",
        ),
    ] {
        assert_eq!(ask(submit, params.clone()).await.refusal(), expected, "{params}");
    }
    for (params, expected) in [
        (json!({"thread_id": thread}), "422 chat.invalid_request"),
        (json!({"thread_id": thread, "result": 1}), "422 chat.invalid_request"),
        (json!({"result": 1}), "422 chat.invalid_request"),
    ] {
        assert_eq!(ask(output, params.clone()).await.refusal(), expected, "{params}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
    assert_eq!(t.scalar("SELECT count(*) FROM run_questions WHERE answer IS NOT NULL").await, "0");
    assert_eq!(question.shown(&t).await[2], "structured_input pending");
    // A locked thread may wait for an approval; a closed one cannot.
    let status = |status: &str| format!("UPDATE threads SET status = '{status}'");
    t.execute(&status("closed")).await;
    assert_eq!(
        ask(submit, json!({"thread_id": thread, "item_id": item, "input": {}})).await.refusal(),
        "409 thread.closed"
    );
    assert_eq!(ask(output, json!({"thread_id": thread, "result": 1})).await.refusal(), "409 thread.closed");
    t.execute(&status("locked")).await;
    assert_eq!(ask(submit, json!({"thread_id": thread, "item_id": item, "input": {}})).await.status, 200);
}

#[tokio::test]
async fn a_message_instead_of_an_answer_keeps_the_question_pending() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let later = t.chat(&chat::add(&question.workflow, &question.thread, "order 8")).await;
    assert_eq!(kinds(&later).last().unwrap(), "thread.item.done");
    assert_eq!(question.shown(&t).await[2], "structured_input pending");
    let answered = t.chat(&question.submission(yes())).await;
    assert!(answered.text().contains("Refunded: broken."), "{}", answered.text());
    // The continuing turn first reads the conversation since then, and its own part last.
    let read = run_at(&t, 2).await["output"]["read"]["messages"].clone();
    let contents: Vec<&str> =
        read.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(contents[..3], ["order 8", "Checking order 8. ", "order 7"], "{contents:?}");
    assert!(contents.last().unwrap().starts_with("Send it back?: yes"));
    // A client tool call that is not the last item cannot be answered any more.
    let call = PendingQuestion::start(&t, place()).await;
    t.chat(&chat::add(&call.workflow, &call.thread, "hello")).await;
    let items = call.items(&t).await;
    assert_eq!(
        (&items[1]["status"], items.last().unwrap()["id"] != items[1]["id"]),
        (&json!("pending"), true)
    );
}

#[tokio::test]
async fn runs_without_a_thread_answer_questions_as_inputs() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(desk()).create().await;
    let run = t.post(&workflow.path("/runs?wait=30"), r#"{"inputs": {"message": "m"}}"#).await.value();
    assert_eq!((&run["status"], &run["waits_for"][0]["kind"]), (&json!("waiting"), &json!("ask")), "{run:#}");
    assert_eq!(answer(&t, &run, "confirm", json!({"answers": 1})).await.refusal(), "422 run.input_invalid");
    assert_eq!(answer(&t, &run, "confirm", yes()).await.status, 202);
    until("the run ends", async || run_at(&t, 0).await["status"] == "succeeded").await;
    let workflow = t.workflow().graph(place()).create().await;
    let run = t.post(&workflow.path("/runs?wait=30"), r#"{"inputs": {"message": "m"}}"#).await.value();
    assert_eq!(run["waits_for"][0]["kind"], "client_tool");
    assert_eq!(answer(&t, &run, "where", json!({"city": "Rome"})).await.status, 202);
    until("the run ends", async || run_at(&t, 1).await["status"] == "succeeded").await;
}
