//! The texts of nodes that stream in the same super-step, put in the order of the file.
//!
//! The first unfinished one is live; the others are held until those before them are done. So a turn's text does not
//! depend on timing.

use parking_lot::Mutex;

use crate::ports::TextSink;

/// The streaming nodes of one super-step.
pub(crate) struct StepOutput<'a> {
    sink: &'a dyn TextSink,
    state: Mutex<State>,
    /// Held while the sink takes a piece, so that the next live node cannot overtake what was held for it.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    live: usize,
    slots: Vec<Slot>,
}

#[derive(Default, Clone)]
struct Slot {
    held: String,
    done: bool,
}

impl<'a> StepOutput<'a> {
    pub(crate) fn new(sink: &'a dyn TextSink, nodes: usize) -> Self {
        let state = Mutex::new(State { live: 0, slots: vec![Slot::default(); nodes] });
        Self { sink, state, turn: tokio::sync::Mutex::new(()) }
    }

    /// Takes a piece of node `slot`.
    pub(crate) async fn write(&self, slot: usize, piece: &str) {
        let live = {
            let mut state = self.state.lock();
            let live = state.live == slot;
            if !live && let Some(slot) = state.slots.get_mut(slot) {
                slot.held.push_str(piece);
            }
            live
        };
        if live && !piece.is_empty() {
            let _turn = self.turn.lock().await;
            self.sink.write(piece).await;
        }
    }

    /// Node `slot` writes no more.
    pub(crate) async fn finish(&self, slot: usize) {
        let live = {
            let mut state = self.state.lock();
            let live = state.live == slot;
            if let Some(slot) = state.slots.get_mut(slot) {
                slot.done = true;
            }
            live
        };
        if !live {
            return;
        }
        let _turn = self.turn.lock().await;
        let released = {
            let mut state = self.state.lock();
            let mut released = String::new();
            loop {
                let live = state.live;
                match state.slots.get_mut(live) {
                    Some(slot) if slot.done => released.push_str(&std::mem::take(&mut slot.held)),
                    Some(slot) => {
                        released.push_str(&std::mem::take(&mut slot.held));
                        break;
                    }
                    None => break,
                }
                state.live += 1;
            }
            released
        };
        if !released.is_empty() {
            self.sink.write(&released).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;

    #[derive(Default)]
    struct Collected(Mutex<String>);

    #[async_trait]
    impl TextSink for Collected {
        async fn write(&self, piece: &str) {
            self.0.lock().push_str(piece);
        }
    }

    struct Slow(Collected);

    #[async_trait]
    impl TextSink for Slow {
        async fn write(&self, piece: &str) {
            for _ in 0..piece.len() {
                tokio::task::yield_now().await;
            }
            self.0.write(piece).await;
        }
    }

    #[tokio::test]
    async fn a_slow_sink_does_not_let_a_node_overtake_what_was_held_for_it() {
        let sink = Slow(Collected::default());
        let output = StepOutput::new(&sink, 2);
        output.write(1, "held for long, ").await;
        futures_util::join!(output.finish(0), output.write(1, "now"));
        assert_eq!(*sink.0.0.lock(), "held for long, now");
    }

    #[tokio::test]
    async fn the_order_of_the_file_wins_over_the_order_of_arrival() {
        let sink = Collected::default();
        let output = StepOutput::new(&sink, 3);
        output.write(2, "c").await;
        output.write(0, "a").await;
        output.finish(2).await;
        output.write(1, "b").await;
        assert_eq!(*sink.0.lock(), "a");
        output.finish(0).await;
        assert_eq!(*sink.0.lock(), "ab");
        output.write(1, "B").await;
        output.finish(1).await;
        assert_eq!(*sink.0.lock(), "abBc");
    }
}
