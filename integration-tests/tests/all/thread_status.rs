//! The nodes `thread` and `client_effect`: titles, locked and closed threads, page actions.

use integration_tests::{AnswerExt, Client, JSON, TestService, Workflow, chat, events};
use serde_json::{Value, json};
use wire::chat::{FeedbackKind, ThreadStatus};

use crate::again::retry_request;

/// Performs the action that the message names, and replies.
pub(crate) async fn desk(t: &TestService) -> Workflow {
    let thread = |name: &str, fields: Value| {
        let mut node = json!({"name": name, "type": "thread"});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        node
    };
    let nodes = json!([
        thread("lock", json!({"status": "locked", "reason": "Please wait, {{ inputs.message }}"})),
        thread("unlock", json!({"status": "active"})),
        thread("close", json!({"status": "closed"})),
        thread("name", json!({"title": "Case {{ inputs.message }}", "image_domains": ["Img.Example.org"]})),
        thread("forget", json!({"image_domains": null})),
        {"name": "mark", "type": "client_effect", "effect": "highlight", "data": {"order": "{{ inputs.message }}"}},
        {"name": "wait", "type": "delay", "seconds": 0.3},
        {"name": "say", "type": "reply", "text": "Done."},
    ]);
    let case = |word: &str| json!({"when": format!("'{word}' in inputs.message"), "to": word});
    let words = ["unlock", "lock", "close", "name", "forget", "mark"];
    let mut edges: Vec<Value> = words.iter().map(|word| json!({"from": word, "to": "wait"})).collect();
    edges.push(json!({"from": "START", "cases": words.map(case), "else": "say"}));
    edges.push(json!({"from": "wait", "to": "say"}));
    let graph = json!({"format": "graph/1", "nodes": nodes, "edges": edges});
    t.workflow().graph(graph).published().create().await
}

/// The threads in the `thread.updated` events.
fn updates(events: &[Value]) -> Vec<Value> {
    let updated = events.iter().filter(|event| event["type"] == "thread.updated");
    updated.map(|event| event["thread"].clone()).collect()
}

async fn say(client: &Client, workflow: &Workflow, thread: &str, text: &str) -> Vec<Value> {
    let turn = client.say_in(&workflow.id, thread, text).await.unwrap();
    assert_eq!((turn.text.as_str(), turn.error), ("Done.", None));
    turn.events.iter().map(|event| serde_json::to_value(&event.event).unwrap()).collect()
}

async fn refusal(t: &TestService, body: &Value) -> (u16, String) {
    let answer = t.chat(body).await;
    (answer.status, answer.code())
}

#[tokio::test]
async fn locked_and_closed_threads_reject_messages() {
    let t = TestService::start().await;
    let workflow = desk(&t).await;
    let client = t.anonymous();
    for (word, code, status) in [
        ("lock", "thread.locked", ThreadStatus::Locked { reason: Some("Please wait, lock".to_owned()) }),
        ("close", "thread.closed", ThreadStatus::Closed { reason: None }),
    ] {
        let turn = client.say(&workflow.id, word).await.unwrap();
        let events: Vec<Value> =
            turn.events.iter().map(|e| serde_json::to_value(&e.event).unwrap()).collect();
        let changes = updates(&events);
        // First the title from the message, then the status, before the reply.
        assert_eq!(changes.len(), 2, "{events:?}");
        assert_eq!((&changes[1]["status"], &changes[1]["title"]), (&json!(status), &json!(word)));
        let last = events.last().unwrap();
        assert_eq!(last["item"]["type"], "assistant_message", "the turn continues: {last}");
        let read = client.thread(&workflow.id, &turn.thread_id).await.unwrap();
        assert_eq!((&read.status, read.items.data.len()), (&status, 2));
        let question = read.items.data[0].id().to_owned();
        let rows = "SELECT concat_ws(',', (SELECT count(*) FROM runs), (SELECT count(*) FROM thread_items))";
        let before = t.scalar(rows).await;
        let more = chat::add(&workflow, &turn.thread_id, "more");
        assert_eq!(refusal(&t, &more).await, (409, code.to_owned()));
        assert_eq!(
            refusal(&t, &retry_request(&workflow, &turn.thread_id, &question)).await,
            (409, code.to_owned())
        );
        assert_eq!(t.scalar(rows).await, before, "a refused message is not stored");
        // Everything else is accepted.
        let item = read.items.data[1].id().to_owned();
        client.feedback(&workflow.id, &turn.thread_id, &[item], FeedbackKind::Positive, None).await.unwrap();
        let renamed = client.rename_thread(&workflow.id, &turn.thread_id, "Mine").await.unwrap();
        assert_eq!((renamed.title.as_deref(), &renamed.status), (Some("Mine"), &status));
        client.delete_thread(&workflow.id, &turn.thread_id).await.unwrap();
        assert_eq!(refusal(&t, &more).await, (404, "thread.not_found".to_owned()));
    }
}

#[tokio::test]
async fn a_repeated_request_returns_the_stream_of_the_turn_that_locked_its_thread() {
    let t = TestService::start().await;
    let workflow = desk(&t).await;
    let thread = t.anonymous().say(&workflow.id, "first").await.unwrap().thread_id;
    let body = chat::add(&workflow, &thread, "lock").to_string();
    let headers = [JSON, ("idempotency-key", "k")];
    let first = t.open("POST", "/api/chat", &headers, &body).await.rest().await;
    let repeated = t.open("POST", "/api/chat", &headers, &body).await.rest().await;
    assert_eq!(events(&first), events(&repeated));
    assert_eq!(updates(&events(&first)).len(), 1);
    assert_eq!(refusal(&t, &chat::add(&workflow, &thread, "more")).await, (409, "thread.locked".to_owned()));
}

#[tokio::test]
async fn a_queued_message_of_a_locked_thread_is_answered() {
    let t = TestService::start().await;
    let workflow = desk(&t).await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "first").await.unwrap().thread_id;
    let mut locks = t.open_chat(&chat::add(&workflow, &thread, "lock")).await;
    // Accepted before the thread was locked.
    let unlocks = say(&client, &workflow, &thread, "unlock").await;
    locks.rest().await;
    assert_eq!(updates(&unlocks)[0]["status"], json!({"type": "active"}));
    say(&client, &workflow, &thread, "more").await;
}

#[tokio::test]
async fn only_changes_of_a_thread_are_sent() {
    let t = TestService::start().await;
    let workflow = desk(&t).await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "first").await.unwrap().thread_id;
    let changes = updates(&say(&client, &workflow, &thread, "name").await);
    assert_eq!((changes.len(), &changes[0]["title"]), (1, &json!("Case name")));
    assert_eq!(changes[0]["allowed_image_domains"], json!(["img.example.org"]));
    let read = client.thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(serde_json::to_value(read).unwrap()["allowed_image_domains"], json!(["img.example.org"]));
    assert!(updates(&say(&client, &workflow, &thread, "name").await).is_empty(), "the same again");
    client.rename_thread(&workflow.id, &thread, "Mine").await.unwrap();
    let changes = updates(&say(&client, &workflow, &thread, "forget").await);
    assert_eq!(
        (changes.len(), &changes[0]["title"]),
        (1, &json!("Mine")),
        "a visitor's title is in the event"
    );
    assert_eq!(changes[0].get("allowed_image_domains"), None);
}

#[tokio::test]
async fn a_client_effect_is_sent_and_not_stored() {
    let t = TestService::start().await;
    let workflow = desk(&t).await;
    let client = t.anonymous();
    let turn = client.say(&workflow.id, "mark 7").await.unwrap();
    let events: Vec<Value> = turn.events.iter().map(|e| serde_json::to_value(&e.event).unwrap()).collect();
    let effects: Vec<&Value> = events.iter().filter(|event| event["type"] == "client_effect").collect();
    assert_eq!(
        effects,
        [&json!({"type": "client_effect", "name": "highlight", "data": {"order": "mark 7"}})]
    );
    assert_eq!(client.thread(&workflow.id, &turn.thread_id).await.unwrap().items.data.len(), 2);
    // A run has neither a page nor a thread: the nodes return their results.
    for message in ["mark", "lock"] {
        let inputs = json!({"inputs": {"message": message}}).to_string();
        let run = t.post(&workflow.path("/runs?wait=10"), &inputs).await;
        assert_eq!(run.value()["status"], "succeeded", "{}", run.text());
    }
}
