//! `callboard checkpoint show`.

use clap::Args;
use serde_json::Value;
use wire::CheckpointRecord;

use super::locate::find;
use super::record::{epoch_of, score_of, written_prompts};
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, pretty, say};
use crate::table::second;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct ShowCheckpoint {
    /// Handle or id of the workflow
    workflow: String,
    /// Number or id of the checkpoint
    checkpoint: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ShowCheckpoint {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let checkpoint = find(session, &self.workflow, &self.checkpoint).await?;
        if session.output == Output::Json {
            return say(pretty(&checkpoint)?);
        }
        for (name, value) in lines(&checkpoint) {
            say(format_args!("{name:<10} {}", harmless(&value)))?;
        }
        for (name, text) in written_prompts(&checkpoint.runnable_config) {
            say("")?;
            say(Paint::stdout().bold(format_args!("prompt {}", harmless(name))))?;
            say(harmless(&text))?;
        }
        Ok(())
    }
}

/// The lines as names and values.
fn lines(checkpoint: &CheckpointRecord) -> Vec<(&'static str, String)> {
    let mut lines =
        vec![("checkpoint", checkpoint.config_version.to_string()), ("id", checkpoint.id.clone())];
    lines.extend(epoch_of(checkpoint).map(|epoch| ("epoch", epoch.to_string())));
    lines.extend(score_of(checkpoint).map(|score| ("score", format!("{score:.3}"))));
    lines.push(("best", if checkpoint.is_best { "yes" } else { "no" }.to_owned()));
    let run = checkpoint.metadata.get("run_id").and_then(Value::as_str);
    lines.extend(run.map(|run| ("run", run.to_owned())));
    lines.push(("created", second(&checkpoint.created_at)));
    lines
        .extend(checkpoint.metrics.iter().map(|(evaluator, mean)| ("metric", format!("{evaluator} {mean}"))));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::checkpoint::record::example;

    #[test]
    fn a_checkpoint_has_a_line_for_each_field() {
        let lines: Vec<String> = lines(&example(7, json!({})))
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(
            lines,
            [
                "checkpoint: 7",
                "id: id-7",
                "epoch: 2",
                "score: 0.700",
                "best: yes",
                "run: r1",
                "created: 2026-11-26 09:00:00Z",
                "metric: exact 0.7",
            ]
        );
    }
}
