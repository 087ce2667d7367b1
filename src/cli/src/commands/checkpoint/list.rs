//! `callboard checkpoint list`.

use clap::Args;
use wire::CheckpointRecord;

use super::record::{epoch_of, score_of};
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::table::{self, second};

#[derive(Debug, Args)]
pub(crate) struct ListCheckpoints {
    /// Handle or id of the workflow
    workflow: String,
    /// Maximum number of checkpoints to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Only checkpoints that were the best when they were written
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ListCheckpoints {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let listed = session.client.checkpoints(&self.workflow, Some(self.limit), self.best).await;
        let listed = listed.map_err(|error| session.complaint(error).about(&self.workflow))?;
        table::print_list(
            session.output,
            listed,
            format_args!("No checkpoints found. `callboard train {}` writes them.", self.workflow),
            ["VERSION", "EPOCH", "SCORE", "BEST", "CREATED", "ID"],
            row,
        )
    }
}

fn row(checkpoint: CheckpointRecord) -> [String; 6] {
    let dash = || "-".to_owned();
    [
        checkpoint.config_version.to_string(),
        epoch_of(&checkpoint).map_or_else(dash, |epoch| epoch.to_string()),
        score_of(&checkpoint).map_or_else(dash, |score| format!("{score:.3}")),
        if checkpoint.is_best { "yes".to_owned() } else { dash() },
        second(&checkpoint.created_at),
        checkpoint.id,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::checkpoint::record::example;

    #[test]
    fn a_row_has_dashes_for_absent_values() {
        assert_eq!(row(example(7, json!({}))), ["7", "2", "0.700", "yes", "2026-11-26 09:00:00Z", "id-7"]);
        let mut bare = example(8, json!({}));
        bare.metadata.clear();
        bare.is_best = false;
        assert_eq!(row(bare), ["8", "-", "-", "-", "2026-11-26 09:00:00Z", "id-8"]);
    }
}
