//! The list as an earlier life has left it: from its events, and from the rows of its items.

use kernel::ItemKey;
use store::FoundItem;
use wire::chat::{ItemBody, ItemUpdate, ThreadItem};

use super::{Change, Entry, Item, Key, Origin, Other, Sent};

impl Sent {
    /// Adds a state that readers of an earlier life have received.
    pub(in crate::kinds::turn) fn received(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, Origin::ThisTurn);
    }

    /// Adds another state of an item that readers have received. One that the stream has not begun is of an earlier turn.
    pub(in crate::kinds::turn) fn received_change(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, Origin::EarlierTurn(None));
    }

    /// Adds an item that readers of an earlier life know as an open one.
    pub(in crate::kinds::turn) fn received_open(&mut self, id: ItemKey, item: ThreadItem) {
        let state = item.body.clone();
        self.push(id, item, Origin::ThisTurn);
        self.reopen(id, state);
    }

    /// Adds what readers of an earlier life know of the next state of an open item.
    pub(in crate::kinds::turn) fn received_update(&mut self, id: ItemKey, update: &ItemUpdate) {
        let Some(item) = self.place(id).and_then(|place| self.items.get(place)) else { return };
        let mut item = item.wire.clone();
        update.apply(&mut item.body);
        self.received_open(id, item);
    }

    fn reopen(&mut self, id: ItemKey, state: ItemBody) {
        if let Some(item) = self.place(id).and_then(|place| self.items.get_mut(place)) {
            item.open = Some(state);
        }
    }

    /// Readers of an earlier life know that an item was removed.
    pub(in crate::kinds::turn) fn received_removal(&mut self, id: ItemKey) {
        let Some(removed) = self.place(id) else { return };
        self.entries.retain(|entry| entry.item() != Some(removed));
        if let Some(item) = self.items.get_mut(removed) {
            item.is_told = false;
        }
    }

    /// The items whose rows are wanted by [`Self::remember`], beside those of the run.
    pub(in crate::kinds::turn) fn ids(&self) -> Vec<ItemKey> {
        self.items.iter().map(|item| item.id).collect()
    }

    /// What events do not say of the items that the run has created or changed: their keys, what they contained before, those that
    /// no reader receives, and what other turns made of them. Returns what readers do not know of the latter; it is stored already.
    pub(in crate::kinds::turn) fn remember(&mut self, found: Vec<FoundItem>) -> Vec<Change> {
        let stored: Vec<ItemKey> = found.iter().map(|found| found.id).collect();
        let mut changes = Vec::new();
        for FoundItem { id, item, key, before } in found {
            if self.place(id).is_none() {
                if !item.is_hidden() {
                    continue;
                }
                self.received(id, item.clone());
            }
            let Some(place) = self.place(id) else { continue };
            let Some(known) = self.items.get_mut(place) else { continue };
            known.key = Key::Is(key);
            if known.origin != Origin::ThisTurn {
                known.origin = Origin::EarlierTurn(before.map(|before| before.body));
            }
            if known.told().is_some_and(|told| *told != item.body) {
                known.other = Some(Other::Content(item.body.clone()));
                changes.extend(self.tell(place, Some(item.body), false));
                self.age(place);
            }
        }
        for place in 0..self.items.len() {
            let Some(known) = self.items.get_mut(place) else { continue };
            if known.is_told && !known.is_open() && !stored.contains(&known.id) {
                known.other = Some(Other::Gone);
                known.is_told = false;
                changes.push(Change::Removed(known.clone()));
                self.age(place);
            }
        }
        changes
    }

    /// Another turn has changed the item since all that was sent of it.
    fn age(&mut self, item: usize) {
        for entry in &mut self.entries {
            if let Entry::State(of, state) = entry
                && *of == item
            {
                *entry = Entry::Old(item, state.clone());
            }
        }
    }

    fn push(&mut self, id: ItemKey, wire: ThreadItem, origin: Origin) {
        let state = wire.body.clone();
        let item = match self.place(id) {
            Some(known) => {
                if let Some(item) = self.items.get_mut(known) {
                    (item.wire, item.is_told, item.open) = (wire, true, None);
                }
                known
            }
            None => {
                let (key, is_told, open, other) = (Key::Unknown, true, None, None);
                self.items.push(Item { id, wire, key, origin, is_told, open, other });
                self.items.len() - 1
            }
        };
        self.entries.push(Entry::State(item, state));
    }
}
