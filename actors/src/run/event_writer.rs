//! What readers of a run's stream are told, and when.

use engine::ports::{ImmediateEvent, SentAnnotation, SentItem, StepRecord, ThreadChange, Undone};
use kernel::ThreadId;
use store::batch::Batch;
use store::{FoundItem, StoredThread};

use super::Frames;

/// When readers are to be told of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// With whatever is handed over next.
    Whenever,
    /// With more of it, after a moment.
    Soon,
    /// As soon as the workflow gives way.
    Next,
    /// At once.
    Now,
}

/// Turns what a run does into the events of its stream. Pure: it collects, and tells when it is asked.
pub(crate) trait EventWriter: Send + 'static {
    /// An attempt begins.
    fn begins(&mut self, _row: &StepRecord) -> Urgency {
        Urgency::Whenever
    }

    /// A row was handed over; its events are committed with it.
    fn records(&mut self, _row: &StepRecord) {}

    /// A piece of text.
    fn text(&mut self, node: &str, piece: &str) -> Urgency;

    /// Annotations of the current message.
    fn annotate(&mut self, _annotations: Vec<SentAnnotation>) -> Urgency {
        Urgency::Whenever
    }

    /// Takes back these parts, the last first: the attempt that sent them has failed.
    fn undo(&mut self, _node: &str, _parts: &[Undone]) {}

    /// The thread in which an item with this key is looked up before it is sent; `None` if it is known, or there is none.
    fn looks_up(&self, _key: &str) -> Option<ThreadId> {
        None
    }

    /// An item; `earlier` has the same key.
    fn item(&mut self, _item: SentItem, _earlier: Option<FoundItem>) -> Urgency {
        Urgency::Whenever
    }

    /// What follows is another message, unless the current one is empty.
    fn new_message(&mut self) -> Urgency;

    /// An event that does not wait for what nodes before it still write.
    fn immediate(&mut self, event: ImmediateEvent) -> Urgency;

    /// The thread that the run can change, if there is one.
    fn thread(&self) -> Option<ThreadId> {
        None
    }

    /// Changes the thread, of which this is stored. Returns whether anything differs.
    fn change_thread(&mut self, _stored: StoredThread, _change: ThreadChange) -> bool {
        false
    }

    /// Tells what is not told yet; rows that are committed with it go into `batch`.
    fn write(&mut self, frames: &mut Frames, batch: &mut Batch);
}
