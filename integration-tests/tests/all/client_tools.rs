//! Page tools: outputs that continue a turn, the response to a second output, and calls outside of a thread.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{
    Answer, AnswerExt, Endpoint, TestService, Workflow, chat, events, graphs, until, within,
};
use serde_json::{Value, json};

use crate::questions::{PendingQuestion, SUCCEEDED};
use crate::waiting_runs::{answer, becomes, begin};

/// A node that calls a page tool, with additional members.
fn call(members: &Value) -> Value {
    let mut node = json!({"name": "where", "type": "client_tool", "tool": "get_location"});
    node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    node
}

/// A graph that calls a page tool and sends nothing after it: its output is the tool's result.
fn silent() -> Value {
    graphs::chain(&[call(&json!({}))], Some(json!({"got": "{{ results.where }}"})))
}

async fn calls(pending: &PendingQuestion, t: &TestService) -> Vec<Value> {
    pending.items(t).await.into_iter().filter(|item| item["type"] == "client_tool_call").collect()
}

/// A workflow that calls a page tool. The action `note` adds `count` hidden items; the message `plain` gets a text
/// reply.
async fn with_notes(t: &TestService, count: usize) -> Workflow {
    let note = json!({"type": "hidden", "content": "note {{ item }}"});
    let graph = json!({"format": "graph/1", "nodes": [
        call(&json!({})),
        {"name": "said", "type": "reply", "text": "You are in {{ results.where.output.city }}."},
        {"name": "note", "type": "for_each", "items": (0..count).collect::<Vec<_>>(), "body": note},
        {"name": "plain", "type": "reply", "text": "Plain."}],
      "edges": [
        {"from": "START", "cases": [{"when": "inputs.action and inputs.action.type == 'note'", "to": "note"},
                                    {"when": "inputs.message == 'plain'", "to": "plain"}], "else": "where"},
        {"from": "where", "to": "said"}, {"from": "said", "to": "END"}, {"from": "note", "to": "END"},
        {"from": "plain", "to": "END"}]});
    t.workflow().graph(graph).published().create().await
}

/// Adds the hidden items, which become the thread's last ones.
async fn add_notes(t: &TestService, workflow: &Workflow, thread: &str) {
    let params = json!({"thread_id": thread, "action": {"type": "note"}});
    let acted = t.chat(&chat::ask(workflow, "threads.custom_action", params)).await;
    let stream_events = events(&acted.text());
    assert_eq!(
        (stream_events.len(), &stream_events[0]["type"]),
        (1, &json!("stream_options")),
        "{stream_events:#?}"
    );
    let id = thread.trim_start_matches("thr_");
    let last = format!(
        "SELECT content::json->>'type' FROM thread_items WHERE thread_id = '{id}' ORDER BY id DESC LIMIT 1"
    );
    assert_eq!(t.scalar(&last).await, "hidden_context_item");
}

#[tokio::test]
async fn only_one_output_continues_the_turn_and_others_get_its_stream_id() {
    let t = TestService::start().await;
    let pending = PendingQuestion::start(&t, silent()).await;
    let sending = (0..20).map(|n| {
        let (t, body) = (&t, pending.output(json!(n)));
        async move { (n, t.chat(&body).await) }
    });
    let answers: Vec<(i32, Answer)> = within("the outputs", join_all(sending)).await;
    let (accepted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, answer)| answer.status == 200);
    assert_eq!(accepted.len(), 1, "{answers:?}");
    let (output, accepted) = accepted[0];
    let stream = accepted.header("x-chat-stream-id").unwrap();
    // After the continuing turn has ended, the call is still the last item.
    let late = t.chat(&pending.output(json!("late"))).await;
    for refused in refused.iter().map(|(_, answer)| answer).chain([&late]) {
        assert_eq!(refused.refusal(), "409 item.not_pending");
        assert_eq!(refused.value()["detail"]["stream_id"], stream, "{}", refused.text());
    }
    assert_eq!(calls(&pending, &t).await[0]["output"], json!(output));
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
}

#[tokio::test]
async fn hidden_items_after_a_call_are_ignored() {
    let t = TestService::start().await;
    let workflow = with_notes(&t, 1).await;
    let pending = PendingQuestion::start_with(&t, workflow.clone(), "where am I?").await;
    add_notes(&t, &workflow, &pending.thread).await;
    let answered = t.chat(&pending.output(json!({"city": "Paris"}))).await;
    assert!(answered.text().contains("You are in Paris."), "{}", answered.text());
    // They are ignored after a message, too: that thread does not end with a call.
    let plain = events(&t.chat(&chat::create(&workflow, "plain")).await.text());
    let plain = plain[0]["thread"]["id"].as_str().unwrap();
    for thread in [pending.thread.as_str(), plain] {
        add_notes(&t, &workflow, thread).await;
        let params = json!({"thread_id": thread, "result": 1});
        let refused = t.chat(&chat::ask(&workflow, "threads.add_client_tool_output", params)).await;
        assert_eq!(refused.refusal(), "422 chat.invalid_request");
        assert_eq!(refused.problems(), ["/params/thread_id state"]);
    }
}

#[tokio::test]
async fn a_call_is_found_before_any_number_of_hidden_items() {
    let t = TestService::start().await;
    let workflow = with_notes(&t, 120).await;
    let pending = PendingQuestion::start_with(&t, workflow.clone(), "where am I?").await;
    add_notes(&t, &workflow, &pending.thread).await;
    let answered = t.chat(&pending.output(json!({"city": "Paris"}))).await.expect(200);
    assert!(answered.text().contains("You are in Paris."), "{}", answered.text());
}

#[tokio::test]
async fn any_json_output_is_accepted_with_its_nulls() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(silent()).published().create().await;
    for result in [
        json!({"a": [null, {"b": null}], "c": null}),
        json!([]),
        json!(""),
        json!(false),
        json!(0.5),
        json!(null),
    ] {
        let pending = PendingQuestion::start_with(&t, workflow.clone(), "m").await;
        within("the output", t.chat(&pending.output(result.clone()))).await.expect(200);
        let run = t.scalar("SELECT id FROM runs ORDER BY id DESC LIMIT 1").await;
        let run = t.get(&format!("/api/runs/{run}")).await.value();
        assert_eq!(run["output"], json!({"got": {"output": result}}), "{run:#}");
        let call = &calls(&pending, &t).await[0];
        assert_eq!((&call["status"], &call["output"]), (&json!("completed"), &result));
    }
}

#[tokio::test]
async fn an_expired_call_stays_pending_and_rejects_its_output() {
    let t = TestService::with_manual_clock().await;
    let expiring = call(&json!({"expires_seconds": 5}));
    let ended = PendingQuestion::start_timed(&t, graphs::chain(&[expiring], None)).await;
    let expiring = call(&json!({"expires_seconds": 5, "on_error": "continue"}));
    let code = "{{ results.where.error.code if results.where.error is defined else 'none' }}";
    let read = json!({"name": "read", "type": "set", "values": {"code": code}});
    let output = Some(json!("{{ results.read }}"));
    let continued = PendingQuestion::start_timed(&t, graphs::chain(&[expiring, read], output)).await;
    t.advance(Duration::from_secs(6));
    for call_thread in [&ended, &continued] {
        assert_eq!(t.chat(&call_thread.output(json!(1))).await.refusal(), "409 item.not_pending");
    }
    let expired = "SELECT count(*) FROM run_questions WHERE item IS NULL";
    t.while_time_passes(until("both calls have expired", async || t.scalar(expired).await == "2")).await;
    t.while_time_passes(until("one turn has continued", async || t.scalar(SUCCEEDED).await == "3")).await;
    for call_thread in [&ended, &continued] {
        assert_eq!(t.chat(&call_thread.output(json!(1))).await.refusal(), "409 item.not_pending");
        let call = &calls(call_thread, &t).await[0];
        assert_eq!((&call["status"], call.get("output")), (&json!("pending"), None));
    }
    let last = t.scalar("SELECT output FROM runs ORDER BY id DESC LIMIT 1").await;
    assert_eq!(last, r#"{"code":"node.input_expired"}"#);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "3");
}

#[tokio::test]
async fn an_agents_tool_waits_under_its_own_key_without_a_thread() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let tool = json!({"type": "client", "name": "get_location", "description": "Where the user is.", "parameters": {"type": "object"}});
    let agent = json!({"name": "help", "type": "agent", "model": "openai/x", "user": "{{ inputs.message }}", "tools": [tool]});
    let graph = graphs::chain(&[agent], Some(json!("{{ results.help.text }}")));
    let workflow = t.workflow().graph(graph).create().await;
    model.calls("get_location", &json!({"precise": true})).await;
    model.says("Paris it is.").await;
    let run =
        within("the run waits", begin(&t, &workflow, "?wait=60", json!({"message": "where am I?"}))).await;
    assert_eq!((&run["status"], run["waits_for"].as_array().unwrap().len()), (&json!("waiting"), 1));
    let waits = &run["waits_for"][0];
    let expected =
        json!({"key": "help.get_location", "kind": "client_tool", "item_id": null, "audience": []});
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(waits[name], *expected, "{run:#}");
    }
    for key in ["help", "get_location", "help.other"] {
        assert_eq!(answer(&t, &run, key, json!(1)).await.refusal(), "409 run.not_waiting", "{key}");
    }
    let city = json!({"city": "Paris"});
    assert_eq!(answer(&t, &run, "help.get_location", city.clone()).await.status, 202);
    assert_eq!(becomes(&t, &run, "succeeded").await["output"], "Paris it is.");
    let requests = model.requests().await;
    assert_eq!(requests.len(), 2);
    let last = requests[1]["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["role"], &last["content"]), (&json!("tool"), &json!(city.to_string())));
    assert_eq!(answer(&t, &run, "help.get_location", city).await.refusal(), "409 run.not_waiting");
    t.assert_no_rows("thread_items").await;
}

#[tokio::test]
async fn the_key_field_identifies_the_answer_without_a_thread() {
    let t = TestService::start().await;
    let question = json!([{"id": "q", "type": "freeform", "question": "Why?"}]);
    let ask = json!({"name": "confirm", "type": "ask", "inputs": question});
    for (mut node, value) in
        [(ask, json!({"answers": {"q": {"values": ["so"]}}})), (call(&json!({})), json!({"city": "Rome"}))]
    {
        node["key"] = json!("ok-{{ inputs.n }}");
        let workflow = t.workflow().graph(graphs::chain(std::slice::from_ref(&node), None)).create().await;
        let run = within("the run waits", begin(&t, &workflow, "?wait=60", json!({"n": 7}))).await;
        assert_eq!(run["waits_for"][0]["key"], "ok-7", "{run:#}");
        let name = node["name"].as_str().unwrap();
        assert_eq!(answer(&t, &run, name, value.clone()).await.refusal(), "409 run.not_waiting");
        assert_eq!(answer(&t, &run, "ok-7", value).await.status, 202);
        becomes(&t, &run, "succeeded").await;
    }
}
