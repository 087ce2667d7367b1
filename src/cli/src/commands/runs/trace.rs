//! `callboard runs trace`.

use chrono::DateTime;
use clap::Args;
use wire::TraceStep;

use super::show;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, pretty, say};
use crate::table::{self, second};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// Id of the run.
    run: String,
    /// Show the input and the result of each attempt of this node.
    #[arg(long)]
    node: Option<String>,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Trace {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let found = session.client.trace(&self.run).await;
        let trace = found.map_err(|error| session.complaint(error).about(&self.run))?;
        if session.output == Output::Json {
            return say(pretty(&trace)?);
        }
        if let Some(node) = &self.node {
            return values(&trace, node);
        }
        show::show(&trace.run)?;
        say("")?;
        let ended = trace.run.finished_at.is_some();
        let head = ["STEP", "NODE", "VISIT", "TRY", "STATUS", "STARTED", "TOOK", "ERROR"];
        table::print(head, trace.steps.into_iter().map(|step| row(step, ended)).collect())?;
        for cut in &trace.interrupted {
            let (node, at) = (harmless(&cut.node), second(&cut.started_at));
            let (attempt, noticed) = (cut.attempt, second(&cut.noticed_at));
            say(format_args!(
                "A restart of the service interrupted {node} (attempt {attempt}, started {at}); the run resumed {noticed}."
            ))?;
        }
        Ok(())
    }
}

/// Prints a node's inputs and outputs.
fn values(trace: &wire::Trace, node: &str) -> Result<(), CommandError> {
    let steps: Vec<&TraceStep> = trace.steps.iter().filter(|step| step.node == node).collect();
    if steps.is_empty() {
        let near = wire::nearest(node, trace.steps.iter().map(|step| step.node.as_str()));
        let near = near.map(|near| format!("; did you mean '{}'?", harmless(near))).unwrap_or_default();
        return Err(format!("The run has no step of a node '{node}'{near}").into());
    }
    for step in steps {
        say(format_args!("visit {}, attempt {}: {}", step.visit, step.attempt, step.status))?;
        say(format_args!("input: {}", harmless(&pretty(&step.input)?)))?;
        match &step.error {
            Some(error) => say(format_args!("error: {} ({})", harmless(&error.message), error.code))?,
            None => say(format_args!("result: {}", harmless(&pretty(&step.result)?)))?,
        }
    }
    Ok(())
}

fn row(step: TraceStep, run_ended: bool) -> [String; 8] {
    let took = step.finished_at.as_deref().and_then(|end| took(&step.started_at, end));
    // An attempt without an end was interrupted: by a crash, or by the end of its run.
    let status = if step.status == "started" && run_ended { "interrupted".to_owned() } else { step.status };
    [
        step.step.to_string(),
        step.node,
        step.visit.to_string(),
        step.attempt.to_string(),
        status,
        second(&step.started_at),
        took.unwrap_or_else(|| "-".to_owned()),
        step.error.map(|error| format!("{} ({})", error.message, error.code)).unwrap_or_default(),
    ]
}

fn took(from: &str, to: &str) -> Option<String> {
    let time = |text| DateTime::parse_from_rfc3339(text).ok();
    let millis = (time(to)? - time(from)?).num_milliseconds();
    Some(if millis < 10_000 { format!("{millis} ms") } else { format!("{} s", millis / 1_000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_short() {
        let from = "2026-11-23T09:00:00.000000Z";
        assert_eq!(took(from, "2026-11-23T09:00:01.250000Z").unwrap(), "1250 ms");
        assert_eq!(took(from, "2026-11-23T09:01:00.000000Z").unwrap(), "60 s");
        assert_eq!(took(from, "?"), None);
    }
}
