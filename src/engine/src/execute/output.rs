//! Orders the output of a super-step's streaming nodes by file order.
//!
//! The first unfinished node is live; later ones are buffered until all before them are done. So a turn's text does
//! not depend on timing. `for_each` items and sub-workflows use the same mechanism inside their node.

use std::collections::VecDeque;

use super::ports::{ImmediateEvent, Output, SentAnnotation, SentItem, ThreadChange, Undone};
use async_trait::async_trait;
use parking_lot::Mutex;

/// One piece of buffered output.
#[derive(Debug, Clone, PartialEq)]
enum BufferedOutput {
    Text { node: String, piece: String },
    Annotations(Vec<SentAnnotation>),
    NewMessage,
    Item(SentItem),
}

/// A part of an attempt's output, buffered or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPart {
    /// Bytes in the current message.
    Text(usize),
    /// Bytes in a message that was completed by a request for a new one.
    Message(usize),
    /// Bytes in a message that was completed by the following item.
    BeforeItem(usize),
    Item,
}

/// The output of one super-step's streaming nodes.
pub(crate) struct StepOutput<'a> {
    into: &'a dyn Output,
    state: Mutex<OutputState>,
    /// Held while output is forwarded, so that nothing overtakes buffered output.
    turn: tokio::sync::Mutex<()>,
}

struct OutputState {
    live: usize,
    slots: Vec<Slot>,
}

#[derive(Default, Clone)]
struct Slot {
    /// Output that is not forwarded yet; in a live slot, only pieces that wait for their turn. So a piece is neither
    /// lost nor undone wrongly if its writer is dropped while it waits.
    held: VecDeque<BufferedOutput>,
    /// The current attempt's output.
    said: Vec<OutputPart>,
    done: bool,
}

impl Slot {
    fn say(&mut self, bytes: usize) {
        match self.said.last_mut() {
            Some(OutputPart::Text(before)) => *before += bytes,
            _ => self.said.push(OutputPart::Text(bytes)),
        }
    }

    fn text(&mut self, node: &str, piece: &str) {
        self.say(piece.len());
        match self.held.back_mut() {
            Some(BufferedOutput::Text { node: last, piece: held }) if last == node => held.push_str(piece),
            _ => self.held.push_back(BufferedOutput::Text { node: node.to_owned(), piece: piece.to_owned() }),
        }
    }

    fn new_message(&mut self) {
        if let Some(OutputPart::Text(bytes)) = self.said.last().copied() {
            self.said.pop();
            self.said.push(OutputPart::Message(bytes));
        }
        // A repeated request has no effect.
        if !matches!(self.held.back(), Some(BufferedOutput::NewMessage)) {
            self.held.push_back(BufferedOutput::NewMessage);
        }
    }

    fn item(&mut self, item: SentItem) {
        if let Some(OutputPart::Text(bytes)) = self.said.last().copied() {
            self.said.pop();
            self.said.push(OutputPart::BeforeItem(bytes));
        }
        self.said.push(OutputPart::Item);
        self.held.push_back(BufferedOutput::Item(item));
    }

    /// Takes back the last part, at most `most` bytes if it is text. Returns the share that was already forwarded.
    fn undo(&mut self, most: usize) -> Option<Undone> {
        if self.said.last() == Some(&OutputPart::Item)
            && matches!(self.held.back(), Some(BufferedOutput::NewMessage))
        {
            self.held.pop_back();
        }
        let (bytes, complete) = match self.said.pop()? {
            OutputPart::Item if matches!(self.held.back(), Some(BufferedOutput::Item(_))) => {
                self.held.pop_back();
                if let Some(OutputPart::BeforeItem(bytes)) = self.said.last().copied() {
                    self.said.pop();
                    self.said.push(OutputPart::Text(bytes));
                }
                return None;
            }
            OutputPart::Item => return Some(Undone::Item),
            OutputPart::Text(bytes) => (bytes, false),
            OutputPart::BeforeItem(bytes) => (bytes, true),
            OutputPart::Message(bytes) => {
                let held = matches!(self.held.back(), Some(BufferedOutput::NewMessage));
                if held {
                    self.held.pop_back();
                }
                (bytes, !held)
            }
        };
        let taken = bytes.min(most);
        if bytes > taken {
            // A complete message that loses a part is open again.
            self.said.push(OutputPart::Text(bytes - taken));
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

    /// Takes back the latest parts of a nested output.
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
        let state = Mutex::new(OutputState { live: 0, slots: vec![Slot::default(); slots] });
        Self { into, state, turn: tokio::sync::Mutex::new(()) }
    }

    /// Creates an output with a single slot that is always live.
    pub(super) fn root(into: &'a dyn Output) -> Self {
        Self::new(into, 1)
    }

    /// Accepts a piece from a slot.
    pub(crate) async fn text(&self, slot: usize, node: &str, piece: &str) {
        if piece.is_empty() {
            return;
        }
        // Most pieces have nothing before them and are forwarded directly.
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

    /// Accepts annotations on a slot's text in the current message.
    pub(crate) async fn annotate(&self, slot: usize, annotations: Vec<SentAnnotation>) {
        if self.enter(slot, |slot| slot.held.push_back(BufferedOutput::Annotations(annotations))) {
            self.hand_on().await;
        }
    }

    /// Starts a new message for a slot's further output.
    pub(crate) async fn new_message(&self, slot: usize) {
        if self.enter(slot, Slot::new_message) {
            self.hand_on().await;
        }
    }

    /// Accepts an item from a slot.
    pub(crate) async fn item(&self, slot: usize, item: SentItem) {
        if self.enter(slot, |slot| slot.item(item)) {
            self.hand_on().await;
        }
    }

    /// Takes back everything that a slot has sent in the current attempt.
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

    /// Ends a slot's output.
    pub(crate) async fn finish(&self, slot: usize) {
        if self.enter(slot, |slot| slot.done = true) {
            self.hand_on().await;
        }
    }

    /// Whether a slot's piece may be forwarded directly; if so, records it as sent.
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

    /// Changes a slot. Returns whether it is live.
    fn enter(&self, index: usize, change: impl FnOnce(&mut Slot)) -> bool {
        let mut state = self.state.lock();
        let live = state.live == index;
        let Some(slot) = state.slots.get_mut(index) else { return false };
        change(slot);
        live
    }

    /// Forwards the live slot's buffer, and makes the next slot live when this one is done.
    async fn hand_on(&self) {
        let _turn = self.turn.lock().await;
        while let Some(held) = self.next_held() {
            match held {
                BufferedOutput::Text { node, piece } => self.into.text(&node, &piece).await,
                BufferedOutput::Annotations(annotations) => self.into.annotate(annotations).await,
                BufferedOutput::NewMessage => self.into.new_message().await,
                BufferedOutput::Item(item) => self.into.item(item).await,
            }
        }
    }

    fn next_held(&self) -> Option<BufferedOutput> {
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

/// Removes `bytes` bytes from the end of the buffer, with their annotations. Returns how many of them were not in it.
fn take_back(held: &mut VecDeque<BufferedOutput>, mut bytes: usize) -> usize {
    while bytes > 0 {
        let left = match held.back_mut() {
            Some(BufferedOutput::Text { piece, .. }) => {
                let left = piece.len().saturating_sub(bytes);
                bytes -= piece.len() - left;
                piece.truncate(left);
                left
            }
            Some(BufferedOutput::Annotations(_)) => 0,
            Some(BufferedOutput::NewMessage | BufferedOutput::Item(_)) | None => break,
        };
        if left == 0 {
            held.pop_back();
        }
    }
    bytes
}

/// One slot, used as the entire output of nested nodes.
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
