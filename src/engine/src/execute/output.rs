//! What the streaming nodes of one super-step say, put in the order of the file.
//!
//! The first unfinished one is live; the others are held until those before them are done. So a turn's text does not
//! depend on timing. The same is done for the items of a `for_each` and for a sub-workflow inside its node.

use std::collections::VecDeque;

use async_trait::async_trait;
use parking_lot::Mutex;
use wire::chat::NoticeLevel;

use crate::execute::ports::Output;

/// What one node said while it was held.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Text { node: String, piece: String },
    NewMessage,
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
    /// Bytes that the current attempt has written to the current message, held ones included.
    bytes: usize,
    done: bool,
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
        let live = self.enter(slot, |slot| {
            slot.bytes += piece.len();
            match slot.held.back_mut() {
                Some(Held::Text { node: last, piece: held }) if last == node => held.push_str(piece),
                _ => slot.held.push_back(Held::Text { node: node.to_owned(), piece: piece.to_owned() }),
            }
        });
        if live {
            self.hand_on().await;
        }
    }

    /// What follows of slot `slot` is another message.
    pub(crate) async fn new_message(&self, slot: usize) {
        let live = self.enter(slot, |slot| {
            slot.bytes = 0;
            slot.held.push_back(Held::NewMessage);
        });
        if live {
            self.hand_on().await;
        }
    }

    /// What slot `slot` has written to the current message is of an attempt that has failed.
    pub(crate) async fn restart(&self, slot: usize, node: &str) {
        self.rewind(slot, node, usize::MAX).await;
    }

    /// Takes back the last bytes of slot `slot`, at most all of them.
    async fn rewind(&self, slot: usize, node: &str, bytes: usize) {
        if self.state.lock().slots.get(slot).is_none_or(|slot| slot.bytes == 0) {
            return;
        }
        let _turn = self.turn.lock().await;
        let mut told = 0;
        self.enter(slot, |slot| {
            let bytes = bytes.min(slot.bytes);
            slot.bytes -= bytes;
            told = take_back(&mut slot.held, bytes);
        });
        if told > 0 {
            self.into.rewind(node, told).await;
        }
    }

    pub(crate) async fn progress(&self, text: &str) {
        self.into.progress(text).await;
    }

    pub(crate) async fn notice(&self, level: NoticeLevel, message: &str, title: Option<&str>) {
        self.into.notice(level, message, title).await;
    }

    /// Slot `slot` says no more.
    pub(crate) async fn finish(&self, slot: usize) {
        if self.enter(slot, |slot| slot.done = true) {
            self.hand_on().await;
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
                Held::NewMessage => self.into.new_message().await,
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

/// Takes `bytes` bytes off the end of what is held; says how many of them are not there.
fn take_back(held: &mut VecDeque<Held>, mut bytes: usize) -> usize {
    while bytes > 0
        && let Some(Held::Text { piece, .. }) = held.back_mut()
    {
        let left = piece.len().saturating_sub(bytes);
        bytes -= piece.len() - left;
        piece.truncate(left);
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

    async fn rewind(&self, node: &str, bytes: usize) {
        self.output.rewind(self.slot, node, bytes).await;
    }

    async fn new_message(&self) {
        self.output.new_message(self.slot).await;
    }

    async fn progress(&self, text: &str) {
        self.output.progress(text).await;
    }

    async fn notice(&self, level: NoticeLevel, message: &str, title: Option<&str>) {
        self.output.notice(level, message, title).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collected(Mutex<String>);

    #[async_trait]
    impl Output for Collected {
        async fn text(&self, _node: &str, piece: &str) {
            self.0.lock().push_str(piece);
            for _ in 0..piece.len() {
                tokio::task::yield_now().await;
            }
        }

        async fn rewind(&self, _node: &str, bytes: usize) {
            let mut text = self.0.lock();
            let left = text.len() - bytes;
            text.truncate(left);
        }

        async fn new_message(&self) {
            self.0.lock().push('|');
        }

        async fn progress(&self, _text: &str) {}

        async fn notice(&self, _level: NoticeLevel, _message: &str, _title: Option<&str>) {}
    }

    #[tokio::test]
    async fn a_slow_output_does_not_let_a_node_overtake_what_was_held_for_it() {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 2);
        output.text(1, "b", "held for long, ").await;
        futures_util::join!(output.finish(0), output.text(1, "b", "now"));
        assert_eq!(*sink.0.lock(), "held for long, now");
    }

    #[tokio::test]
    async fn a_piece_whose_speaker_is_dropped_while_it_waits_is_taken_back_rightly() {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 2);
        output.text(0, "a", "kept ").await;
        output.text(1, "b", "long and longer, ").await;
        // The output is busy with what was held when the second one is dropped with a piece of its own.
        let dropped = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                () = output.text(1, "b", "dropped") => panic!("it did not wait"),
                () = std::future::ready(()) => {}
            }
            output.restart(1, "b").await;
            output.text(1, "b", "again").await;
        };
        futures_util::join!(output.finish(0), dropped);
        output.finish(1).await;
        assert_eq!(*sink.0.lock(), "kept again");
    }

    #[tokio::test]
    async fn the_order_of_the_file_wins_over_the_order_of_arrival() {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 3);
        output.text(2, "c", "c").await;
        output.text(0, "a", "a").await;
        output.finish(2).await;
        output.text(1, "b", "b").await;
        output.new_message(1).await;
        assert_eq!(*sink.0.lock(), "a");
        output.finish(0).await;
        assert_eq!(*sink.0.lock(), "ab|");
        output.text(1, "b", "B").await;
        output.finish(1).await;
        assert_eq!(*sink.0.lock(), "ab|Bc");
    }

    #[tokio::test]
    async fn an_attempt_that_is_made_again_takes_its_text_back() {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 2);
        output.text(1, "b", "first").await;
        output.new_message(1).await;
        output.text(1, "b", "half").await;
        output.restart(1, "b").await;
        output.text(1, "b", "whole").await;
        output.text(0, "a", "a: ").await;
        output.finish(0).await;
        assert_eq!(*sink.0.lock(), "a: first|whole");
        output.restart(1, "b").await;
        assert_eq!(*sink.0.lock(), "a: first|", "also when it is live by then");
        output.finish(1).await;
    }

    #[tokio::test]
    async fn what_runs_inside_a_slot_keeps_its_own_order() {
        let sink = Collected::default();
        let outer = StepOutput::new(&sink, 2);
        let slot = SlotOutput { output: &outer, slot: 1 };
        let inner = StepOutput::new(&slot, 2);
        inner.text(1, "y", "y").await;
        inner.text(0, "x", "x").await;
        inner.finish(0).await;
        inner.restart(1, "y").await;
        inner.text(1, "y", "Y").await;
        inner.finish(1).await;
        assert_eq!(*sink.0.lock(), "");
        outer.text(0, "a", "a").await;
        outer.finish(0).await;
        assert_eq!(*sink.0.lock(), "axY");
    }
}
