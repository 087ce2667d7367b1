//! What readers of a run's stream are told, and when.

use engine::ports::StepRecord;
use store::batch::ItemRow;
use wire::chat::NoticeLevel;

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

    /// The last `bytes` bytes of the current message are of an attempt that has failed: they do not stand.
    fn rewind(&mut self, node: &str, bytes: usize);

    /// What follows is another message, unless the current one is empty.
    fn new_message(&mut self) -> Urgency;

    /// What the run is doing.
    fn progress(&mut self, text: &str) -> Urgency;

    /// A message outside the conversation.
    fn notice(&mut self, level: NoticeLevel, message: &str, title: Option<&str>) -> Urgency;

    /// Tells what is not told yet; `items` are committed with it.
    fn write(&mut self, frames: &mut Frames, items: &mut Vec<ItemRow>);
}
