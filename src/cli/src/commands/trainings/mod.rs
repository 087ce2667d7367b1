//! `callboard train`, `callboard evaluate` and `callboard report`.

mod conclude;
mod dataset;
mod display;
mod evaluate;
mod evaluators;
mod findings;
mod numbers;
mod plan;
mod report;
mod request;
mod results;
mod setup;
mod start;
mod train;
mod watch;

pub(crate) use dataset::DatasetFile;
pub(crate) use evaluate::Evaluate;
pub(crate) use report::Report;
pub(crate) use train::Train;

/// A training or an evaluation, with the user's name for its workflow.
#[derive(Debug, Clone)]
struct TrainingRef {
    workflow: String,
    run: String,
}

impl TrainingRef {
    /// The command that attaches to it again, and resumes it if it is paused.
    fn attach_command(&self) -> String {
        format!("callboard train {} --attach {}", self.workflow, self.run)
    }
}
