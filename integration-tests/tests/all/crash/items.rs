//! `kill -9` at every event of a turn that sends items: each reader's items equal the stored ones, and none is sent
//! twice.

use std::time::Duration;

use client::{ChatOptions, Client};
use kernel::SystemClock;
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use wire::chat::{ChatEvent, ChatOperation, ChatRequest, ItemBody, Thread, ThreadItem, UserMessageInput};

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, workflows};

/// Much longer than a turn takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Items between texts, with a commit after each.
pub(super) fn nodes() -> Vec<Value> {
    let wait = |name: &str| json!({"name": name, "type": "delay", "seconds": 0.15});
    let say = |name: &str, text: &str| json!({"name": name, "type": "reply", "text": text});
    let list = |name: &str, done: &[&str]| {
        let task = |title: &&str| json!({"type": "custom", "title": title, "status_indicator": "complete"});
        let tasks: Vec<Value> = done.iter().map(task).collect();
        json!({"name": name, "type": "show", "kind": "workflow", "key": "work",
               "workflow": {"type": "custom", "tasks": tasks}})
    };
    let task = json!({"name": "task", "type": "show", "kind": "task", "key": "task",
                      "task": {"type": "thought", "content": "{{ inputs.message }}"}});
    let removed = json!({"name": "gone", "type": "show", "kind": "task", "key": "task", "task": null});
    let named = json!({"name": "named", "type": "thread", "title": "Case {{ inputs.message }}"});
    let card = |name: &str, text: &str, more: bool| {
        let text = json!({"type": "Text", "id": "t", "value": text, "streaming": more});
        json!({"name": name, "type": "widget", "key": "card", "more": more,
               "widget": {"type": "Card", "children": [text]}})
    };
    let hidden = json!({"name": "hidden", "type": "hidden", "content": {"message": "{{ inputs.message }}"}});
    vec![
        say("one", "First."),
        wait("w1"),
        list("begun", &["read"]),
        wait("w2"),
        card("opened", "Pa", true),
        wait("w7"),
        card("grown", "Packed", true),
        hidden,
        task,
        wait("w3"),
        named,
        say("two", "Then, "),
        wait("w4"),
        say("three", "more."),
        list("more", &["read", "asked"]),
        wait("w5"),
        removed,
        wait("w6"),
        card("complete", "Packed.", false),
        wait("w8"),
        say("four", "Done."),
    ]
}

/// The state that a reader has built from the events.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) items: Vec<ThreadItem>,
    /// The thread states received.
    pub(super) threads: Vec<Thread>,
}

impl Reader {
    fn place(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    pub(super) fn read(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::ItemAdded { item } => {
                assert!(self.place(&item.id).is_none(), "received twice: {item:?}");
                self.items.push(item);
            }
            ChatEvent::ItemUpdated { item_id, update } => {
                let place = self.place(&item_id).expect("an item added before");
                update.apply(&mut self.items[place].body);
            }
            ChatEvent::ItemDone { item } | ChatEvent::ItemReplaced { item } => match self.place(&item.id) {
                Some(place) => self.items[place] = item,
                None => self.items.push(item),
            },
            ChatEvent::ItemRemoved { item_id } => {
                let place = self.place(&item_id).expect("an item added before");
                self.items.remove(place);
            }
            ChatEvent::ThreadCreated { thread } | ChatEvent::ThreadUpdated { thread } => {
                self.threads.push(thread)
            }
            ChatEvent::Error { error_code, .. } => panic!("{error_code:?}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_event_duplicates_and_loses_no_item() {
    let database = TestDatabase::create().await;
    let folder = folder("items");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let workflow = workflows::publish(&client, "items", &nodes()).await;
    for killed_after in (4..=22).step_by(2) {
        let input = UserMessageInput::text(format!("killed after {killed_after}"));
        let request = ChatRequest { operation: ChatOperation::CreateThread { input }, metadata: Map::new() };
        let mut turn = client.follow(&workflow, &request, &ChatOptions::default()).await.unwrap();
        let mut reader = Reader::default();
        let mut sequence = 0;
        let all = async {
            while let Some(event) = turn.next().await.unwrap() {
                assert_eq!(event.seq, sequence + 1);
                sequence = event.seq;
                reader.read(event.event);
                if sequence == killed_after {
                    service.kill();
                    oracle.measure_start(false, || service.start());
                }
            }
        };
        kernel::timeout(&SystemClock::new(), LIMIT, all).await.expect("the turn to end");
        let thread = reader.items[0].thread_id.clone();
        let mut head = client.thread(&workflow, &thread).await.unwrap();
        let stored = std::mem::take(&mut head.items).data;
        // Created, titled by its first words, then titled by the workflow.
        assert_eq!(
            (reader.threads.len(), reader.threads.last()),
            (3, Some(&head)),
            "killed after {killed_after}"
        );
        assert_eq!(head.title, Some(format!("Case killed after {killed_after}")));
        assert_eq!(reader.items, stored, "killed after {killed_after} events");
        let texts: Vec<String> = stored.iter().filter_map(|item| item.body.text()).collect();
        assert_eq!(texts, ["First.", "Then, more.", "Done."], "killed after {killed_after} events");
        let lists: Vec<usize> = stored
            .iter()
            .filter_map(|item| match &item.body {
                ItemBody::Workflow { workflow } => Some(workflow.tasks.len()),
                _ => None,
            })
            .collect();
        assert_eq!((stored.len(), lists), (6, vec![2]), "killed after {killed_after} events");
    }
    let hidden = "SELECT concat_ws(' ', count(*), count(DISTINCT thread_id)) FROM thread_items WHERE content LIKE '%hidden_context_item%'";
    assert_eq!(database.scalar(hidden).await, "10 10", "one per turn");
    service.stop();
}
