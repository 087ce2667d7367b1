//! Converts item changes to events. Pure.

use wire::chat::ChatEvent;

use crate::kinds::turn::sent::{Change, Item};

/// A change's events for readers; hidden items have none.
pub(super) fn events_of(change: Change) -> Vec<ChatEvent> {
    let (Change::Opened(item)
    | Change::Updated(item, _)
    | Change::Added(item)
    | Change::Replaced(item)
    | Change::Removed(item)) = &change;
    if item.wire.is_hidden() {
        return Vec::new();
    }
    match change {
        Change::Opened(Item { wire: item, .. }) => vec![ChatEvent::ItemAdded { item }],
        Change::Updated(Item { wire: item, .. }, updates) => {
            let event = |update| ChatEvent::ItemUpdated { item_id: item.id.clone(), update };
            updates.into_iter().map(event).collect()
        }
        Change::Added(Item { wire: item, .. }) => vec![ChatEvent::ItemDone { item }],
        Change::Replaced(Item { wire: item, .. }) => vec![ChatEvent::ItemReplaced { item }],
        Change::Removed(item) => vec![ChatEvent::ItemRemoved { item_id: item.wire.id }],
    }
}
