//! The list of what a turn has sent: states of items, in order. Pure.
//!
//! After a crash the list is folded from the stored events, and the resumed run produces it again: what is equal is not
//! sent twice, what differs replaces its item, and what does not come again is removed. The output of a failed attempt
//! is treated in the same way: the list goes back behind it, and the next attempt produces it again.

use std::mem::discriminant;

use kernel::ItemKey;
use store::FoundItem;
use wire::chat::{ItemBody, ThreadItem};

/// Key of an item in its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    /// Events do not say it, and the row of the item is gone.
    Unknown,
    Is(Option<String>),
}

/// An item that the turn created, or one of an earlier turn that it changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) id: ItemKey,
    /// The item as readers know it. Its id keeps the prefix of the kind that it was created as.
    pub(super) wire: ThreadItem,
    key: Key,
    origin: Origin,
    /// Whether readers know it.
    is_told: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Origin {
    ThisTurn,
    /// With what it contained before this turn changed it; `None` if another turn has changed it since.
    EarlierTurn(Option<ItemBody>),
}

impl Item {
    pub(super) fn key(&self) -> Option<&str> {
        match &self.key {
            Key::Is(Some(key)) => Some(key),
            Key::Is(None) | Key::Unknown => None,
        }
    }

    fn told(&self) -> Option<&ItemBody> {
        self.is_told.then_some(&self.wire.body)
    }
}

/// One entry of the list. Each output has one, so that a failed attempt's can be counted.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// The state of an item that was sent.
    State(usize, ItemBody),
    /// A state that was sent before a newer one of the same item, and has to be sent again.
    Stale(usize),
    /// The removal of an item.
    Removed(usize),
    /// Nothing: there was no item to remove.
    Nothing,
}

impl Entry {
    fn item(&self) -> Option<usize> {
        match self {
            Self::State(item, _) | Self::Stale(item) | Self::Removed(item) => Some(*item),
            Self::Nothing => None,
        }
    }

    fn state(&self) -> Option<&ItemBody> {
        match self {
            Self::State(_, state) => Some(state),
            Self::Stale(_) | Self::Removed(_) | Self::Nothing => None,
        }
    }
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
    /// It contains something else.
    Replaced(Item),
    Removed(Item),
}

// What an earlier life has sent.
impl Sent {
    /// Adds a state that readers of an earlier life have received.
    pub(super) fn received(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, Origin::ThisTurn);
    }

    /// Adds another state of an item that readers have received. One that the stream has not begun is of an earlier turn.
    pub(super) fn received_change(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, Origin::EarlierTurn(None));
    }

    /// Readers of an earlier life know that an item was removed.
    pub(super) fn received_removal(&mut self, id: ItemKey) {
        let Some(removed) = self.place(id) else { return };
        self.entries.retain(|entry| entry.item() != Some(removed));
        if let Some(item) = self.items.get_mut(removed) {
            item.is_told = false;
        }
    }

    /// What events do not say of an item that the run has created or changed: its key, what it contained before, or that it
    /// exists at all, if no reader receives it.
    pub(super) fn remember(&mut self, found: FoundItem) {
        let FoundItem { id, item, key, is_own, before } = found;
        if self.place(id).is_none() {
            if !item.is_hidden() {
                return;
            }
            self.received(id, item);
        }
        if let Some(known) = self.place(id).and_then(|known| self.items.get_mut(known)) {
            known.key = Key::Is(key);
            if !is_own {
                known.origin = Origin::EarlierTurn(before.map(|before| before.body));
            }
        }
    }

    fn push(&mut self, id: ItemKey, wire: ThreadItem, origin: Origin) {
        let state = wire.body.clone();
        let item = match self.place(id) {
            Some(known) => {
                if let Some(item) = self.items.get_mut(known) {
                    (item.wire, item.is_told) = (wire, true);
                }
                known
            }
            None => {
                self.items.push(Item { id, wire, key: Key::Unknown, origin, is_told: true });
                self.items.len() - 1
            }
        };
        self.entries.push(Entry::State(item, state));
    }
}

// What the list holds.
impl Sent {
    fn place(&self, id: ItemKey) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    /// Whether an item that was found by its key is one of an earlier turn that still exists.
    pub(super) fn may_change(&self, id: ItemKey) -> bool {
        let known = self.items.iter().find(|item| item.id == id);
        known.is_none_or(|item| item.origin != Origin::ThisTurn && item.is_told)
    }

    /// Whether readers know any item of this turn that is for people.
    pub(super) fn is_visible(&self) -> bool {
        let told = self.items.iter().filter(|item| item.is_told).map(|item| &item.wire);
        told.filter(|item| !item.is_hidden()).any(|item| item.body != ItemBody::EndOfTurn)
    }

    /// The item of this key that the run has produced and not removed, the newest one.
    pub(super) fn produced(&self, key: &str) -> Option<usize> {
        let is_named = |item: usize| self.items.get(item).is_some_and(|item| item.key() == Some(key));
        let newest =
            self.entries.iter().take(self.at).rev().find(|entry| entry.item().is_some_and(is_named))?;
        match newest {
            Entry::Removed(_) => None,
            entry => entry.item(),
        }
    }

    /// The entry that comes next, if it creates an item.
    fn next_new(&self) -> Option<(&Item, &ItemBody)> {
        let entry = self.entries.get(self.at)?;
        let item = self.items.get(entry.item()?).filter(|item| item.origin == Origin::ThisTurn)?;
        let is_first = !self.entries.iter().take(self.at).any(|earlier| earlier.item() == entry.item());
        entry.state().filter(|_| is_first).map(|state| (item, state))
    }

    /// The item of this turn that comes next in the list, if it has this key and is of the same kind as the state. One that no
    /// reader receives must be equal: it costs nothing to add another one, at its right place.
    pub(super) fn expected(&self, key: Option<&str>, state: &ItemBody) -> Option<&Item> {
        let (item, was) = self.next_new()?;
        let same_key = item.key == Key::Unknown || item.key() == key;
        let same_kind = discriminant(was) == discriminant(state);
        (same_key && same_kind && (!item.wire.is_hidden() || was == state)).then_some(item)
    }

    /// Whether the next entry is of this item.
    pub(super) fn is_next(&self, item: usize) -> bool {
        self.entries.get(self.at).and_then(Entry::item) == Some(item)
    }

    pub(super) fn is_produced(&self) -> bool {
        self.at >= self.entries.len()
    }

    /// Brings the next entry that readers receive, or the next one that they do not receive, to the front: where hidden items stand
    /// among the others is not known after a crash.
    pub(super) fn align(&mut self, hidden: bool) {
        let next = self.entries.iter().skip(self.at).position(|entry| self.is_hidden(entry) == hidden);
        if let Some(rest) = next.and_then(|next| self.entries.get_mut(self.at..=self.at + next)) {
            rest.rotate_right(1);
        }
    }

    fn is_hidden(&self, entry: &Entry) -> bool {
        entry.item().and_then(|item| self.items.get(item)).is_some_and(|item| item.wire.is_hidden())
    }

    /// Items of earlier turns that the run has changed and not removed.
    pub(super) fn changed_items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.origin != Origin::ThisTurn && item.is_told)
    }
}

// What the run produces.
impl Sent {
    /// A message that this life has written.
    pub(super) fn written(&mut self, id: ItemKey, item: ThreadItem) {
        self.received(id, item);
        if let Some(item) = self.items.last_mut() {
            item.key = Key::Is(None);
        }
        self.at = self.entries.len();
    }

    /// A new item; the one that is expected becomes it.
    pub(super) fn add(&mut self, id: ItemKey, wire: ThreadItem, key: Option<String>) -> Vec<Change> {
        let expected = self.expected(key.as_deref(), &wire.body).map(|item| item.id);
        if let Some(expected) = expected.and_then(|id| self.place(id)) {
            if let Some(item) = self.items.get_mut(expected) {
                item.key = Key::Is(key);
            }
            return self.produce_next(expected, wire.body);
        }
        let mut changes = if wire.is_hidden() { self.remove_hidden_rest() } else { self.remove_rest() };
        self.entries.insert(self.at, Entry::State(self.items.len(), wire.body.clone()));
        self.at += 1;
        let item = Item { id, wire, key: Key::Is(key), origin: Origin::ThisTurn, is_told: true };
        self.items.push(item.clone());
        changes.push(Change::Added(item));
        changes
    }

    /// The index of an item of an earlier turn.
    pub(super) fn find(&mut self, found: FoundItem) -> usize {
        if let Some(known) = self.place(found.id) {
            return known;
        }
        let FoundItem { id, item: wire, key, .. } = found;
        let origin = Origin::EarlierTurn(Some(wire.body.clone()));
        self.items.push(Item { id, wire, key: Key::Is(key), origin, is_told: true });
        self.items.len() - 1
    }

    /// Another state of an item, or its removal.
    pub(super) fn change(&mut self, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        match state {
            Some(state) if self.is_next(item) => self.produce_next(item, state),
            Some(state) => {
                let mut changes = self.remove_rest();
                changes.extend(self.produce(Entry::State(item, state.clone()), item, Some(state)));
                changes
            }
            // Events do not say what a removed item was: it is not in the list of a resumed run.
            None => self.produce(Entry::Removed(item), item, None),
        }
    }

    /// There is no item to remove.
    pub(super) fn nothing(&mut self) {
        self.entries.insert(self.at, Entry::Nothing);
        self.at += 1;
    }

    fn produce_next(&mut self, item: usize, state: ItemBody) -> Vec<Change> {
        let Some(entry) = self.entries.get_mut(self.at) else { return Vec::new() };
        let was = std::mem::replace(entry, Entry::State(item, state.clone()));
        self.at += 1;
        if was.state() == Some(&state) {
            return Vec::new();
        }
        for later in self.entries.iter_mut().skip(self.at).filter(|later| later.item() == Some(item)) {
            *later = Entry::Stale(item);
        }
        self.tell(item, Some(state))
    }

    fn produce(&mut self, entry: Entry, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        self.entries.insert(self.at, entry);
        self.at += 1;
        self.tell(item, state)
    }

    /// Readers are to know this state of an item.
    fn tell(&mut self, item: usize, state: Option<ItemBody>) -> Vec<Change> {
        let Some(item) = self.items.get_mut(item).filter(|item| item.told() != state.as_ref()) else {
            return Vec::new();
        };
        item.is_told = state.is_some();
        match state {
            Some(state) => {
                item.wire.body = state;
                vec![Change::Replaced(item.clone())]
            }
            None => vec![Change::Removed(item.clone())],
        }
    }

    /// Takes back the last output. Its entry stays in the list, for the attempt that follows; a removal stands. Returns the
    /// item, if it is a message.
    pub(super) fn undo(&mut self) -> Option<(ItemKey, ThreadItem)> {
        self.at = self.at.checked_sub(1)?;
        match self.entries.get(self.at)? {
            Entry::State(item, state @ ItemBody::AssistantMessage { .. }) => {
                let item = self.items.get(*item)?;
                Some((item.id, ThreadItem { body: state.clone(), ..item.wire.clone() }))
            }
            Entry::State(..) | Entry::Stale(_) => None,
            Entry::Removed(_) | Entry::Nothing => {
                self.entries.remove(self.at);
                None
            }
        }
    }

    /// As [`Self::remove_rest`], of items that no reader receives.
    fn remove_hidden_rest(&mut self) -> Vec<Change> {
        let rest = self.entries.split_off(self.at);
        let (hidden, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|entry| self.is_hidden(entry));
        self.entries.extend(hidden);
        let changes = self.remove_rest();
        self.entries.extend(others);
        changes
    }

    /// Takes back what was sent and is not produced, the last first: new items are removed, and others go back to the state that was
    /// produced, or to that of before the turn.
    pub(super) fn remove_rest(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for entry in self.entries.split_off(self.at).into_iter().rev() {
            let Some(item) = entry.item() else { continue };
            let produced = self.entries.iter().rev().find(|earlier| earlier.item() == Some(item));
            let state = match (produced, self.items.get(item).map(|item| &item.origin)) {
                (Some(produced), _) => produced.state().cloned(),
                (None, Some(Origin::EarlierTurn(before))) => {
                    // Another turn has changed it since: that stays.
                    let Some(before) = before else { continue };
                    Some(before.clone())
                }
                (None, _) => None,
            };
            changes.extend(self.tell(item, state));
        }
        changes
    }
}
