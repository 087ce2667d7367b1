//! The list as an earlier life left it: from its events, and from its items' rows.

use kernel::ItemKey;
use store::FoundItem;
use wire::chat::{ItemUpdate, ThreadItem};

use super::{ItemChange, ItemOrigin, KnownKey, Other, OutputEntry, OutputItem, OutputList};
use crate::text::json;

/// Maximum bytes, as JSON, of open-item states that are kept one by one. An update to a task list is small, but each
/// one creates a state.
const SEEN_BYTES: usize = 64 << 20;

impl OutputList {
    /// Adds a state that an earlier life's readers have received.
    pub(in crate::kinds::turn) fn received(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, ItemOrigin::ThisTurn);
    }

    /// Adds another item state that readers have received. An item that does not begin in the stream comes from an
    /// earlier turn.
    pub(in crate::kinds::turn) fn received_change(&mut self, id: ItemKey, item: ThreadItem) {
        self.push(id, item, ItemOrigin::EarlierTurn(None));
    }

    /// Adds an open item that an earlier life's readers have received.
    pub(in crate::kinds::turn) fn received_open(&mut self, id: ItemKey, item: ThreadItem) {
        let state = item.body.clone();
        self.push(id, item, ItemOrigin::ThisTurn);
        if let Some(OutputEntry::State(item, seen)) = self.entries.pop() {
            if let Some(item) = self.items.get_mut(item) {
                item.open = Some(state);
            }
            self.seen_bytes += json(&seen).len();
            self.entries.push(OutputEntry::Seen(item, seen));
        }
    }

    /// Adds an update that an earlier life's readers have received for an open item.
    pub(in crate::kinds::turn) fn received_update(&mut self, id: ItemKey, update: &ItemUpdate) {
        let Some(place) = self.place(id) else { return };
        let Some(item) = self.items.get_mut(place) else { return };
        if self.seen_bytes < SEEN_BYTES {
            let mut item = item.wire.clone();
            update.apply(&mut item.body);
            self.received_open(id, item);
            return;
        }
        update.apply(&mut item.wire.body);
        item.open.iter_mut().for_each(|open| update.apply(open));
        let last = self.entries.iter_mut().rev().find(|entry| entry.item() == Some(place));
        if let Some(OutputEntry::Seen(_, seen)) = last {
            update.apply(seen);
        }
    }

    /// Records an item removal that an earlier life's readers have received.
    pub(in crate::kinds::turn) fn received_removal(&mut self, id: ItemKey) {
        let Some(removed) = self.place(id) else { return };
        self.entries.retain(|entry| entry.item() != Some(removed));
        if let Some(item) = self.items.get_mut(removed) {
            item.is_told = false;
        }
    }

    /// The items whose rows [`Self::remember`] needs, in addition to the run's rows.
    pub(in crate::kinds::turn) fn ids(&self) -> Vec<ItemKey> {
        self.items.iter().map(|item| item.id).collect()
    }

    /// Adds data that events lack for items the run created or changed: keys, previous contents, hidden items, and
    /// changes by other turns. Returns changes by other turns that readers do not know; they are already stored.
    pub(in crate::kinds::turn) fn remember(&mut self, found: Vec<FoundItem>) -> Vec<ItemChange> {
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
            known.key = KnownKey::Is(key);
            if known.origin != ItemOrigin::ThisTurn {
                known.origin = ItemOrigin::EarlierTurn(before.map(|before| before.body));
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
                changes.push(ItemChange::Removed(known.clone()));
                self.age(place);
            }
        }
        changes
    }

    /// Marks an item's states as sent before another turn's change.
    fn age(&mut self, item: usize) {
        for entry in &mut self.entries {
            if let OutputEntry::State(of, state) | OutputEntry::Seen(of, state) = entry
                && *of == item
            {
                *entry = OutputEntry::Old(item, state.clone());
            }
        }
    }

    fn push(&mut self, id: ItemKey, wire: ThreadItem, origin: ItemOrigin) {
        let state = wire.body.clone();
        let item = match self.place(id) {
            Some(known) => {
                if let Some(item) = self.items.get_mut(known) {
                    (item.wire, item.is_told, item.open) = (wire, true, None);
                }
                known
            }
            None => {
                let (key, is_told, open, other) = (KnownKey::Unknown, true, None, None);
                self.items.push(OutputItem { id, wire, key, origin, is_told, open, other });
                self.items.len() - 1
            }
        };
        self.entries.push(OutputEntry::State(item, state));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::chat::{ItemBody, TaskList};

    use super::*;

    /// Each update to a large list is small, and there may be a hundred times as many as states.
    #[test]
    fn many_states_of_an_open_item_are_stored_as_one() {
        const MIB: usize = 1 << 20;
        let task = |title: &str| serde_json::from_value(json!({"type": "custom", "title": title})).unwrap();
        let list = |title: &str| {
            let list = json!({"type": "custom", "tasks": [{"type": "custom", "title": "x".repeat(MIB)}]});
            let mut workflow: TaskList = serde_json::from_value(list).unwrap();
            workflow.tasks.push(task(title));
            ItemBody::Workflow { workflow }
        };
        let id = ItemKey([1; 24]);
        let (name, thread_id, created_at) = (id.wire("wf"), "t".to_owned(), "t".into());
        let mut sent = OutputList::default();
        sent.received_open(id, ThreadItem { id: name, thread_id, created_at, body: list("0") });
        for number in 1..=100 {
            let update = ItemUpdate::TaskUpdated { task_index: 1, task: task(&number.to_string()) };
            sent.received_update(id, &update);
        }
        assert!(sent.entries.len() <= SEEN_BYTES / MIB, "{}", sent.entries.len());
        let item = &sent.items[0];
        assert_eq!((&item.wire.body, item.open.as_ref()), (&list("100"), Some(&list("100"))));
        assert!(sent.entries.last().unwrap().says(&list("100")));
    }
}
