//! Several questions in one turn: answers that arrive while a continuing turn executes, and sequential page tool calls.

use integration_tests::{Endpoint, TestService, chat, events, graphs, until, within};
use serde_json::{Value, json};

use crate::questions::{PendingQuestion, run_at};

fn ask(name: &str) -> Value {
    let question = json!({"id": "q", "type": "freeform", "question": format!("{name}?")});
    json!({"name": name, "type": "ask", "inputs": [question]})
}

/// A form in a separate workflow, followed by a model call and `last`; another question runs in parallel.
async fn two_questions(t: &TestService, last: Value) -> PendingQuestion {
    let think = json!({"name": "think", "type": "llm", "model": "openai/x", "user": "go"});
    let form = t.workflow().graph(graphs::chain(&[ask("form"), think, last], None)).create().await;
    let text = "Both, and {{ results.right.answers.q['values'] | join }}.";
    let graph = json!({"format": "graph/1", "nodes": [
        {"name": "form", "type": "sub_workflow", "workflow": form.id}, ask("right"),
        {"name": "both", "type": "reply", "text": text, "new_message": true}],
      "edges": [{"from": "START", "to": "form"}, {"from": "START", "to": "right"},
                {"from": ["form", "right"], "to": "both"}, {"from": "both", "to": "END"}]});
    PendingQuestion::start(t, graph).await
}

/// The answer to the question with this text.
async fn submission(t: &TestService, turn: &PendingQuestion, question: &str, value: &str) -> Value {
    let items = turn.items(t).await;
    let item = items.iter().find(|item| item["inputs"][0]["question"] == question).unwrap();
    let input = json!({"answers": {"q": {"values": [value]}}});
    let params = json!({"thread_id": turn.thread, "item_id": item["id"], "input": input});
    chat::ask(&turn.workflow, "threads.add_structured_input", params)
}

/// The events in the streams of both answers: the second answer arrives while the first continuing turn waits for the
/// model.
async fn both_streams(t: &TestService, turn: &PendingQuestion, model: &Endpoint) -> (Vec<Value>, Vec<Value>) {
    let mut first = t.open_chat(&submission(t, turn, "form?", "one").await).await;
    until("the model is called", async || model.asked() == 1).await;
    let mut second = t.open_chat(&submission(t, turn, "right?", "two").await).await;
    assert_eq!((first.status, second.status), (200, 200));
    let begun = second.until("thread.item.replaced").await;
    // The answer is stored while the first turn executes.
    let stored = "SELECT count(*) FROM run_questions WHERE answer IS NOT NULL";
    assert_eq!(t.scalar(stored).await, "2");
    assert_eq!(turn.shown(t).await, ["order 7", "structured_input answered", "structured_input answered"]);
    assert_eq!(run_at(t, 1).await["finished_at"], json!(null));
    model.release();
    let (first, second) =
        within("both streams end", async { futures_util::join!(first.rest(), second.rest()) }).await;
    // No turn in the thread starts before the previous one has ended.
    let overlaps = "SELECT count(*) FROM runs a JOIN runs b ON b.id > a.id AND b.started_at < a.finished_at";
    assert_eq!(t.scalar(overlaps).await, "0");
    (events(&first), events(&(begun + &second)))
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_answer_during_a_continuation_gets_the_next_turn() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let turn = two_questions(&t, json!({"name": "noted", "type": "reply", "text": "Noted."})).await;
    let (first, second) = both_streams(&t, &turn, &model).await;
    let reply_text = |events: &[Value]| events.last().unwrap()["item"]["content"][0]["text"].clone();
    assert_eq!((reply_text(&first), reply_text(&second)), (json!("Noted."), json!("Both, and two.")));
    assert_eq!(kinds(&second)[..2], ["stream_options", "thread.item.replaced"]);
    assert!(!kinds(&first).contains(&"notice") && !kinds(&second).contains(&"notice"));
    assert_eq!(turn.shown(&t).await[3..], ["Noted.", "Both, and two."]);
    // Each run continues the previous one, and the model was called once.
    let (one, two) = (run_at(&t, 1).await, run_at(&t, 2).await);
    assert_eq!((&one["continued_by"], &two["origin_run_id"]), (&two["id"], &one["id"]));
    assert_eq!((model.asked(), t.scalar("SELECT count(*) FROM runs").await.as_str()), (1, "3"));
}

#[tokio::test]
async fn an_answer_without_a_continuation_ends_with_a_notice() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let turn =
        two_questions(&t, json!({"name": "no", "type": "assert", "when": "false", "message": "no"})).await;
    let (first, second) = both_streams(&t, &turn, &model).await;
    assert_eq!(kinds(&first).last(), Some(&"error"), "{first:#?}");
    assert_eq!(kinds(&second), ["stream_options", "thread.item.replaced", "notice"], "{second:#?}");
    assert_eq!(second[2]["level"], "info");
    assert!(second[2]["message"].as_str().is_some_and(|message| !message.is_empty()));
    let two = run_at(&t, 2).await;
    assert_eq!((&two["status"], &two["output"]), (&json!("succeeded"), &json!(null)));
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "3");
    assert_eq!(turn.shown(&t).await.len(), 3);
}

#[tokio::test]
async fn client_tool_calls_are_sent_one_at_a_time() {
    let t = TestService::start().await;
    let call =
        |name: &str| json!({"name": name, "type": "client_tool", "tool": name, "arguments": {"of": name}});
    let reply_text = "{{ results.place.output }}, {{ results.time.output }}.";
    let graph = json!({"format": "graph/1",
      "nodes": [call("place"), call("time"), {"name": "said", "type": "reply", "text": reply_text}],
      "edges": [{"from": "START", "to": "place"}, {"from": "START", "to": "time"},
                {"from": ["place", "time"], "to": "said"}, {"from": "said", "to": "END"}]});
    let turn = PendingQuestion::start(&t, graph).await;
    let items = turn.items(&t).await;
    assert_eq!(turn.shown(&t).await, ["order 7", "client_tool_call pending"]);
    let name = items[1]["name"].as_str().unwrap();
    let answered = events(&t.chat(&turn.output(json!(format!("my {name}")))).await.text());
    assert_eq!(kinds(&answered), ["stream_options", "thread.item.done"], "{answered:#?}");
    let next = &answered[1]["item"];
    let other = next["name"].as_str().unwrap();
    assert!(other != name && next["arguments"]["of"] == other, "{next:#}");
    let (completed, pending) = ("client_tool_call completed", "client_tool_call pending");
    assert_eq!(turn.shown(&t).await, ["order 7", completed, pending]);
    let answered = events(&t.chat(&turn.output(json!(format!("my {other}")))).await.text());
    let text = &answered.last().unwrap()["item"]["content"][0]["text"];
    assert_eq!(*text, "my place, my time.");
    assert_eq!(turn.shown(&t).await, ["order 7", completed, completed, "my place, my time."]);
}
