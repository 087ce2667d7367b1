//! An item of the list, and what happens to it. Pure.

use kernel::ItemKey;
use serde::{Deserialize, Serialize};
use wire::chat::{ItemBody, ItemUpdate, ThreadItem};

use super::updates;

/// Key of an item in its thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Key {
    /// Events do not say it, and the row of the item is gone.
    Unknown,
    Is(Option<String>),
}

/// An item that the turn created, or one of an earlier turn that it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::kinds::turn) struct Item {
    #[serde(with = "key")]
    pub(in crate::kinds::turn) id: ItemKey,
    /// The item as readers know it. Its id keeps the prefix of the kind that it was created as.
    pub(in crate::kinds::turn) wire: ThreadItem,
    pub(super) key: Key,
    pub(super) origin: Origin,
    /// Whether readers know it.
    pub(super) is_told: bool,
    /// The last state that the run has produced of an open item, which has no row yet. Readers know the part that updates can express.
    pub(super) open: Option<ItemBody>,
    /// The change that another turn made while this one was parked.
    pub(super) other: Option<Other>,
}

/// What another turn made of an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Other {
    Content(ItemBody),
    Gone,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Origin {
    ThisTurn,
    /// With what it contained before this turn changed it; `None` if another turn has changed it since.
    EarlierTurn(Option<ItemBody>),
}

/// Keys of items as they are stored.
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

impl Item {
    pub(in crate::kinds::turn) fn key(&self) -> Option<&str> {
        match &self.key {
            Key::Is(Some(key)) => Some(key),
            Key::Is(None) | Key::Unknown => None,
        }
    }

    /// Whether it is not complete.
    pub(in crate::kinds::turn) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn told(&self) -> Option<&ItemBody> {
        self.is_told.then_some(&self.wire.body)
    }

    /// Returns the updates from the state that readers know to the new one. Then records the state that these updates give.
    pub(super) fn update_from(&mut self, known: ItemBody) -> Option<Change> {
        let updates = updates::between(&known, &self.wire.body);
        self.wire.body = known;
        for update in &updates {
            update.apply(&mut self.wire.body);
        }
        (!updates.is_empty()).then(|| Change::Updated(self.clone(), updates))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.other == Some(Other::Gone)
    }
}

/// What happens to an item.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::kinds::turn) enum Change {
    /// It is new, and not complete.
    Opened(Item),
    /// An open item has another state.
    Updated(Item, Vec<ItemUpdate>),
    /// It is complete, and stored from now on.
    Added(Item),
    /// It contains something else.
    Replaced(Item),
    Removed(Item),
}
