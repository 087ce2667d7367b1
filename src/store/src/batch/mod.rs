//! The unit that a lane commits: rows from many streams in one statement.
//!
//! One commit is one prepared statement with a CTE for each table that has rows, and arrays as values. The
//! statement is its own transaction, which saves the BEGIN and COMMIT round trips. Each row is written once
//! however often it is sent, so a resend after a broken connection is harmless.

#[macro_use]
mod table;
mod columns;
mod connection;
mod statement;
mod tables;

use uuid::Uuid;

pub use connection::{LaneConnection, LaneError};
pub use tables::{
    AppRunRow, ChatUsageRow, ClosedQuestionsRow, ContainedRow, CopyRow, CutRow, EventsRow, INLINE_RESULT,
    ItemRow, OutboxRow, QuestionItemRow, QuestionRow, QueueRow, RemovedItemRow, ReplacedItemRow, RunRow,
    RunUpdate, StepRow, StreamRow, ThreadChangeRow, ThreadRow, TrainingCallRow, TrainingCandidateRow,
    TrainingCaseRow, TrainingMarkRow, TrainingRunRow, TrainingStateRow, TurnSentRow,
};

/// Declares the row types in a batch.
macro_rules! batch {
    ($($(#[$doc:meta])* $rows:ident: $row:ty,)+) => {
        /// Rows that are committed together or not at all.
        #[derive(Debug, Clone, Default)]
        pub struct Batch {
            $($(#[$doc])* pub $rows: Vec<$row>,)+
        }

        impl Batch {
            /// Whether there is nothing to commit.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                $(self.$rows.is_empty())&&+
            }

            /// Adds another batch's rows after these.
            pub fn append(&mut self, mut other: Self) {
                $(self.$rows.append(&mut other.$rows);)+
            }
        }
    };
}

batch! {
    /// Threads to create.
    threads: ThreadRow,
    /// Thread changes.
    thread_changes: ThreadChangeRow,
    /// Items to add.
    items: ItemRow,
    /// Items with new content.
    replaced_items: ReplacedItemRow,
    /// Items to delete.
    removed_items: RemovedItemRow,
    /// Item ranges that retries cut.
    cuts: CutRow,
    /// Attachments contained in a message from the same batch.
    contained: ContainedRow,
    /// Runs to create.
    runs: RunRow,
    /// Streams to create.
    streams: StreamRow,
    /// Journal rows.
    steps: StepRow,
    /// Journal rows to copy from other runs.
    copies: CopyRow,
    /// Outbox requests to send.
    outbox: OutboxRow,
    /// Run states.
    updates: RunUpdate,
    /// Questions asked by runs.
    questions: QuestionRow,
    /// Question items that end a turn.
    question_items: QuestionItemRow,
    /// Runs whose end closes their open question items.
    closed_questions: ClosedQuestionsRow,
    /// The output of turns that end with a question.
    turns_sent: TurnSentRow,
    /// Runs to enqueue.
    queued: QueueRow,
    /// Model usage in chats.
    chat_usage: ChatUsageRow,
    /// Runs that release their workflow slot; each with its [`RunUpdate`].
    left: Uuid,
    /// App runs to create, each with its [`RunRow`].
    app_runs: AppRunRow,
    /// Trainings and evaluations to create, each with its [`RunRow`].
    trainings: TrainingRunRow,
    /// Model calls in trainings.
    training_calls: TrainingCallRow,
    /// Case results.
    training_cases: TrainingCaseRow,
    /// Training candidates.
    training_candidates: TrainingCandidateRow,
    /// One-time steps that trainings have completed.
    training_marks: TrainingMarkRow,
    /// Training progress.
    training_states: TrainingStateRow,
    /// Events.
    events: EventsRow,
}

impl Batch {
    /// Approximate text bytes; limits the size of a commit.
    #[must_use]
    pub fn weight(&self) -> usize {
        let items: usize = self.items.iter().map(|row| row.content.len()).sum();
        let replaced: usize =
            self.replaced_items.iter().filter_map(|row| row.content.as_ref()).map(String::len).sum();
        let runs: usize = self.runs.iter().map(|row| row.inputs.len()).sum();
        let steps: usize = self.steps.iter().map(|row| row.result.as_ref().map_or(0, String::len)).sum();
        let outbox: usize = self.outbox.iter().map(|row| row.request.len()).sum();
        let updates: usize = self.updates.iter().map(|row| row.output.as_ref().map_or(0, String::len)).sum();
        let events: usize = self.events.iter().map(|row| row.frames.len()).sum();
        let sent: usize = self.turns_sent.iter().map(|row| row.sent.len()).sum();
        let calls: usize =
            self.training_calls.iter().map(|row| row.reply.as_ref().map_or(0, String::len)).sum();
        let details = |row: &TrainingCaseRow| row.details.as_ref().map_or(0, String::len);
        let cases: usize = self.training_cases.iter().map(|row| row.result.len() + details(row)).sum();
        sent + items + replaced + runs + steps + outbox + updates + events + calls + cases
    }
}
