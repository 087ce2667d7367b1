//! An item in the list, and its changes. Pure.

use kernel::ItemKey;
use serde::{Deserialize, Serialize};
use wire::chat::{ItemBody, ItemUpdate, ThreadItem};

use super::updates;

/// An item's key in its thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KnownKey {
    /// Unknown: events do not contain it, and the item's row is gone.
    Unknown,
    Is(Option<String>),
}

/// An item that the turn created, or one from an earlier turn that it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kinds::turn) struct OutputItem {
    #[serde(with = "key")]
    pub(in crate::kinds::turn) id: ItemKey,
    /// The item as readers know it. Its id keeps the prefix for the kind that it was created as.
    pub(in crate::kinds::turn) wire: ThreadItem,
    pub(super) key: KnownKey,
    pub(super) origin: ItemOrigin,
    /// Whether readers know the item.
    pub(super) is_told: bool,
    /// An open item's last produced state; it has no row yet. Readers know the part that updates can express.
    pub(super) open: Option<ItemBody>,
    /// Another turn's change while this one was parked.
    pub(super) other: Option<Other>,
}

/// Another turn's change to an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Other {
    Content(ItemBody),
    Gone,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum ItemOrigin {
    ThisTurn,
    /// The item's content before this turn changed it; `None` if another turn has changed it since.
    EarlierTurn(Option<ItemBody>),
}

/// Serializes item keys.
mod key {
    use kernel::ItemKey;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(key: &ItemKey, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&key.wire("itm"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ItemKey, D::Error> {
        ItemKey::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl OutputItem {
    pub(in crate::kinds::turn) fn key(&self) -> Option<&str> {
        match &self.key {
            KnownKey::Is(Some(key)) => Some(key),
            KnownKey::Is(None) | KnownKey::Unknown => None,
        }
    }

    /// Whether the item is incomplete.
    pub(in crate::kinds::turn) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn told(&self) -> Option<&ItemBody> {
        self.is_told.then_some(&self.wire.body)
    }

    /// Returns the updates from the readers' state to the new one, and records the resulting state.
    pub(super) fn update_from(&mut self, known: ItemBody) -> Option<ItemChange> {
        let updates = updates::between(&known, &self.wire.body);
        self.wire.body = known;
        for update in &updates {
            update.apply(&mut self.wire.body);
        }
        (!updates.is_empty()).then(|| ItemChange::Updated(self.clone(), updates))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.other == Some(Other::Gone)
    }
}

/// A change to an item.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::kinds::turn) enum ItemChange {
    /// A new, incomplete item.
    Opened(OutputItem),
    /// A new state of an open item.
    Updated(OutputItem, Vec<ItemUpdate>),
    /// A complete item, stored from now on.
    Added(OutputItem),
    /// New content.
    Replaced(OutputItem),
    Removed(OutputItem),
}
