//! `callboard workflow diff`.

use clap::Args;
use serde_json::Value;
use wire::Change;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, compact, complain, pretty, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Handle or id of the workflow.
    workflow: String,
    /// The version to start from.
    base: i32,
    /// The version to compare with it.
    target: i32,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Diff {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let diff = session.received(session.client.diff(&self.workflow, self.base, self.target).await)?;
        if session.output == Output::Json {
            return say(pretty(&diff)?);
        }
        if diff.changes.is_empty() {
            complain(format_args!("Versions {} and {} are the same.", self.base, self.target));
        }
        diff.changes.iter().try_for_each(show)
    }
}

fn show(change: &Change) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    let place = match (&change.node, &change.field) {
        (Some(node), Some(field)) => format!("{node}.{field}"),
        (Some(node), None) => format!("node {node}"),
        (None, Some(field)) => field.clone(),
        (None, None) => "graph".to_owned(),
    };
    say(paint.bold(harmless(&place)))?;
    if !change.before.is_null() {
        say(paint.bad(format_args!("  - {}", shown(&change.before)?)))?;
    }
    if !change.after.is_null() {
        say(paint.good(format_args!("  + {}", shown(&change.after)?)))?;
    }
    Ok(())
}

fn shown(value: &Value) -> Result<String, CommandError> {
    compact(value).map(|text| harmless(&text).into_owned())
}
