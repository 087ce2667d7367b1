//! Converts item changes to events. Pure.

use wire::chat::ChatEvent;

use crate::kinds::turn::sent::{ItemChange, OutputItem};

/// A change's events for readers; hidden items have none.
pub(super) fn events_of(change: ItemChange) -> Vec<ChatEvent> {
    let (ItemChange::Opened(item)
    | ItemChange::Updated(item, _)
    | ItemChange::Added(item)
    | ItemChange::Replaced(item)
    | ItemChange::Removed(item)) = &change;
    if item.wire.is_hidden() {
        return Vec::new();
    }
    match change {
        ItemChange::Opened(OutputItem { wire: item, .. }) => vec![ChatEvent::ItemAdded { item }],
        ItemChange::Updated(OutputItem { wire: item, .. }, updates) => {
            let event = |update| ChatEvent::ItemUpdated { item_id: item.id.clone(), update };
            updates.into_iter().map(event).collect()
        }
        ItemChange::Added(OutputItem { wire: item, .. }) => vec![ChatEvent::ItemDone { item }],
        ItemChange::Replaced(OutputItem { wire: item, .. }) => vec![ChatEvent::ItemReplaced { item }],
        ItemChange::Removed(item) => vec![ChatEvent::ItemRemoved { item_id: item.wire.id }],
    }
}
