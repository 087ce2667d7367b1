//! Prints a run's progress to standard error.

use std::io::Write;

use chrono::DateTime;
use wire::{RunEvent, RunFrame, RunRecord};

use crate::commands::answer;
use crate::output::complain;
use crate::terminal::{Paint, Underway, harmless, notice};

/// Minimum width of a step's name.
const NAME: usize = 20;

/// The printed part of a run.
pub(super) struct Watcher {
    quiet: bool,
    paint: Paint,
    underway: Underway,
    /// Running steps: name, visit, start time.
    running: Vec<(String, u32, String)>,
    /// The node whose text is on the incomplete line.
    open: Option<String>,
}

impl Watcher {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, paint: Paint::stderr(), underway: Underway::new(), running: Vec::new(), open: None }
    }

    pub(super) fn take(&mut self, frame: &RunFrame) {
        if self.quiet {
            return;
        }
        self.underway.clear();
        match &frame.event {
            RunEvent::RunStarted { resumed: true, .. } => {
                self.running.clear();
                self.note("The run resumes.");
            }
            RunEvent::RunStarted { .. } => {}
            RunEvent::StepStarted { node, visit, .. } => {
                self.running.push((node.clone(), *visit, frame.at.clone()));
            }
            RunEvent::StepCompleted { node, visit, .. } => {
                let took = self.ended(node, *visit, &frame.at);
                self.line(format_args!(
                    "{} {:NAME$} {}",
                    self.paint.good("✓"),
                    name(node, *visit),
                    self.paint.dim(took)
                ));
            }
            RunEvent::StepFailed { node, visit, attempt, error } => {
                let took = self.ended(node, *visit, &frame.at);
                let tried = if *attempt > 1 { format!("attempt {attempt}: ") } else { String::new() };
                let wrong = format!("{tried}{} ({})", error.message, error.code);
                let (mark, took) = (self.paint.bad("✗"), self.paint.dim(took));
                self.line(format_args!("{mark} {:NAME$} {took} {}", name(node, *visit), harmless(&wrong)));
            }
            RunEvent::RunWaiting(question) => {
                self.line(format_args!("Waiting for an answer: {}", answer::line(question)));
                let run = &frame.run_id;
                self.note(&format!("Answer with: callboard answer {run} '<JSON>' --key {}", question.key));
            }
            RunEvent::OutputDelta { node, text } => self.text(node, text),
            RunEvent::Progress { text } => self.note(&format!("… {text}")),
            RunEvent::Notice { level, message, title } => {
                self.line(notice(*level, title.as_deref(), message));
            }
            RunEvent::RunCompleted { .. } | RunEvent::RunFailed { .. } | RunEvent::RunCancelled { .. } => {
                self.running.clear();
                self.finish();
            }
        }
        if self.open.is_none() {
            let names: Vec<_> = self.running.iter().map(|(node, visit, _)| name(node, *visit)).collect();
            let names = names.join(", ");
            self.underway.show(&if names.is_empty() { names } else { format!("… {names}") });
        }
    }

    /// Prints the CLI's own message.
    pub(super) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.line(self.paint.dim(harmless(text)));
        }
    }

    /// Ends an incomplete line.
    pub(super) fn finish(&mut self) {
        self.underway.clear();
        if self.open.take().is_some() {
            complain("");
        }
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        self.finish();
        complain(line);
    }

    /// Prints a node's text as it arrives; concurrent texts of several nodes are separated by lines.
    fn text(&mut self, node: &str, text: &str) {
        let mut said = String::new();
        if self.open.as_deref() != Some(node) {
            self.finish();
            said = self.paint.dim(format_args!("  {}: ", harmless(node)));
            self.open = Some(node.to_owned());
        }
        said.push_str(&harmless(text).replace('\n', "\n    "));
        let mut output = std::io::stderr().lock();
        let _ = output.write_all(said.as_bytes()).and_then(|()| output.flush());
    }

    /// The duration of a step.
    fn ended(&mut self, node: &str, visit: u32, at: &str) -> String {
        let Some(index) = self.running.iter().position(|(name, other, _)| name == node && *other == visit)
        else {
            return String::new();
        };
        let (_, _, began) = self.running.remove(index);
        seconds(&began, at)
    }
}

fn name(node: &str, visit: u32) -> String {
    let node = harmless(node);
    if visit > 1 { format!("{node} (visit {visit})") } else { node.into_owned() }
}

/// The duration between two times.
pub(crate) fn seconds(from: &str, to: &str) -> String {
    let parse = |text| DateTime::parse_from_rfc3339(text).ok();
    match (parse(from), parse(to)) {
        (Some(from), Some(to)) => {
            let millis = (to - from).num_milliseconds().max(0);
            format!("{}.{:02} s", millis / 1000, millis % 1000 / 10)
        }
        _ => String::new(),
    }
}

/// ` in 1.25 s`, if the record has both times.
pub(super) fn took(run: &RunRecord) -> String {
    match (&run.started_at, &run.finished_at) {
        (Some(from), Some(to)) => format!(" in {}", seconds(from, to)),
        _ => String::new(),
    }
}
