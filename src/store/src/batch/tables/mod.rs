//! The tables that lanes write: one file per noun, with its row type and its columns.

mod app;
mod blob;
mod events;
mod item;
mod outbox;
mod question;
mod queue;
mod run;
mod step;
mod stream;
mod thread;
mod training;
mod usage;

pub use app::AppRunRow;
pub use blob::INLINE_RESULT;
pub use events::EventsRow;
pub use item::{ContainedRow, CutRow, ItemRow, RemovedItemRow, ReplacedItemRow};
pub use outbox::OutboxRow;
pub use question::{ClosedQuestionsRow, QuestionItemRow, QuestionRow, TurnSentRow};
pub use queue::QueueRow;
pub use run::{RunRow, RunUpdate};
pub use step::{CopyRow, StepRow};
pub use stream::StreamRow;
pub use thread::{ThreadChangeRow, ThreadRow};
pub use training::{
    TrainingCallRow, TrainingCandidateRow, TrainingCaseRow, TrainingMarkRow, TrainingRunRow, TrainingStateRow,
};
pub use usage::ChatUsageRow;

pub(super) use app::AppRuns;
pub(super) use blob::{Blobs, Chunks};
pub(super) use events::{Events, KeptEvents};
pub(super) use item::{Cuts, Items, RemovedItems, ReplacedItems};
pub(super) use outbox::Outbox;
pub(super) use question::{ClosedQuestions, QuestionItems, Questions, TurnsSent};
pub(super) use queue::Queued;
pub(super) use run::{Latest, Runs, Updates};
pub(super) use step::{Copies, Steps};
pub(super) use stream::Streams;
pub(super) use thread::{ThreadChanges, Threads};
pub(super) use training::{
    LatestState, TrainingCalls, TrainingCandidates, TrainingCases, TrainingMarks, TrainingRuns,
    TrainingStates,
};
pub(super) use usage::ChatUsage;
