//! A simulated graph, database and reader.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

/// An action by a node in the simulated graph.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Text(&'static str),
    NewMessage,
    Item(Option<&'static str>, Option<ItemBody>),
    /// A state of an item that stays open.
    More(&'static str, ItemBody),
    /// An annotation this many characters before the end.
    Annotate(&'static str, usize),
    /// The last attempt has failed.
    Undo(Vec<Undone>),
}

pub(super) fn hidden(text: &str) -> ItemBody {
    ItemBody::HiddenContextItem { content: json!(text) }
}

pub(super) fn task(text: &str) -> ItemBody {
    let task = serde_json::from_value(json!({"type": "custom", "title": text})).unwrap();
    ItemBody::Task { task }
}

pub(super) fn widget(text: &str) -> ItemBody {
    let widget = serde_json::from_value(json!({"type": "Card", "text": text})).unwrap();
    ItemBody::Widget { widget, copy_text: None }
}

/// A card with a streaming text and a second component.
pub(super) fn growing(text: &str, rest: &str) -> ItemBody {
    let children = json!([{"type": "Text", "id": "t", "value": text, "streaming": true}, {"type": "Title", "value": rest}]);
    let widget = serde_json::from_value(json!({"type": "Card", "children": children})).unwrap();
    ItemBody::Widget { widget, copy_text: None }
}

pub(super) fn list(tasks: &[&str], summary: Option<&str>) -> ItemBody {
    let tasks: Vec<_> = tasks.iter().map(|title| json!({"type": "custom", "title": title})).collect();
    let summary = summary.map(|title| json!({"title": title}));
    let mut workflow = json!({"type": "custom", "tasks": tasks});
    if let Some(summary) = summary {
        workflow["summary"] = summary;
    }
    ItemBody::Workflow { workflow: serde_json::from_value(workflow).unwrap() }
}

pub(super) fn image(url: Option<&str>, progress: Option<f64>) -> ItemBody {
    let image = url.map(|url| wire::chat::GeneratedImage { id: "i".into(), url: url.into() });
    ItemBody::GeneratedImage { image, progress }
}

/// The simulated database and reader.
#[derive(Default)]
pub(super) struct World {
    pub(super) rows: BTreeMap<Vec<u8>, (Option<String>, ThreadItem)>,
    /// Items added by later turns.
    pub(super) others: Vec<Vec<u8>>,
    /// The prior content of items from earlier turns.
    pub(super) before: BTreeMap<Vec<u8>, ThreadItem>,
    pub(super) shown: Vec<(String, ItemBody)>,
    /// Ids of incomplete items.
    pub(super) open: Vec<String>,
    pub(super) stored: Vec<store::StoredFrames>,
    pub(super) sequence: u64,
}

impl World {
    /// Starts with an item from an earlier turn.
    pub(super) fn with(key: &str, body: ItemBody) -> Self {
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

    pub(super) fn commit(&mut self, writer: &mut ChatEvents) {
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
            let place = &mut self.rows.get_mut(&id).expect("an existing item").1;
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

    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.shown.iter().position(|(known, _)| known == id)
    }

    pub(super) fn read(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::ItemAdded { item } => {
                assert!(self.place(&item.id).is_none(), "an item was received twice");
                self.open.push(item.id.clone());
                self.shown.push((item.id, item.body));
            }
            ChatEvent::ItemUpdated { item_id, update } => {
                let place = self.place(&item_id).expect("a known item");
                assert!(self.open.contains(&item_id), "an update of a complete item");
                update.apply(&mut self.shown[place].1);
            }
            ChatEvent::ItemDone { item } => match self.place(&item.id) {
                Some(place) => {
                    assert!(self.open.contains(&item.id), "an item was received twice");
                    self.open.retain(|id| *id != item.id);
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
                self.open.retain(|id| *id != item_id);
                self.shown.remove(place);
            }
            _ => {}
        }
    }

    pub(super) fn with_key(&self, key: &str) -> Option<FoundItem> {
        let mut newest_first = self.rows.iter().rev();
        let (id, (_, item)) = newest_first.find(|(_, (known, _))| known.as_deref() == Some(key))?;
        Some(self.found(id, Some(key), item))
    }

    pub(super) fn found(&self, id: &[u8], key: Option<&str>, item: &ThreadItem) -> FoundItem {
        FoundItem {
            id: ItemKey(id.try_into().unwrap()),
            item: item.clone(),
            key: key.map(str::to_owned),
            before: self.before.get(id).cloned(),
        }
    }

    /// The thread's contents, without ids.
    pub(super) fn contents(&self) -> Vec<ItemBody> {
        self.rows.values().map(|(_, item)| item.body.clone()).collect()
    }

    pub(super) fn check_reader(&self) {
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

/// Plays acts, and commits after those that `commits` selects.
pub(super) fn play(
    world: &mut World,
    writer: &mut ChatEvents,
    acts: &[Act],
    commits: &dyn Fn(usize) -> bool,
) {
    for (number, act) in acts.iter().enumerate() {
        match act.clone() {
            Act::Text(text) => drop(writer.text("a", text)),
            Act::NewMessage => drop(writer.new_message()),
            Act::Undo(parts) => writer.undo("a", &parts),
            Act::Item(key, body) => send(world, writer, key, body, false),
            Act::More(key, body) => send(world, writer, Some(key), Some(body), true),
            Act::Annotate(title, from_end) => {
                let source = json!({"type": "file", "title": title, "filename": "f"});
                let source = serde_json::from_value(source).unwrap();
                writer.annotate(vec![SentAnnotation { source, from_end }]);
            }
        }
        if commits(number) {
            world.commit(writer);
        }
    }
}

fn send(world: &World, writer: &mut ChatEvents, key: Option<&str>, body: Option<ItemBody>, more: bool) {
    let found = key.filter(|key| writer.looks_up(key).is_some());
    let earlier = found.and_then(|key| world.with_key(key));
    writer.item(SentItem { key: key.map(str::to_owned), body, more }, earlier);
}

/// The writer in a later life.
pub(super) fn next_life(world: &World, dialect: Dialect) -> ChatEvents {
    let resumed = fold(Resumed::default(), &world.stored, THREAD, dialect);
    let named = resumed.sent.ids();
    let of_run = world.rows.iter().map(|(id, (key, item))| world.found(id, key.as_deref(), item));
    let is_others = |id: &ItemKey| id.0 == [0; 24] || world.others.contains(&id.0.to_vec());
    let of_run = of_run.filter(|found| !is_others(&found.id) || named.contains(&found.id)).collect();
    let mut writer = writer(dialect, resumed);
    writer.remember(of_run);
    writer
}
