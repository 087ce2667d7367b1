//! The list of what a turn has sent: items and their changes, in order. Pure.
//!
//! After a crash the list is folded from the stored events, and the resumed run produces it again: what is equal is not
//! sent twice, what differs replaces its item, and what does not come again is removed. The output of a failed attempt
//! is treated in the same way: the list goes back behind it, and the next attempt produces it again.

use kernel::{ItemKey, ThreadId};
use store::FoundItem;
use wire::Timestamp;
use wire::chat::{ItemBody, ThreadItem};

/// An item that the turn created, or one of an earlier turn that it changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) id: ItemKey,
    /// Its id on the wire. It keeps the prefix of the kind that it was created as.
    pub(super) name: String,
    pub(super) created_at: Timestamp,
    /// Name in the graph; known once the run has produced the item in this life.
    pub(super) key: Option<String>,
    /// What it contained before the turn changed it, of an item of an earlier turn.
    pub(super) before: Option<ItemBody>,
    /// What readers know of it; `None`: nothing.
    pub(super) told: Option<ItemBody>,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// Index of the item.
    item: usize,
    /// The state that was sent; `None`: it has to be sent again.
    state: Option<ItemBody>,
    /// Whether the entry is the removal of the item.
    removed: bool,
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sent {
    items: Vec<Item>,
    entries: Vec<Entry>,
    /// How many entries the run has produced.
    at: usize,
}

/// What happens to an item.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// It is new.
    Added(Item),
    /// Readers know another state of it.
    Replaced(Item),
    /// It is removed.
    Removed(Item),
}

impl Sent {
    /// Adds a state that readers of an earlier life have received; the list is not produced yet.
    pub(super) fn received(&mut self, id: ItemKey, created_at: Timestamp, state: ItemBody) {
        let item = self.items.iter().position(|item| item.id == id).unwrap_or_else(|| {
            let name = id.wire(state.prefix());
            self.items.push(Item { id, name, created_at, key: None, before: None, told: None });
            self.items.len() - 1
        });
        if let Some(known) = self.items.get_mut(item) {
            known.told = Some(state.clone());
        }
        self.entries.push(Entry { item, state: Some(state), removed: false });
    }

    /// Adds an item that no reader receives, at its place among the others.
    pub(super) fn hidden(&mut self, id: ItemKey, created_at: Timestamp, state: ItemBody) {
        self.received(id, created_at, state);
        let Some(hidden) = self.entries.pop() else { return };
        let id_of = |entry: &Entry| self.items.get(entry.item).map(|item| item.id.0);
        let place = self.entries.iter().position(|entry| id_of(entry) > Some(id.0));
        self.entries.insert(place.unwrap_or(self.entries.len()), hidden);
    }

    /// Adds a message that readers have received from this life.
    pub(super) fn told(&mut self, id: ItemKey, created_at: Timestamp, state: ItemBody) {
        self.received(id, created_at, state);
        self.at = self.entries.len();
    }

    /// Readers of an earlier life know that an item was removed.
    pub(super) fn forgotten(&mut self, id: ItemKey) {
        let Some(removed) = self.items.iter().position(|item| item.id == id) else { return };
        self.entries.retain(|entry| entry.item != removed);
        if let Some(item) = self.items.get_mut(removed) {
            item.told = None;
        }
    }

    /// Whether readers of an earlier life know the item.
    pub(super) fn has(&self, id: ItemKey) -> bool {
        self.items.iter().any(|item| item.id == id && item.told.is_some())
    }

    /// Whether an item that was found by its key is one of an earlier turn that still exists.
    pub(super) fn may_change(&self, id: ItemKey) -> bool {
        let known = self.items.iter().find(|item| item.id == id);
        known.is_none_or(|item| item.before.is_some() && item.told.is_some())
    }

    /// Whether the next entry is a state of this item.
    pub(super) fn expects(&self, item: usize) -> bool {
        self.entries.get(self.at).is_some_and(|entry| entry.item == item)
    }

    /// Whether the next entry creates an item of the same kind.
    pub(super) fn expects_new(&self, state: &ItemBody) -> bool {
        let next = self.entries.get(self.at).filter(|_| self.is_new(self.at));
        let was = next.and_then(|entry| entry.state.as_ref());
        was.is_some_and(|was| std::mem::discriminant(was) == std::mem::discriminant(state))
    }

    /// Whether everything that was sent has been produced.
    pub(super) fn is_produced(&self) -> bool {
        self.at >= self.entries.len()
    }

    /// Whether readers know any item of this turn that is for people.
    pub(super) fn is_visible(&self) -> bool {
        self.items.iter().filter_map(|item| item.told.as_ref()).any(|state| {
            !matches!(
                state,
                ItemBody::HiddenContextItem { .. } | ItemBody::SdkHiddenContext { .. } | ItemBody::EndOfTurn
            )
        })
    }

    /// The assistant's message that comes next in the list, if it is one.
    pub(super) fn next_message(&self) -> Option<(ItemKey, Timestamp)> {
        let entry = self.entries.get(self.at)?;
        let item = self.items.get(entry.item).filter(|_| self.is_new(self.at))?;
        matches!(entry.state, Some(ItemBody::AssistantMessage { .. }))
            .then(|| (item.id, item.created_at.clone()))
    }

    /// Items of earlier turns that the run has changed and not removed.
    pub(super) fn changed_items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.before.is_some() && item.told.is_some())
    }

    /// The item of this key that the run has produced, the newest one.
    pub(super) fn produced(&self, key: &str) -> Option<usize> {
        let produced = self.entries.iter().take(self.at).rev();
        let newest = produced
            .map(|entry| entry.item)
            .find(|item| self.items.get(*item).is_some_and(|item| item.key.as_deref() == Some(key)))?;
        let last = self.entries.iter().take(self.at).rev().find(|entry| entry.item == newest);
        last.is_some_and(|entry| !entry.removed).then_some(newest)
    }

    /// Whether the entry creates its item.
    fn is_new(&self, at: usize) -> bool {
        let Some(entry) = self.entries.get(at) else { return false };
        let is_ours = self.items.get(entry.item).is_some_and(|item| item.before.is_none());
        is_ours && !self.entries.iter().take(at).any(|earlier| earlier.item == entry.item)
    }

    /// The run produces a new item. An item of the same kind that stands next in the list becomes it.
    pub(super) fn add(
        &mut self,
        state: ItemBody,
        key: Option<String>,
        (id, created_at): (ItemKey, Timestamp),
    ) -> Vec<Change> {
        if self.expects_new(&state)
            && let Some(next) = self.entries.get(self.at).map(|entry| entry.item)
        {
            if let Some(item) = self.items.get_mut(next) {
                item.key = key;
            }
            return self.produce(next, state);
        }
        let mut changes = self.remove_rest();
        let name = id.wire(state.prefix());
        let item = Item { id, name, created_at, key, before: None, told: Some(state.clone()) };
        changes.push(Change::Added(item.clone()));
        self.entries.push(Entry { item: self.items.len(), state: Some(state), removed: false });
        self.items.push(item);
        self.at = self.entries.len();
        changes
    }

    /// An earlier life has changed an item of an earlier turn.
    pub(super) fn changed(&mut self, found: FoundItem) {
        self.find(found, None);
    }

    /// The run changes an item of an earlier turn.
    pub(super) fn change(&mut self, state: Option<ItemBody>, key: String, found: FoundItem) -> Vec<Change> {
        let item = self.find(found, Some(key));
        self.again(item, state)
    }

    /// The index of an item of an earlier turn.
    fn find(&mut self, found: FoundItem, key: Option<String>) -> usize {
        let FoundItem { id, item: ThreadItem { id: name, created_at, body, .. }, before } = found;
        if let Some(known) = self.items.iter().position(|item| item.id == id) {
            if let Some(item) = self.items.get_mut(known) {
                item.key = key.or(item.key.take());
            }
            return known;
        }
        let before = Some(before.map_or_else(|| body.clone(), |before| before.body));
        self.items.push(Item { id, name, created_at, key, before, told: Some(body) });
        self.items.len() - 1
    }

    /// The run produces another state of an item that it has produced, or removes it.
    pub(super) fn again(&mut self, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        match state {
            Some(state) if self.entries.get(self.at).is_some_and(|entry| entry.item == item) => {
                self.produce(item, state)
            }
            // Events say neither what a removed item was, nor that one of an earlier turn has changed: both are not in the
            // list of a resumed run.
            state if state.is_none() || self.items.get(item).is_some_and(|item| item.before.is_some()) => {
                self.produce_new(item, state)
            }
            state => {
                let mut changes = self.remove_rest();
                changes.extend(self.produce_new(item, state));
                changes
            }
        }
    }

    /// Produces the next entry, which is of this item.
    fn produce(&mut self, item: usize, state: ItemBody) -> Vec<Change> {
        let Some(entry) = self.entries.get_mut(self.at) else { return Vec::new() };
        let same = entry.state.as_ref() == Some(&state);
        entry.state = Some(state.clone());
        self.at += 1;
        if same {
            return Vec::new();
        }
        // Later states were sent before this one; they are sent again.
        for later in self.entries.iter_mut().skip(self.at).filter(|later| later.item == item) {
            later.state = None;
        }
        self.tell(item, Some(state))
    }

    /// Produces an entry that the list did not have, at its place.
    fn produce_new(&mut self, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        let at = self.at.min(self.entries.len());
        self.entries.insert(at, Entry { item, state: state.clone(), removed: state.is_none() });
        self.at = at + 1;
        self.tell(item, state)
    }

    /// Readers are to know this state of an item.
    fn tell(&mut self, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        let Some(item) = self.items.get_mut(item) else { return Vec::new() };
        if item.told == state {
            return Vec::new();
        }
        item.told.clone_from(&state);
        vec![if state.is_some() { Change::Replaced(item.clone()) } else { Change::Removed(item.clone()) }]
    }

    /// Takes back the last produced entry; it stays in the list, for the attempt that follows. Returns the text of a
    /// message with its id.
    pub(super) fn undo(&mut self) -> Option<(ItemKey, Timestamp, String)> {
        self.at = self.at.checked_sub(1)?;
        let entry = self.entries.get(self.at)?;
        let item = self.items.get(entry.item)?;
        let text = entry.state.as_ref().and_then(ItemBody::text);
        let message = text.map(|text| (item.id, item.created_at.clone(), text));
        // A removal stands.
        if entry.removed {
            self.entries.remove(self.at);
        }
        message
    }

    /// The run has produced everything: what else was sent is taken back.
    pub(super) fn settle(&mut self) -> Vec<Change> {
        let mut changes = self.remove_rest();
        for index in 0..self.items.len() {
            let is_produced = self.entries.iter().any(|entry| entry.item == index);
            let before = self.items.get(index).and_then(|item| item.before.clone());
            if let Some(before) = before.filter(|_| !is_produced) {
                changes.extend(self.tell(index, Some(before)));
            }
        }
        changes
    }

    /// What was sent and is not produced any more: items of this turn are removed, last first, and states of others go
    /// back to those that were produced.
    pub(super) fn remove_rest(&mut self) -> Vec<Change> {
        let rest = self.entries.split_off(self.at.min(self.entries.len()));
        let mut changes = Vec::new();
        for entry in rest.into_iter().rev() {
            let produced = self.entries.iter().rev().find(|earlier| earlier.item == entry.item);
            let state = match produced {
                Some(produced) => produced.state.clone(),
                None => self.items.get(entry.item).and_then(|item| item.before.clone()),
            };
            changes.extend(self.tell(entry.item, state));
        }
        changes
    }
}

/// An item for the wire and for its row.
pub(super) fn wire(item: &Item, thread: ThreadId, state: ItemBody) -> ThreadItem {
    ThreadItem {
        id: item.name.clone(),
        thread_id: thread.to_string(),
        created_at: item.created_at.clone(),
        body: state,
    }
}
