//! The content and timing of events for a run's readers.

use engine::ports::{ImmediateEvent, SentAnnotation, SentItem, StepRecord, ThreadChange, Undone};
use kernel::ThreadId;
use store::batch::Batch;
use store::{FoundItem, StoredThread};

use super::Frames;

/// When an event is sent to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// With the next handover.
    Whenever,
    /// Coalesced with further events, after a short delay.
    Soon,
    /// When the workflow yields next.
    Next,
    /// Immediately.
    Now,
}

/// Turns run activity into stream events. Pure: it collects events and writes them on request.
pub(crate) trait EventWriter: Send + 'static {
    /// An attempt starts.
    fn begins(&mut self, _row: &StepRecord) -> Urgency {
        Urgency::Whenever
    }

    /// A row was handed over; its events are committed with it.
    fn records(&mut self, _row: &StepRecord) {}

    /// A piece of text.
    fn text(&mut self, _node: &str, _piece: &str) -> Urgency {
        Urgency::Whenever
    }

    /// Annotations for the current message.
    fn annotate(&mut self, _annotations: Vec<SentAnnotation>) -> Urgency {
        Urgency::Whenever
    }

    /// Takes back these parts, last first: the attempt that sent them failed.
    fn undo(&mut self, _node: &str, _parts: &[Undone]) {}

    /// The thread to look up this key's item in before sending; `None` if no lookup is needed.
    fn looks_up(&self, _key: &str) -> Option<ThreadId> {
        None
    }

    /// An item; `earlier` is the existing item with the same key.
    fn item(&mut self, _item: SentItem, _earlier: Option<FoundItem>) -> Urgency {
        Urgency::Whenever
    }

    /// Starts a new message, unless the current one is empty.
    fn new_message(&mut self) -> Urgency {
        Urgency::Whenever
    }

    /// An event that does not wait for unfinished output of earlier nodes.
    fn immediate(&mut self, _event: ImmediateEvent) -> Urgency {
        Urgency::Whenever
    }

    /// The thread that the run can change, if any.
    fn thread(&self) -> Option<ThreadId> {
        None
    }

    /// Changes the thread, currently stored as `stored`. Returns whether anything differs.
    fn change_thread(&mut self, _stored: StoredThread, _change: ThreadChange) -> bool {
        false
    }

    /// Writes all pending events to `frames`, and rows that are committed with them to `batch`.
    fn write(&mut self, frames: &mut Frames, batch: &mut Batch);
}
