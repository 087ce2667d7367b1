//! What a lane commits: rows of many streams in one statement.
//!
//! One commit is one prepared statement with a CTE for each table that has rows, its values as arrays. It is its
//! own transaction, so there is neither BEGIN nor COMMIT to wait for. Each row is written once however often it
//! is sent: a resend after a broken connection is harmless.

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

/// Declares the rows of a batch.
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
    /// Changes of threads.
    thread_changes: ThreadChangeRow,
    /// Items to add.
    items: ItemRow,
    /// Items that now contain something else.
    replaced_items: ReplacedItemRow,
    /// Items to delete.
    removed_items: RemovedItemRow,
    /// Items to take out.
    cuts: CutRow,
    /// Attachments that a message of the same batch contains.
    contained: ContainedRow,
    /// Runs to create.
    runs: RunRow,
    /// Streams to create.
    streams: StreamRow,
    /// Journal rows.
    steps: StepRow,
    /// Journal rows of other runs to copy.
    copies: CopyRow,
    /// Requests to send.
    outbox: OutboxRow,
    /// States of runs.
    updates: RunUpdate,
    /// Questions of runs.
    questions: QuestionRow,
    /// Items of questions with which turns end.
    question_items: QuestionItemRow,
    /// Runs whose open questions of items end with them.
    closed_questions: ClosedQuestionsRow,
    /// What turns that end with a question have sent.
    turns_sent: TurnSentRow,
    /// Runs that go into the queue.
    queued: QueueRow,
    /// What models have used.
    chat_usage: ChatUsageRow,
    /// Runs that give back their place among the runs of their workflow; each with its [`RunUpdate`].
    left: Uuid,
    /// Runs of apps to create, each with its [`RunRow`].
    app_runs: AppRunRow,
    /// Trainings and evaluations to create, each with its [`RunRow`].
    trainings: TrainingRunRow,
    /// Calls of models of trainings.
    training_calls: TrainingCallRow,
    /// Results of cases.
    training_cases: TrainingCaseRow,
    /// Candidates of trainings.
    training_candidates: TrainingCandidateRow,
    /// What trainings have done once.
    training_marks: TrainingMarkRow,
    /// How far trainings have got.
    training_states: TrainingStateRow,
    /// Events.
    events: EventsRow,
}

impl Batch {
    /// Rough size of the texts, bytes: keeps a commit from growing without bound.
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
