//! State that a continuing turn takes over after an answer: nothing is sent twice, decided again or asked again.

use std::time::Duration;

use integration_tests::{AnswerExt, Endpoint, TestService, chat, events, graphs, until, within};
use kernel::Clock;
use serde_json::{Value, json};

use crate::questions::{PendingQuestion, run_at};
use crate::waiting_runs::answer;

fn ask(name: &str, more: &Value) -> Value {
    let mut node = json!({"name": name, "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": format!("{name}?")}]});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn free_answer() -> Value {
    json!({"answers": {"q": {"values": ["x"]}}})
}

#[tokio::test]
async fn an_expired_question_is_not_asked_again() {
    let t = TestService::with_manual_clock().await;
    let nodes =
        [ask("first", &json!({"expires_seconds": 5, "on_error": "continue"})), ask("second", &json!({}))];
    let question = PendingQuestion::start_timed(&t, graphs::chain(&nodes, None)).await;
    t.advance(Duration::from_secs(6));
    t.while_time_passes(until("the second is asked", async || question.shown(&t).await.len() == 3)).await;
    let rounds = t.clock().now() + Duration::from_secs(30);
    t.while_time_passes(until("rounds pass", async || t.clock().now() > rounds)).await;
    assert_eq!(question.shown(&t).await, ["order 7", "structured_input skipped", "structured_input pending"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
}

#[tokio::test]
async fn an_unanswered_client_tool_is_reported_to_the_agent() {
    let model = Endpoint::quick().await;
    let t = model.builder().manual_clock().start().await;
    let tool = |name: &str, more: Value| {
        let mut tool =
            json!({"type": "client", "name": name, "description": "d", "parameters": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let agent = json!({"name": "help", "type": "agent", "model": "openai/x", "messages": "{{ messages }}", "stream": true,
                       "tools": [tool("quick", json!({"expires_seconds": 5})), tool("slow", json!({}))]});
    model.calls("quick", &json!({})).await;
    model.calls("slow", &json!({})).await;
    model.says("Done.").await;
    let question = PendingQuestion::start_timed(&t, graphs::chain(&[agent], None)).await;
    t.advance(Duration::from_secs(6));
    let second = async || question.items(&t).await.iter().any(|item| item["name"] == "slow");
    t.while_time_passes(until("the other tool is called", second)).await;
    let answered = t.while_time_passes(t.chat(&question.output(json!(1)))).await;
    assert!(answered.text().contains("Done."), "{}", answered.text());
    let tool_message = model.requests().await[1]["messages"][2]["content"].to_string();
    assert!(tool_message.contains("node.input_expired"), "{tool_message}");
}

#[tokio::test]
async fn items_without_a_key_keep_their_position() {
    let t = TestService::start().await;
    let card = json!({"type": "Card", "children": [{"type": "Text", "value": "card"}]});
    let nodes = [
        json!({"name": "card", "type": "widget", "widget": card}),
        json!({"name": "list", "type": "show", "kind": "workflow", "key": "list", "more": true,
               "workflow": {"type": "custom", "tasks": [{"type": "custom", "title": "a"}]}}),
        json!({"name": "text", "type": "reply", "text": "Before. "}),
        ask("q", &json!({})),
        json!({"name": "after", "type": "reply", "text": "After."}),
        json!({"name": "list2", "type": "show", "kind": "workflow", "key": "list",
               "workflow": {"type": "custom", "tasks": [{"type": "custom", "title": "b"}]}}),
    ];
    let question = PendingQuestion::start(&t, graphs::chain(&nodes, None)).await;
    let before: Vec<Value> = question.items(&t).await.iter().map(|item| item["id"].clone()).collect();
    let answered = within("the answer", t.chat(&question.submission(free_answer()))).await;
    assert!(!answered.text().contains("item.removed"), "{}", answered.text());
    let items = question.items(&t).await;
    let after: Vec<Value> = items.iter().map(|item| item["id"].clone()).collect();
    assert_eq!(after[..before.len()], before[..], "{items:#?}");
    let list = items.iter().find(|item| item["type"] == "workflow").unwrap();
    assert_eq!(list["workflow"]["tasks"][0]["title"], "b", "a key still names the item");
    assert_eq!(items.last().unwrap()["content"][0]["text"], "After.");
}

#[tokio::test]
async fn a_turn_continued_over_the_api_needs_no_reader() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "0").start().await;
    let slow = json!({"name": "slow", "type": "reply", "text": "one two three four five", "pieces": "words", "pause_ms": 300});
    let nodes = [ask("q", &json!({})), slow];
    let question = PendingQuestion::start(&t, graphs::chain(&nodes, None)).await;
    assert_eq!(answer(&t, &run_at(&t, 0).await, "q", free_answer()).await.status, 202);
    until("the run ends", async || run_at(&t, 1).await["finished_at"].is_string()).await;
    assert_eq!(run_at(&t, 1).await["status"], "succeeded");
    assert_eq!(question.shown(&t).await.last().unwrap(), "one two three four five");
}

#[tokio::test]
async fn a_continuation_does_not_repeat_earlier_decisions() {
    let t = TestService::start().await;
    let graph = json!({"format": "graph/1", "nodes": [
        {"name": "welcome", "type": "reply", "text": "Welcome. "}, ask("q", &json!({})),
        {"name": "read", "type": "reply", "text": "{{ messages | length }} messages"},
        {"name": "other", "type": "reply", "text": "Other."}],
      "edges": [{"from": "START", "cases": [{"when": "messages | length == 1", "to": "welcome"}], "else": "other"},
        {"from": "welcome", "to": "q"}, {"from": "q", "to": "read"}, {"from": "read", "to": "END"}, {"from": "other", "to": "END"}]});
    let question = PendingQuestion::start(&t, graph).await;
    within("the answer", t.chat(&question.submission(free_answer()))).await;
    assert_eq!(
        question.shown(&t).await,
        ["order 7", "Welcome. ", "structured_input answered", "3 messages"],
        "later steps read the answer"
    );
}

#[tokio::test]
async fn agent_text_after_a_question_is_a_separate_message() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let inner = t
        .workflow()
        .graph(graphs::chain(&[ask("q", &json!({}))], Some(json!("{{ results.q.answers.q['values'][0] }}"))))
        .create()
        .await;
    let agent = json!({"name": "help", "type": "agent", "model": "openai/x", "messages": "{{ messages }}", "stream": true, "tools": [
        {"type": "workflow", "name": "form", "description": "d", "workflow": inner.id}]});
    let nodes = [json!({"name": "first", "type": "reply", "text": "First. "}), agent];
    model.calls("form", &json!({})).await;
    model.says("Thanks.").await;
    let question = PendingQuestion::start(&t, graphs::chain(&nodes, None)).await;
    let answered = within("the answer", t.chat(&question.submission(free_answer()))).await;
    let changed: Vec<Value> = events(&answered.text())
        .into_iter()
        .filter(|event| event["type"] == "thread.item.replaced")
        .map(|event| event["item"]["type"].clone())
        .collect();
    assert_eq!(changed, ["structured_input"], "{}", answered.text());
    assert_eq!(question.shown(&t).await[1..], ["First. ", "structured_input answered", "Thanks."]);
    // The model read its own call once.
    let roles: Vec<Value> =
        model.requests().await[1]["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
}

#[tokio::test]
async fn stopping_a_continuation_leaves_the_turn_to_another_one() {
    let t = TestService::start().await;
    let graph = json!({"format": "graph/1", "nodes": [
        ask("left", &json!({})), ask("right", &json!({})), {"name": "said", "type": "reply", "text": "Both."},
        {"name": "slow", "type": "reply", "text": "a b c d e f", "pieces": "words", "pause_ms": 400}],
      "edges": [{"from": "START", "cases": [{"when": "inputs.message == 'order 7'", "to": "left"}], "else": "slow"},
        {"from": "START", "cases": [{"when": "inputs.message == 'order 7'", "to": "right"}], "else": "END"},
        {"from": ["left", "right"], "to": "said"}, {"from": "said", "to": "END"}, {"from": "slow", "to": "END"}]});
    let question = PendingQuestion::start(&t, graph).await;
    let items = question.items(&t).await;
    let mut slow = t.open_chat(&chat::add(&question.workflow, &question.thread, "busy")).await;
    slow.until("a ").await;
    let submit = |place: usize| {
        let params =
            json!({"thread_id": question.thread, "item_id": items[place]["id"], "input": free_answer()});
        chat::ask(&question.workflow, "threads.add_structured_input", params)
    };
    let mut first = t.open_chat(&submit(1)).await;
    let second = t.open_chat(&submit(2)).await;
    assert_eq!((first.status, second.status), (200, 200));
    t.stop_turn(second.header("x-chat-stream-id").unwrap()).await;
    let rest = within("the first continues", first.rest()).await;
    assert!(rest.contains("Both."), "{rest}");
    within("the slow one ends", slow.rest()).await;
}

#[tokio::test]
async fn a_client_tool_call_is_sent_again_after_a_later_answer() {
    let t = TestService::start().await;
    let call = json!({"name": "where", "type": "client_tool", "tool": "place"});
    let inner = graphs::chain(
        &[ask("q", &json!({})), json!({"name": "said", "type": "reply", "text": "Noted."})],
        None,
    );
    let inner = t.workflow().graph(inner).create().await;
    let graph = json!({"format": "graph/1", "nodes": [
        {"name": "form", "type": "sub_workflow", "workflow": inner.id}, call,
        {"name": "done", "type": "reply", "text": "In {{ results.where.output }}."}],
      "edges": [{"from": "START", "to": "form"}, {"from": "START", "to": "where"},
                {"from": ["form", "where"], "to": "done"}, {"from": "done", "to": "END"}]});
    let question = PendingQuestion::start(&t, graph).await;
    let items = question.items(&t).await;
    let form = items.iter().find(|item| item["type"] == "structured_input").unwrap();
    let params = json!({"thread_id": question.thread, "item_id": form["id"], "input": free_answer()});
    let answered = t.chat(&chat::ask(&question.workflow, "threads.add_structured_input", params)).await;
    let received = events(&answered.text());
    let kinds: Vec<&str> = received.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(kinds.ends_with(&["thread.item.removed", "thread.item.done"]), "{kinds:?}");
    assert_eq!(received.last().unwrap()["item"]["type"], "client_tool_call");
    let ended = within("the output", t.chat(&question.output(json!("Rome")))).await;
    assert!(ended.text().contains("In Rome."), "{}", ended.text());
    let calls = question.items(&t).await.iter().filter(|item| item["type"] == "client_tool_call").count();
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_continuing_run_counts_only_its_own_model_calls() {
    let t = TestService::start().await;
    let model = json!({"name": "think", "type": "llm", "model": "practice/assistant", "user": "{{ inputs.message }}"});
    let ask = json!({"name": "sure", "type": "ask", "inputs": [{"id": "ok", "type": "freeform", "question": "Sure?"}]});
    let again = json!({"name": "again", "type": "llm", "model": "practice/assistant", "user": "again"});
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.again.text }}"});
    let question = PendingQuestion::start(&t, graphs::chain(&[model, ask, again, say], None)).await;
    let trace = async |nth| {
        let id = run_at(&t, nth).await["id"].as_str().unwrap().to_owned();
        t.get(&format!("/api/runs/{id}/trace")).await.value()
    };
    let waiting = trace(0).await;
    assert_eq!(waiting["usage"]["calls"], 1, "{waiting:#}");
    assert_eq!(waiting["run"]["waits_for"].as_array().unwrap().len(), 1, "{waiting:#}");
    within("the answer", t.chat(&question.submission(json!({"answers": {"ok": {"values": ["y"]}}}))))
        .await
        .expect(200);
    let (first, second) = (trace(0).await, trace(1).await);
    assert_eq!((&first["usage"]["calls"], &second["usage"]["calls"]), (&json!(1), &json!(1)), "{second:#}");
    assert_eq!(first["run"]["continued_by"], second["run"]["id"]);
}
