//! What the streaming nodes of one super-step say, put in the order of the file.
//!
//! The first unfinished one is live; the others are held until those before them are done. So a turn's text does not
//! depend on timing. The same is done for the items of a `for_each` and for a sub-workflow inside its node.

use std::collections::VecDeque;

use super::ports::{ImmediateEvent, Output, SentAnnotation, SentItem, ThreadChange, Undone};
use async_trait::async_trait;
use parking_lot::Mutex;

/// What one node said while it was held.
#[derive(Debug, Clone, PartialEq)]
enum Held {
    Text { node: String, piece: String },
    Annotations(Vec<SentAnnotation>),
    NewMessage,
    Item(SentItem),
}

/// What an attempt has said, held parts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// Bytes of the current message.
    Text(usize),
    /// Bytes of a message that is complete since a new one was asked for.
    Message(usize),
    /// Bytes of a message that the following item has completed.
    BeforeItem(usize),
    Item,
}

/// The streaming nodes of one super-step.
pub(crate) struct StepOutput<'a> {
    into: &'a dyn Output,
    state: Mutex<State>,
    /// Held while something is handed on, so that nothing overtakes what was held before it.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    live: usize,
    slots: Vec<Slot>,
}

#[derive(Default, Clone)]
struct Slot {
    /// What was said and is not handed on yet: of a live slot only what waits for its turn. So a piece is not lost,
    /// and is taken back rightly, when its writer is dropped while it waits.
    held: VecDeque<Held>,
    /// What the current attempt has said.
    said: Vec<Said>,
    done: bool,
}

impl Slot {
    fn say(&mut self, bytes: usize) {
        match self.said.last_mut() {
            Some(Said::Text(before)) => *before += bytes,
            _ => self.said.push(Said::Text(bytes)),
        }
    }

    fn text(&mut self, node: &str, piece: &str) {
        self.say(piece.len());
        match self.held.back_mut() {
            Some(Held::Text { node: last, piece: held }) if last == node => held.push_str(piece),
            _ => self.held.push_back(Held::Text { node: node.to_owned(), piece: piece.to_owned() }),
        }
    }

    fn new_message(&mut self) {
        if let Some(Said::Text(bytes)) = self.said.last().copied() {
            self.said.pop();
            self.said.push(Said::Message(bytes));
        }
        // A second one in a row says nothing more.
        if !matches!(self.held.back(), Some(Held::NewMessage)) {
            self.held.push_back(Held::NewMessage);
        }
    }

    fn item(&mut self, item: SentItem) {
        if let Some(Said::Text(bytes)) = self.said.last().copied() {
            self.said.pop();
            self.said.push(Said::BeforeItem(bytes));
        }
        self.said.push(Said::Item);
        self.held.push_back(Held::Item(item));
    }

    /// Takes the last part back, of a text at most `most` bytes; returns what of it was handed on.
    fn undo(&mut self, most: usize) -> Option<Undone> {
        if self.said.last() == Some(&Said::Item) && matches!(self.held.back(), Some(Held::NewMessage)) {
            self.held.pop_back();
        }
        let (bytes, complete) = match self.said.pop()? {
            Said::Item if matches!(self.held.back(), Some(Held::Item(_))) => {
                self.held.pop_back();
                if let Some(Said::BeforeItem(bytes)) = self.said.last().copied() {
                    self.said.pop();
                    self.said.push(Said::Text(bytes));
                }
                return None;
            }
            Said::Item => return Some(Undone::Item),
            Said::Text(bytes) => (bytes, false),
            Said::BeforeItem(bytes) => (bytes, true),
            Said::Message(bytes) => {
                let held = matches!(self.held.back(), Some(Held::NewMessage));
                if held {
                    self.held.pop_back();
                }
                (bytes, !held)
            }
        };
        let taken = bytes.min(most);
        if bytes > taken {
            // A complete message of which a part is taken back is open again.
            self.said.push(Said::Text(bytes - taken));
        }
        match take_back(&mut self.held, taken) {
            0 => None,
            told if complete => Some(Undone::Message(told)),
            told => Some(Undone::Text(told)),
        }
    }

    fn undo_all(&mut self) -> Vec<Undone> {
        let mut told = Vec::new();
        while !self.said.is_empty() {
            told.extend(self.undo(usize::MAX));
        }
        told
    }

    /// Takes back what an output inside has said last.
    fn undo_parts(&mut self, parts: &[Undone]) -> Vec<Undone> {
        let most = |part: &Undone| match part {
            Undone::Text(bytes) | Undone::Message(bytes) => *bytes,
            Undone::Item => usize::MAX,
        };
        parts.iter().filter_map(|part| self.undo(most(part))).collect()
    }
}

impl<'a> StepOutput<'a> {
    pub(crate) fn new(into: &'a dyn Output, slots: usize) -> Self {
        let state = Mutex::new(State { live: 0, slots: vec![Slot::default(); slots] });
        Self { into, state, turn: tokio::sync::Mutex::new(()) }
    }

    /// A single slot that is always live.
    pub(super) fn root(into: &'a dyn Output) -> Self {
        Self::new(into, 1)
    }

    /// Takes a piece of slot `slot`.
    pub(crate) async fn text(&self, slot: usize, node: &str, piece: &str) {
        if piece.is_empty() {
            return;
        }
        // Most pieces find nothing before them and are handed on as they are.
        if let Ok(_turn) = self.turn.try_lock()
            && self.is_next(slot, piece.len())
        {
            self.into.text(node, piece).await;
            return;
        }
        if self.enter(slot, |slot| slot.text(node, piece)) {
            self.hand_on().await;
        }
    }

    /// Takes annotations of what slot `slot` has said of the current message.
    pub(crate) async fn annotate(&self, slot: usize, annotations: Vec<SentAnnotation>) {
        if self.enter(slot, |slot| slot.held.push_back(Held::Annotations(annotations))) {
            self.hand_on().await;
        }
    }

    /// What follows of slot `slot` is another message.
    pub(crate) async fn new_message(&self, slot: usize) {
        if self.enter(slot, Slot::new_message) {
            self.hand_on().await;
        }
    }

    /// Takes an item of slot `slot`.
    pub(crate) async fn item(&self, slot: usize, item: SentItem) {
        if self.enter(slot, |slot| slot.item(item)) {
            self.hand_on().await;
        }
    }

    /// Takes back everything that slot `slot` has said in the current attempt.
    pub(crate) async fn restart(&self, slot: usize, node: &str) {
        self.undo(slot, node, Slot::undo_all).await;
    }

    async fn undo(&self, slot: usize, node: &str, undo: impl FnOnce(&mut Slot) -> Vec<Undone>) {
        if self.state.lock().slots.get(slot).is_none_or(|slot| slot.said.is_empty()) {
            return;
        }
        let _turn = self.turn.lock().await;
        let mut told = Vec::new();
        self.enter(slot, |slot| told = undo(slot));
        if !told.is_empty() {
            self.into.undo(node, &told).await;
        }
    }

    pub(crate) async fn look_up(&self, key: &str) {
        self.into.look_up(key).await;
    }

    pub(crate) async fn immediate(&self, event: ImmediateEvent) {
        self.into.immediate(event).await;
    }

    pub(crate) async fn change_thread(&self, change: ThreadChange) {
        self.into.change_thread(change).await;
    }

    /// Slot `slot` says no more.
    pub(crate) async fn finish(&self, slot: usize) {
        if self.enter(slot, |slot| slot.done = true) {
            self.hand_on().await;
        }
    }

    /// Whether a piece of slot `slot` may be handed on at once; if so, the slot has said it.
    fn is_next(&self, index: usize, bytes: usize) -> bool {
        let mut state = self.state.lock();
        let live = state.live == index;
        match state.slots.get_mut(index) {
            Some(slot) if live && slot.held.is_empty() => {
                slot.say(bytes);
                true
            }
            _ => false,
        }
    }

    /// Changes a slot and says whether it is live.
    fn enter(&self, index: usize, change: impl FnOnce(&mut Slot)) -> bool {
        let mut state = self.state.lock();
        let live = state.live == index;
        let Some(slot) = state.slots.get_mut(index) else { return false };
        change(slot);
        live
    }

    /// Hands on what the live slot holds, and makes the next one live when it is done.
    async fn hand_on(&self) {
        let _turn = self.turn.lock().await;
        while let Some(held) = self.next_held() {
            match held {
                Held::Text { node, piece } => self.into.text(&node, &piece).await,
                Held::Annotations(annotations) => self.into.annotate(annotations).await,
                Held::NewMessage => self.into.new_message().await,
                Held::Item(item) => self.into.item(item).await,
            }
        }
    }

    fn next_held(&self) -> Option<Held> {
        let mut state = self.state.lock();
        loop {
            let live = state.live;
            let slot = state.slots.get_mut(live)?;
            if let Some(held) = slot.held.pop_front() {
                return Some(held);
            }
            if !slot.done {
                return None;
            }
            state.live += 1;
        }
    }
}

/// Takes `bytes` bytes off the end of what is held, with their annotations; returns how many of them are not there.
fn take_back(held: &mut VecDeque<Held>, mut bytes: usize) -> usize {
    while bytes > 0 {
        let left = match held.back_mut() {
            Some(Held::Text { piece, .. }) => {
                let left = piece.len().saturating_sub(bytes);
                bytes -= piece.len() - left;
                piece.truncate(left);
                left
            }
            Some(Held::Annotations(_)) => 0,
            Some(Held::NewMessage | Held::Item(_)) | None => break,
        };
        if left == 0 {
            held.pop_back();
        }
    }
    bytes
}

/// One slot as the whole output of what runs inside it.
pub(crate) struct SlotOutput<'a> {
    pub(crate) output: &'a StepOutput<'a>,
    pub(crate) slot: usize,
}

#[async_trait]
impl Output for SlotOutput<'_> {
    async fn text(&self, node: &str, piece: &str) {
        self.output.text(self.slot, node, piece).await;
    }

    async fn annotate(&self, annotations: Vec<SentAnnotation>) {
        self.output.annotate(self.slot, annotations).await;
    }

    async fn undo(&self, node: &str, parts: &[Undone]) {
        self.output.undo(self.slot, node, |slot| slot.undo_parts(parts)).await;
    }

    async fn item(&self, item: SentItem) {
        self.output.item(self.slot, item).await;
    }

    async fn new_message(&self) {
        self.output.new_message(self.slot).await;
    }

    async fn look_up(&self, key: &str) {
        self.output.look_up(key).await;
    }

    async fn immediate(&self, event: ImmediateEvent) {
        self.output.immediate(event).await;
    }

    async fn change_thread(&self, change: ThreadChange) {
        self.output.change_thread(change).await;
    }
}

#[cfg(test)]
mod tests;
