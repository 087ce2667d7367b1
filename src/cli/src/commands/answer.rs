//! `callboard answer`: answers a run that waits for a person.

use clap::Args;
use serde_json::Value;
use wire::{RunRecord, RunState, WaitsFor};

use crate::complaint::Complaint;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, pretty, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
#[command(after_help = "Without an answer, prints what the run waits for.")]
pub(crate) struct AnswerRun {
    /// Id of the run.
    run: String,
    /// The answer as JSON; text that is not JSON is sent as a string.
    answer: Option<String>,
    /// Key of the question; required only if there are several.
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    pub(crate) options: ClientOptions,
}

impl AnswerRun {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let run =
            session.client.run(&self.run).await.map_err(|error| session.complaint(error).about(&self.run))?;
        let Some(answer) = &self.answer else { return show(session, &run) };
        let question = self.question(&run)?;
        let value = kernel::json::read(answer, kernel::json::Numbers::Values)
            .unwrap_or_else(|_| Value::String(answer.clone()));
        let told = session.client.answer_run(&run.id, &question.key, &value).await;
        let record = told.map_err(|error| session.complaint(error).about(&question.key))?;
        let base = session.base();
        let text = format!("Answered; the run continues: {base}/api/runs/{}", run.id);
        session.output.print(&record, || say(text))
    }

    /// Finds the question to answer.
    fn question<'a>(&self, run: &'a RunRecord) -> Result<&'a WaitsFor, CommandError> {
        let named = |question: &&WaitsFor| self.key.as_ref().is_none_or(|key| *key == question.key);
        let mut found = run.waits_for.iter().filter(named);
        match (found.next(), found.next(), &self.key) {
            (Some(question), None, _) | (Some(question), Some(_), Some(_)) => Ok(question),
            (Some(_), Some(_), None) => {
                let keys: Vec<&str> = run.waits_for.iter().map(|question| question.key.as_str()).collect();
                let told =
                    format!("the run waits for several answers; choose one with --key: {}", keys.join(", "));
                Err(CommandError::usage(harmless(&told).to_string()))
            }
            (None, ..) => {
                let told = match &self.key {
                    Some(key) => format!("the run does not wait for '{key}'"),
                    None => format!("the run does not wait for an answer: it is {}", run.status.as_str()),
                };
                Err(Complaint::failed(harmless(&told).to_string()).coded("run.not_waiting").into())
            }
        }
    }
}

fn show(session: &ServiceSession, run: &RunRecord) -> Result<(), CommandError> {
    if session.output == Output::Json {
        return say(pretty(&run.waits_for)?);
    }
    if run.waits_for.is_empty() {
        let more = if run.status == RunState::Waiting { ", for a time" } else { "" };
        return say(format_args!(
            "The run does not wait for an answer; it is {}{more}.",
            run.status.as_str()
        ));
    }
    for question in &run.waits_for {
        say(line(question))?;
    }
    Ok(())
}

/// Formats a question in one line.
pub(crate) fn line(question: &WaitsFor) -> String {
    let mut line = Paint::stdout().bold(harmless(&question.key)).clone();
    if let Some(message) = &question.message {
        line.push_str(&format!(": {}", harmless(message)));
    }
    if !question.audience.is_empty() {
        line.push_str(&format!(" (audience: {})", harmless(&question.audience.join(", "))));
    }
    if let Some(schema) = &question.schema {
        line.push_str(&format!(" {}", harmless(&schema.to_string())));
    }
    line
}
