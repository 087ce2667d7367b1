//! Ids of removed items, which stay valid as cursors.

use integration_tests::{AnswerExt, TestService, Workflow, chat, events};
use serde_json::{Value, json};

/// The message `fill` adds 24 tasks. Every other message is the key of a task to remove.
fn tasks() -> Value {
    let task = json!({"type": "show", "kind": "task", "key": "k{{ item }}", "task": {"type": "custom", "title": "k{{ item }}"}});
    json!({"format": "graph/1", "nodes": [
        {"name": "fill", "type": "for_each", "items": (0..24).collect::<Vec<_>>(), "body": task},
        {"name": "remove", "type": "show", "kind": "task", "key": "{{ inputs.message }}", "task": null},
        {"name": "done", "type": "reply", "text": "Done."}],
      "edges": [{"from": "START", "cases": [{"when": "inputs.message == 'fill'", "to": "fill"}], "else": "remove"},
        {"from": "fill", "to": "done"}, {"from": "remove", "to": "done"}, {"from": "done", "to": "END"}]})
}

struct Thread<'a> {
    t: &'a TestService,
    workflow: Workflow,
    id: String,
}

impl<'a> Thread<'a> {
    async fn start(t: &'a TestService, workflow: Workflow, text: &str) -> Self {
        let received = events(&t.chat(&chat::create(&workflow, text)).await.text());
        let id = received[0]["thread"]["id"].as_str().unwrap().to_owned();
        Self { t, workflow, id }
    }

    async fn page(&self, kind: &str, mut params: Value) -> Value {
        params["thread_id"] = json!(self.id);
        self.t.chat(&chat::ask(&self.workflow, kind, params)).await.expect(200).value()
    }

    /// The item ids in this order, after the cursor.
    async fn ids(&self, order: &str, after: Option<&Value>) -> Vec<Value> {
        let page = self.page("items.list", json!({"limit": 100, "order": order, "after": after})).await;
        assert_eq!(page["has_more"], false);
        page["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
    }
}

#[tokio::test]
async fn a_page_cursor_stays_valid_after_its_item_is_removed() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(tasks()).published().create().await;
    let thread = Thread::start(&t, workflow, "fill").await;
    let first = thread.page("threads.get_by_id", json!({})).await["items"].clone();
    let (cursor, last) = (&first["after"], &first["data"][19]);
    assert_eq!((&first["has_more"], cursor), (&json!(true), &last["id"]));
    let key = last["task"]["title"].as_str().unwrap();
    let turn = t.chat(&chat::add(&thread.workflow, &thread.id, key)).await;
    let received = events(&turn.text());
    let removed = received.iter().find(|event| event["type"] == "thread.item.removed").unwrap();
    assert_eq!(removed["item_id"], *cursor);
    let all = thread.ids("asc", None).await;
    // The first message and its reply were 26 items; the second message and its reply are two more.
    assert_eq!((all.len(), all.contains(cursor)), (27, false));
    assert_eq!(thread.ids("asc", Some(cursor)).await, all[19..]);
    let before: Vec<Value> = all[..19].iter().rev().cloned().collect();
    assert_eq!(thread.ids("desc", Some(cursor)).await, before);
    let again = thread.page("threads.get_by_id", json!({})).await;
    assert_eq!(again["items"]["data"][19]["id"], all[19], "the page has 20 items again");
}

#[tokio::test]
async fn a_page_cursor_stays_valid_after_a_retry_removes_its_item() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let thread = Thread::start(&t, workflow, "hi").await;
    let first = thread.ids("asc", None).await;
    let params = json!({"thread_id": thread.id, "item_id": first[0]});
    assert_eq!(t.chat(&chat::ask(&thread.workflow, "threads.retry_after_item", params)).await.status, 200);
    let all = thread.ids("asc", None).await;
    assert_eq!((all.len(), all[0] == first[0], all[1] == first[1]), (2, true, false));
    assert_eq!(thread.ids("asc", Some(&first[1])).await, all[1..]);
    assert_eq!(thread.ids("desc", Some(&first[1])).await, all[..1]);
}
