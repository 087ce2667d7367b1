//! Stream events before the handover.

use serde::Serialize;
use wire::sse;

use crate::text::json;

/// Events that are not handed over yet, in wire format.
pub(crate) struct Frames {
    stream: String,
    text: String,
    first_seq: u64,
    next_seq: u64,
}

impl Frames {
    pub(crate) fn new(stream: String, next_seq: u64) -> Self {
        Self { stream, text: String::new(), first_seq: next_seq, next_seq }
    }

    /// The next event's number.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Appends an event.
    pub(crate) fn push(&mut self, event: &impl Serialize) {
        sse::push_event(&mut self.text, &self.stream, self.next_seq, &json(event));
        self.next_seq += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next_seq == self.first_seq
    }

    /// Takes the events, with the numbers of the first and the last one.
    pub(crate) fn take(&mut self) -> (String, u64, u64) {
        let first = std::mem::replace(&mut self.first_seq, self.next_seq);
        (std::mem::take(&mut self.text), first, self.next_seq - 1)
    }
}
