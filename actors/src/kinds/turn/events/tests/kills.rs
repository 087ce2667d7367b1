//! Turns that are killed anywhere: what readers have is what is stored, and nothing is received twice.

use std::collections::BTreeMap;

use kernel::SeededRandom;
use serde_json::json;
use wire::chat::{ContentPart, OutputText};

use super::*;

/// What a node of a made-up graph does.
#[derive(Debug, Clone)]
enum Act {
    Text(&'static str),
    NewMessage,
    Item(Option<&'static str>, Option<ItemBody>),
    /// The last attempt has failed.
    Undo(Vec<Undone>),
}

fn hidden(text: &str) -> ItemBody {
    ItemBody::HiddenContextItem { content: json!(text) }
}

fn task(text: &str) -> ItemBody {
    let task = serde_json::from_value(json!({"type": "custom", "title": text})).unwrap();
    ItemBody::Task { task }
}

fn widget(text: &str) -> ItemBody {
    let widget = serde_json::from_value(json!({"type": "Card", "text": text})).unwrap();
    ItemBody::Widget { widget, copy_text: None }
}

/// The database and a reader.
#[derive(Default)]
struct World {
    rows: BTreeMap<Vec<u8>, (Option<String>, ThreadItem)>,
    /// Of items of earlier turns.
    before: BTreeMap<Vec<u8>, ThreadItem>,
    shown: Vec<(String, ItemBody)>,
    stored: Vec<store::StoredFrames>,
    sequence: u64,
}

impl World {
    /// With an item of an earlier turn.
    fn with(key: &str, body: ItemBody) -> Self {
        let mut world = Self::default();
        let id = ItemKey([0; 24]);
        let item = ThreadItem {
            id: id.wire(body.prefix()),
            thread_id: THREAD.to_string(),
            created_at: "t".into(),
            body: body.clone(),
        };
        world.shown.push((item.id.clone(), body));
        world.rows.insert(id.0.to_vec(), (Some(key.to_owned()), item));
        world
    }

    fn commit(&mut self, writer: &mut ChatEvents) {
        let mut frames = Frames::new("s".to_owned(), self.sequence + 1);
        let mut batch = Batch::default();
        writer.write(&mut frames, &mut batch);
        let (text, first_seq, last_seq) = frames.take();
        let item = |text: &str| serde_json::from_str::<ThreadItem>(text).unwrap();
        for row in batch.items {
            let old = self.rows.insert(row.id.0.to_vec(), (row.key, item(&row.content)));
            assert!(old.is_none(), "an item was added twice");
        }
        for row in batch.replaced_items {
            let id = row.id.0.to_vec();
            let Some(content) = row.content else {
                self.before.remove(&id);
                continue;
            };
            let place = &mut self.rows.get_mut(&id).expect("an item that is there").1;
            let old = std::mem::replace(place, item(&content));
            if row.id.0 == [0; 24] {
                self.before.entry(id).or_insert(old);
            }
        }
        for row in batch.removed_items {
            self.rows.remove(row.id.0.as_slice());
        }
        for event in sse::data(&text) {
            self.read(serde_json::from_str(event).unwrap());
        }
        if last_seq >= first_seq {
            self.sequence = last_seq;
            self.stored.push(store::StoredFrames { first_seq, last_seq, frames: text });
        }
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.shown.iter().position(|(known, _)| known == id)
    }

    fn read(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::ItemAdded { item } => {
                assert!(self.place(&item.id).is_none(), "an item was received twice");
                self.shown.push((item.id, item.body));
            }
            ChatEvent::ItemUpdated { item_id, update } => {
                let place = self.place(&item_id).expect("a known item");
                if let (Some(piece), ItemBody::AssistantMessage { content, .. }) =
                    (update.appended_text(), &mut self.shown[place].1)
                {
                    if content.is_empty() {
                        content.push(ContentPart::text(""));
                    }
                    let ContentPart::OutputText(OutputText { text, .. }) = &mut content[0];
                    text.push_str(piece);
                }
            }
            ChatEvent::ItemDone { item } => match self.place(&item.id) {
                Some(place) => {
                    let is_message = matches!(item.body, ItemBody::AssistantMessage { .. });
                    assert!(is_message, "an item was received twice");
                    self.shown[place].1 = item.body;
                }
                None => self.shown.push((item.id, item.body)),
            },
            ChatEvent::ItemReplaced { item } => match self.place(&item.id) {
                Some(place) => self.shown[place].1 = item.body,
                None => self.shown.push((item.id, item.body)),
            },
            ChatEvent::ItemRemoved { item_id } => {
                let place = self.place(&item_id).expect("a known item");
                self.shown.remove(place);
            }
            _ => {}
        }
    }

    fn with_key(&self, key: &str) -> Option<FoundItem> {
        let newest = self.rows.iter().rev().find(|(_, (known, _))| known.as_deref() == Some(key))?;
        Some(self.found(newest.0, newest.1))
    }

    fn found(&self, id: &[u8], (key, item): &(Option<String>, ThreadItem)) -> FoundItem {
        FoundItem {
            id: ItemKey(id.try_into().unwrap()),
            item: item.clone(),
            key: key.clone(),
            is_own: id != [0; 24],
            before: self.before.get(id).cloned(),
        }
    }

    /// Another turn changes the item of an earlier turn.
    fn other_turn(&mut self, body: ItemBody) {
        let row = &mut self.rows.get_mut([0; 24].as_slice()).unwrap().1;
        row.body = body.clone();
        self.before.clear();
        let place = self.place(&ItemKey([0; 24]).wire("tsk")).unwrap();
        self.shown[place].1 = body;
    }

    /// What the thread contains, without ids.
    fn contents(&self) -> Vec<ItemBody> {
        self.rows.values().map(|(_, item)| item.body.clone()).collect()
    }

    fn check_reader(&self) {
        let visible: Vec<(String, ItemBody)> = self
            .rows
            .values()
            .filter(|(_, item)| !item.is_hidden())
            .map(|(_, item)| (item.id.clone(), item.body.clone()))
            .collect();
        let mut shown = self.shown.clone();
        shown.sort_by_key(|(id, _)| visible.iter().position(|(known, _)| known == id));
        assert_eq!(shown, visible, "a reader's items are the stored ones");
    }
}

/// Plays acts; commits after those that `commits` names.
fn play(world: &mut World, writer: &mut ChatEvents, acts: &[Act], commits: &dyn Fn(usize) -> bool) {
    for (number, act) in acts.iter().enumerate() {
        match act.clone() {
            Act::Text(text) => drop(writer.text("a", text)),
            Act::NewMessage => drop(writer.new_message()),
            Act::Undo(parts) => writer.undo("a", &parts),
            Act::Item(key, body) => {
                let key = key.map(str::to_owned);
                let earlier = key
                    .as_deref()
                    .filter(|key| writer.looks_up(key).is_some())
                    .and_then(|key| world.with_key(key));
                writer.item(SentItem { key, body }, earlier);
            }
        }
        if commits(number) {
            world.commit(writer);
        }
    }
}

fn scripts() -> Vec<Vec<Act>> {
    use Act::{Item, NewMessage, Text, Undo};
    vec![
        vec![
            Text("one "),
            Text("two"),
            Item(None, Some(task("a"))),
            Text("three"),
            Item(None, Some(hidden("h"))),
        ],
        vec![
            Item(Some("k"), Some(task("a"))),
            Text("x"),
            Item(Some("k"), Some(task("b"))),
            NewMessage,
            Text("y"),
        ],
        vec![Item(Some("k"), Some(widget("a"))), Item(Some("k"), Some(task("other kind"))), Text("y")],
        vec![Item(Some("k"), Some(task("a"))), Item(None, Some(task("b"))), Item(Some("k"), None), Text("z")],
        vec![Text("x"), Item(Some("earlier"), Some(task("changed"))), Text("y"), Item(Some("earlier"), None)],
        vec![Item(Some("earlier"), Some(task("1"))), Item(Some("earlier"), Some(task("2"))), Text("end")],
        vec![
            Text("half"),
            Item(None, Some(task("first attempt"))),
            Undo(vec![Undone::Item, Undone::Message(4)]),
            Text("half"),
            Item(None, Some(task("second attempt"))),
        ],
        vec![
            Text("kept "),
            Text("gone"),
            Item(Some("earlier"), Some(task("failed"))),
            Undo(vec![Undone::Item, Undone::Message(4)]),
            Text("stays"),
        ],
        // Hidden items are not in the stream: where they stood among others is not known after a kill.
        vec![
            Item(Some("k"), Some(task("a"))),
            Item(None, Some(hidden("1"))),
            Item(Some("k"), Some(task("b"))),
            Item(None, Some(hidden("2"))),
            Item(None, Some(task("c"))),
            Text("d"),
        ],
        // Nothing is removed, and a failed attempt counts it.
        vec![
            Text("a"),
            Item(None, Some(task("b"))),
            Item(Some("none"), None),
            Undo(vec![Undone::Item]),
            Item(Some("none"), None),
            Text("c"),
        ],
        vec![
            Item(None, Some(hidden("1"))),
            Text("a"),
            Item(None, Some(hidden("2"))),
            Item(None, Some(task("t"))),
            Text("b"),
            Item(None, Some(hidden("3"))),
        ],
    ]
}

/// The writer of a later life.
fn next_life(world: &World, dialect: Dialect) -> ChatEvents {
    let of_run = world.rows.iter().map(|(id, row)| world.found(id, row));
    let of_run = of_run.filter(|found| found.is_own || found.before.is_some()).collect();
    let mut writer = writer(dialect, fold(&world.stored, THREAD, dialect));
    writer.remember(of_run);
    writer
}

/// After a kill at every place, and a second one at every later place, the thread is what it is without kills, and no reader
/// receives an item twice.
#[test]
fn a_run_that_is_killed_anywhere_sends_what_it_sends_without_a_kill() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for script in scripts() {
            let mut expected = World::with("earlier", task("0"));
            let mut whole = fresh(dialect);
            play(&mut expected, &mut whole, &script, &|_| true);
            whole.settle();
            expected.commit(&mut whole);
            expected.check_reader();
            for first in 0..=script.len() {
                for second in 0..=script.len() {
                    let mut world = World::with("earlier", task("0"));
                    for killed in [first, second] {
                        let mut writer = next_life(&world, dialect);
                        play(&mut world, &mut writer, &script[..killed], &|_| true);
                    }
                    let mut last = next_life(&world, dialect);
                    play(&mut world, &mut last, &script, &|number| number % 2 == 0);
                    last.settle();
                    world.commit(&mut last);
                    world.check_reader();
                    let place = format!("{script:?} {dialect:?} killed after {first} and {second}");
                    assert_eq!(world.contents(), expected.contents(), "{place}");
                }
            }
        }
    }
}

/// A run whose nodes do something else after the kill ends with what it did then.
#[test]
fn a_run_that_does_something_else_after_a_kill_replaces_and_removes() {
    let random = SeededRandom::new(7);
    let pick = |most: usize| {
        let mut byte = [0_u8];
        kernel::Random::fill(&random, &mut byte).unwrap();
        usize::from(byte[0]) % most
    };
    let all = scripts();
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for before in &all {
            for after in &all {
                let killed = pick(before.len() + 1);
                let mut world = World::with("earlier", task("0"));
                let mut first = fresh(dialect);
                play(&mut world, &mut first, &before[..killed], &|_| true);
                let mut second = next_life(&world, dialect);
                play(&mut world, &mut second, after, &|_| true);
                second.settle();
                world.commit(&mut second);
                world.check_reader();
                let mut alone = World::with("earlier", task("0"));
                let mut whole = fresh(dialect);
                play(&mut alone, &mut whole, after, &|_| true);
                whole.settle();
                alone.commit(&mut whole);
                let place = format!("{:?} then {after:?}, {dialect:?}", &before[..killed]);
                // A removal stands.
                let is_removed = |act: &Act| matches!(act, Act::Item(Some("earlier"), None));
                if before[..killed].iter().any(is_removed) {
                    alone.rows.remove(&vec![0; 24]);
                }
                // Items that no reader receives keep their order among themselves.
                let parted = |world: &World| -> (Vec<ItemBody>, Vec<ItemBody>) {
                    world
                        .contents()
                        .into_iter()
                        .partition(|body| matches!(body, ItemBody::HiddenContextItem { .. }))
                };
                assert_eq!(parted(&world), parted(&alone), "{place}");
            }
        }
    }
}

/// A turn that waits is resumed after others: what they have changed meanwhile stays, also if the turn changed it before them.
#[test]
fn what_another_turn_has_changed_meanwhile_stays() {
    let script =
        [Act::Item(Some("earlier"), Some(task("mine"))), Act::Text("waits"), Act::Text(", and ends")];
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for kept in [true, false] {
            let mut world = World::with("earlier", task("0"));
            let mut first = fresh(dialect);
            play(&mut world, &mut first, &script[..2], &|_| true);
            world.other_turn(task("theirs"));
            let mut second = next_life(&world, dialect);
            let rest = if kept { &script[..] } else { &script[1..] };
            play(&mut world, &mut second, rest, &|_| true);
            second.settle();
            second.end_changes();
            world.commit(&mut second);
            world.check_reader();
            assert_eq!(world.contents()[0], task("theirs"));
        }
    }
}

/// Another key is another item, also for the next attempt of the same node.
#[test]
fn an_attempt_with_another_key_sends_another_item() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut writer = fresh(dialect);
        let script = [
            Act::Item(Some("a"), Some(task("1"))),
            Act::Undo(vec![Undone::Item]),
            Act::Item(Some("b"), Some(task("2"))),
            Act::Item(Some("a"), None),
        ];
        play(&mut world, &mut writer, &script, &|_| true);
        writer.settle();
        world.commit(&mut writer);
        world.check_reader();
        let rows: Vec<_> =
            world.rows.values().map(|(key, item)| (key.as_deref(), item.body.clone())).collect();
        assert_eq!(rows, [(Some("b"), task("2"))]);
    }
}

#[test]
fn a_failed_run_keeps_what_readers_know() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut writer = fresh(dialect);
        let script = [
            Act::Text("said"),
            Act::Item(None, Some(task("t"))),
            Act::Undo(vec![Undone::Item, Undone::Message(4)]),
        ];
        play(&mut world, &mut writer, &script, &|_| true);
        writer.keep_what_was_told();
        writer.leave_incomplete(IncompleteReason::Failed);
        world.commit(&mut writer);
        world.check_reader();
        assert_eq!(world.contents(), [ItemBody::message("said"), task("t")]);
    }
}
