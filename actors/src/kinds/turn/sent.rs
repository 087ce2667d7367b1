//! A turn's output list: item states, in order. Pure.
//!
//! After a crash the list is folded from the stored events, and the resumed run produces it again: equal output is not
//! sent twice, different output replaces its item, and missing output is removed. A failed attempt's output is treated
//! in the same way: the cursor moves back before it, and the next attempt produces it again.

mod earlier;
mod item;
mod updates;

use std::mem::discriminant;

use kernel::ItemKey;
use serde::{Deserialize, Serialize};
use store::FoundItem;
use wire::Timestamp;
use wire::chat::{ItemBody, ThreadItem};

pub(super) use item::{ItemChange, OutputItem};
use item::{ItemOrigin, KnownKey, Other};

/// An entry in the list. Each output has one, so that a failed attempt's entries can be counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum OutputEntry {
    /// An item state that was sent.
    State(usize, ItemBody),
    /// A state that was sent before another turn changed the item.
    Old(usize, ItemBody),
    /// A state of an open item that was sent before a restart, rebuilt from its updates.
    Seen(usize, ItemBody),
    /// A state that was sent before a newer one of the same item.
    Stale(usize),
    /// The removal of an item.
    Removed(usize),
    /// The removal of a nonexistent item.
    Nothing,
}

impl OutputEntry {
    fn item(&self) -> Option<usize> {
        match self {
            Self::State(item, _)
            | Self::Old(item, _)
            | Self::Seen(item, _)
            | Self::Stale(item)
            | Self::Removed(item) => Some(*item),
            Self::Nothing => None,
        }
    }

    fn state(&self) -> Option<&ItemBody> {
        match self {
            Self::State(_, state) | Self::Old(_, state) | Self::Seen(_, state) => Some(state),
            Self::Stale(_) | Self::Removed(_) | Self::Nothing => None,
        }
    }

    /// Whether the state was sent, as far as entries can tell.
    fn says(&self, state: &ItemBody) -> bool {
        match (self, state) {
            // The first state's progress is in no event.
            (
                Self::Seen(_, ItemBody::GeneratedImage { image: seen, progress: None }),
                ItemBody::GeneratedImage { image, .. },
            ) => seen == image,
            (Self::Seen(_, seen), state) => {
                discriminant(seen) == discriminant(state) && updates::between(seen, state).is_empty()
            }
            (entry, state) => entry.state() == Some(state),
        }
    }
}

/// The output list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OutputList {
    items: Vec<OutputItem>,
    entries: Vec<OutputEntry>,
    /// Number of entries that the run has produced.
    #[serde(skip)]
    at: usize,
    /// Bytes of open-item states from an earlier life.
    #[serde(skip)]
    seen_bytes: usize,
}

// Queries on the list.
impl OutputList {
    fn place(&self, id: ItemKey) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    /// Whether an item found by its key can be changed: an item of this turn is already in the list, and a removed one
    /// is still found until its commit.
    pub(super) fn may_change(&self, id: ItemKey) -> bool {
        let known = self.items.iter().find(|item| item.id == id);
        known.is_none_or(|item| item.origin != ItemOrigin::ThisTurn && item.is_told)
    }

    /// Whether the turn has sent visible output that it has not retracted.
    pub(super) fn is_visible(&self) -> bool {
        let shows = |item: &OutputItem, state: &ItemBody| {
            let is_new = match &item.origin {
                ItemOrigin::ThisTurn => true,
                ItemOrigin::EarlierTurn(before) => before.as_ref() != Some(state),
            };
            is_new
                && (item.is_told || item.is_gone())
                && !item.wire.is_hidden()
                && *state != ItemBody::EndOfTurn
        };
        self.entries.iter().any(|entry| {
            let item = entry.item().and_then(|item| self.items.get(item));
            item.zip(entry.state()).is_some_and(|(item, state)| shows(item, state))
        })
    }

    /// The newest item with this key that the run has produced and not removed.
    pub(super) fn produced(&self, key: &str) -> Option<usize> {
        let is_named =
            |item: usize| self.items.get(item).is_some_and(|item| item.key() == Some(key) && !item.is_gone());
        let newest =
            self.entries.iter().take(self.at).rev().find(|entry| entry.item().is_some_and(is_named))?;
        match newest {
            OutputEntry::Removed(_) => None,
            entry => entry.item(),
        }
    }

    /// The item that an output with this key and state creates, if it is next in the list. `is_found`: an earlier
    /// turn's item has the key, so an open item, whose key is unknown after a crash, has another key.
    pub(super) fn expected(&mut self, key: Option<&str>, state: &ItemBody, is_found: bool) -> Option<usize> {
        let is_other = |item: &OutputItem| is_found && item.is_open() && item.key == KnownKey::Unknown;
        let is_next = self.seek(|sent, at, equal| {
            let item = sent.entries.get(at).and_then(OutputEntry::item).and_then(|item| sent.items.get(item));
            !item.is_some_and(is_other) && sent.creates(at, key, state, equal)
        });
        self.entries.get(self.at).filter(|_| is_next)?.item()
    }

    /// Whether the entry creates the item for an output with this key and state. If readers do not know the item, the
    /// state must be equal: the item cannot change into another one, and a second hidden item costs nothing.
    fn creates(&self, at: usize, key: Option<&str>, state: &ItemBody, equal: bool) -> bool {
        let Some(entry) = self.entries.get(at) else { return false };
        let (Some(place), Some(was)) = (entry.item(), entry.state()) else { return false };
        let Some(item) = self.items.get(place) else { return false };
        let is_first = || !self.entries.iter().take(self.at).any(|earlier| earlier.item() == Some(place));
        let is_created = item.is_gone() || item.origin == ItemOrigin::ThisTurn && is_first();
        let same_key = item.key == KnownKey::Unknown || item.key() == key;
        let same_kind = discriminant(was) == discriminant(state);
        // A message's text is known only when it is complete.
        let is_message = matches!(was, ItemBody::AssistantMessage { .. });
        let may_differ = !equal && !item.wire.is_hidden() && (item.is_told || item.is_gone() && is_message);
        is_created && same_key && same_kind && (entry.says(state) || may_differ)
    }

    /// Id and time of the next message in the list.
    pub(super) fn expected_message(&mut self) -> Option<(ItemKey, Timestamp)> {
        let item = self.expected(None, &ItemBody::message(""), false)?;
        self.items.get(item).map(|item| (item.id, item.wire.created_at.clone()))
    }

    /// Whether an output for this item is next in the list.
    pub(super) fn is_next(&mut self, item: usize, state: &ItemBody) -> bool {
        self.seek(|sent, at, equal| {
            let entry = sent.entries.get(at).filter(|entry| entry.item() == Some(item));
            entry.is_some_and(|entry| !equal || entry.says(state))
        })
    }

    /// Moves the next accepted entry to the cursor, preferably an equal one. Skips only entries that need not be
    /// produced again: those by an attempt that failed in an earlier life.
    fn seek(&mut self, accepts: impl Fn(&Self, usize, bool) -> bool) -> bool {
        for equal in [true, false] {
            for at in self.at..self.entries.len() {
                if accepts(self, at, equal) {
                    self.entries.drain(self.at..at);
                    return true;
                }
                if !self.is_superseded(at) {
                    break;
                }
            }
        }
        false
    }

    /// Whether a later entry supersedes this one for the same item.
    fn is_superseded(&self, at: usize) -> bool {
        let Some(entry) = self.entries.get(at) else { return false };
        let same = |later: &OutputEntry| entry.item().is_some() && later.item() == entry.item();
        matches!(entry, OutputEntry::Stale(_)) || self.entries.iter().skip(at + 1).any(same)
    }

    /// Whether the next entry is the last one, and a message with this text.
    pub(super) fn is_last_message(&self, text: &str) -> bool {
        let rest = self.entries.get(self.at..).unwrap_or_default();
        matches!(rest, [entry] if entry.state().and_then(ItemBody::text).is_some_and(|known| known == text))
    }

    pub(super) fn is_produced(&self) -> bool {
        self.at >= self.entries.len()
    }

    /// Moves the next visible or the next hidden entry to the cursor: the position of hidden items among the others is
    /// unknown after a crash.
    pub(super) fn align(&mut self, hidden: bool) {
        let next = self.entries.iter().skip(self.at).position(|entry| self.is_hidden(entry) == hidden);
        if let Some(rest) = next.and_then(|next| self.entries.get_mut(self.at..=self.at + next)) {
            rest.rotate_right(1);
        }
    }

    fn is_hidden(&self, entry: &OutputEntry) -> bool {
        entry.item().and_then(|item| self.items.get(item)).is_some_and(|item| item.wire.is_hidden())
    }

    /// Items from earlier turns that the run has changed and not removed.
    pub(super) fn changed_items(&self) -> impl Iterator<Item = &OutputItem> {
        self.items.iter().filter(|item| item.origin != ItemOrigin::ThisTurn && item.is_told)
    }
}

// Changes by the run's output.
impl OutputList {
    /// Adds a message that this life has written.
    pub(super) fn written(&mut self, id: ItemKey, item: ThreadItem) {
        self.received(id, item);
        if let Some(item) = self.items.last_mut() {
            item.key = KnownKey::Is(None);
        }
        self.at = self.entries.len();
    }

    /// Adds an item, or reuses the expected one. `more`: it stays open.
    pub(super) fn add(
        &mut self,
        id: ItemKey,
        wire: ThreadItem,
        key: Option<String>,
        more: bool,
    ) -> Vec<ItemChange> {
        if let Some(expected) = self.expected(key.as_deref(), &wire.body, false) {
            if let Some(item) = self.items.get_mut(expected) {
                item.key = KnownKey::Is(key);
            }
            return self.produce_next(expected, wire.body, more);
        }
        let mut changes = if wire.is_hidden() { self.remove_hidden_rest() } else { self.remove_rest() };
        self.entries.insert(self.at, OutputEntry::State(self.items.len(), wire.body.clone()));
        self.at += 1;
        let open = more.then(|| wire.body.clone());
        let origin = ItemOrigin::ThisTurn;
        let item = OutputItem { id, wire, key: KnownKey::Is(key), origin, is_told: true, open, other: None };
        self.items.push(item.clone());
        changes.push(if more { ItemChange::Opened(item) } else { ItemChange::Added(item) });
        changes
    }

    /// The index of an item from an earlier turn.
    pub(super) fn find(&mut self, found: FoundItem) -> usize {
        if let Some(known) = self.place(found.id) {
            return known;
        }
        let FoundItem { id, item: wire, key, .. } = found;
        let origin = ItemOrigin::EarlierTurn(Some(wire.body.clone()));
        let (is_told, open, other) = (true, None, None);
        self.items.push(OutputItem { id, wire, key: KnownKey::Is(key), origin, is_told, open, other });
        self.items.len() - 1
    }

    /// Sets an item's next state, or removes it. `more`: an open item stays open.
    pub(super) fn change(&mut self, item: usize, state: Option<ItemBody>, more: bool) -> Vec<ItemChange> {
        match state {
            Some(state) if self.is_next(item, &state) => self.produce_next(item, state, more),
            Some(state) => {
                let mut changes = self.remove_rest();
                changes.extend(self.produce(
                    OutputEntry::State(item, state.clone()),
                    item,
                    Some(state),
                    more,
                ));
                changes
            }
            // Items removed by an earlier life are not in the list.
            None => self.produce(OutputEntry::Removed(item), item, None, false),
        }
    }

    /// Completes the open items with their last states.
    pub(super) fn complete_open(&mut self) -> Vec<ItemChange> {
        let mut changes = Vec::new();
        for item in self.items.iter_mut().filter(|item| item.is_told) {
            if let Some(state) = item.open.take() {
                item.wire.body = state.complete();
                changes.push(ItemChange::Added(item.clone()));
            }
        }
        changes
    }

    /// Removes the open items, the last first.
    pub(super) fn remove_open(&mut self) -> Vec<ItemChange> {
        let open: Vec<usize> = (0..self.items.len())
            .filter(|item| self.items.get(*item).is_some_and(OutputItem::is_open))
            .collect();
        open.into_iter().rev().flat_map(|item| self.tell(item, None, false)).collect()
    }

    /// Records the removal of a nonexistent item.
    pub(super) fn nothing(&mut self) {
        self.entries.insert(self.at, OutputEntry::Nothing);
        self.at += 1;
    }

    fn produce_next(&mut self, item: usize, state: ItemBody, more: bool) -> Vec<ItemChange> {
        let Some(entry) = self.entries.get_mut(self.at) else { return Vec::new() };
        self.at += 1;
        let known = self.items.get_mut(item);
        let completes = !more && known.as_ref().is_some_and(|item| item.is_open());
        if entry.says(&state) && !completes {
            if matches!(entry, OutputEntry::Seen(..)) {
                if let Some(OutputItem { open: Some(open), .. }) = known {
                    open.clone_from(&state);
                }
                *entry = OutputEntry::State(item, state);
            }
            return Vec::new();
        }
        *entry = OutputEntry::State(item, state.clone());
        for later in self.entries.iter_mut().skip(self.at).filter(|later| later.item() == Some(item)) {
            *later = OutputEntry::Stale(item);
        }
        self.tell(item, Some(state), more)
    }

    fn produce(
        &mut self,
        entry: OutputEntry,
        item: usize,
        state: Option<ItemBody>,
        more: bool,
    ) -> Vec<ItemChange> {
        self.entries.insert(self.at, entry);
        self.at += 1;
        self.tell(item, state, more)
    }

    /// Returns the changes that give readers this state of an item. `more`: an open one stays open.
    fn tell(&mut self, item: usize, state: Option<ItemBody>, more: bool) -> Vec<ItemChange> {
        let Some(item) = self.items.get_mut(item).filter(|item| !item.is_gone()) else { return Vec::new() };
        let was_told = std::mem::replace(&mut item.is_told, state.is_some());
        let change = match state {
            Some(state) if item.is_open() && more => {
                let known = std::mem::replace(&mut item.wire.body, state.clone());
                item.open = Some(state);
                match was_told {
                    true => item.update_from(known),
                    false => Some(ItemChange::Opened(item.clone())),
                }
            }
            Some(state) if item.is_open() => {
                item.open = None;
                item.wire.body = state.complete();
                Some(ItemChange::Added(item.clone()))
            }
            Some(state) => {
                let state = state.complete();
                let differs = !was_told || item.wire.body != state;
                item.wire.body = state;
                differs.then(|| ItemChange::Replaced(item.clone()))
            }
            None => was_told.then(|| ItemChange::Removed(item.clone())),
        };
        change.into_iter().collect()
    }

    /// Undoes the last output. Its entry remains in the list for the next attempt; a removal is dropped. Returns the
    /// item if it is a message.
    pub(super) fn undo(&mut self) -> Option<(ItemKey, ThreadItem)> {
        self.at = self.at.checked_sub(1)?;
        match self.entries.get(self.at)? {
            OutputEntry::State(item, state @ ItemBody::AssistantMessage { .. })
            | OutputEntry::Old(item, state @ ItemBody::AssistantMessage { .. }) => {
                let item = self.items.get(*item)?;
                Some((item.id, ThreadItem { body: state.clone(), ..item.wire.clone() }))
            }
            OutputEntry::State(..) | OutputEntry::Old(..) | OutputEntry::Seen(..) | OutputEntry::Stale(_) => {
                None
            }
            OutputEntry::Removed(_) | OutputEntry::Nothing => {
                self.entries.remove(self.at);
                None
            }
        }
    }

    /// Same as [`Self::remove_rest`], for hidden items.
    fn remove_hidden_rest(&mut self) -> Vec<ItemChange> {
        let rest = self.entries.split_off(self.at);
        let (hidden, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|entry| self.is_hidden(entry));
        self.entries.extend(hidden);
        let changes = self.remove_rest();
        self.entries.extend(others);
        changes
    }

    /// Retracts output that was not produced again, the last first: new items are removed, and others revert to the
    /// state that was produced, or to the state before the turn.
    pub(super) fn remove_rest(&mut self) -> Vec<ItemChange> {
        let mut changes = Vec::new();
        for entry in self.entries.split_off(self.at).into_iter().rev() {
            let Some(item) = entry.item() else { continue };
            let Some(known) = self.items.get(item) else { continue };
            let produced = self.entries.iter().rev().find(|earlier| earlier.item() == Some(item));
            let state = match (produced, &known.other, &known.origin) {
                (Some(OutputEntry::State(_, state)), ..) => Some(state.clone()),
                (Some(OutputEntry::Removed(_)), ..) => None,
                // Another turn's change stays.
                (_, Some(Other::Content(content)), _) => Some(content.clone()),
                (_, Some(Other::Gone), _) | (_, None, ItemOrigin::EarlierTurn(None)) => continue,
                (_, None, ItemOrigin::EarlierTurn(Some(before))) => Some(before.clone()),
                (_, None, ItemOrigin::ThisTurn) => None,
            };
            changes.extend(self.tell(item, state, true));
        }
        changes
    }
}
