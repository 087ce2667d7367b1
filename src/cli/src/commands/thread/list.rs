//! `callboard thread list`.

use clap::Args;
use client::{Part, ThreadsFilter};
use wire::ThreadRecord;
use wire::chat::ThreadStatus;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  callboard thread list support --status locked\n  \
                        callboard thread list support --visitor user:ada@example.org --output json")]
pub(crate) struct ListThreads {
    /// Handle or id of the workflow.
    workflow: String,
    /// Only threads of this visitor, as the list names it.
    #[arg(long)]
    visitor: Option<String>,
    /// Only threads with this status.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ThreadStatus::NAMES))]
    status: Option<String>,
    /// Maximum number of threads to print.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ListThreads {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let threads = self.threads(session).await?;
        table::print_list(
            session.output,
            threads,
            "No threads found.",
            ["ID", "LAST ITEM", "ITEMS", "STATUS", "VISITOR", "TITLE"],
            row,
        )
    }

    async fn threads(&self, session: &ServiceSession) -> Result<Vec<ThreadRecord>, CommandError> {
        let filter = ThreadsFilter { visitor: self.visitor.clone(), status: self.status.clone() };
        let read = async |part: &Part| {
            let listed = session.client.threads_of_workflow(&self.workflow, &filter, part).await;
            listed.map_err(|error| session.complaint(error).about(&self.workflow).into())
        };
        parts::at_most(self.limit, read).await
    }
}

fn row(thread: ThreadRecord) -> [String; 6] {
    [
        thread.id,
        thread.last_item_at.map_or_else(|| "-".to_owned(), |at| second(&at)),
        thread.items.to_string(),
        thread.status.as_str().to_owned(),
        thread.visitor.unwrap_or_else(|| "-".to_owned()),
        thread.title.unwrap_or_default(),
    ]
}
