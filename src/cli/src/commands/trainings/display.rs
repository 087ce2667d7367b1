//! Displays training and evaluation events: on standard error for people, as JSON lines on standard output for
//! programs.

use std::fmt::Display;
use std::time::Duration;

use kernel::{Clock, SystemClock};
use serde_json::Value;
use wire::{
    CheckpointRecord, EpochComplete, TrainingEvent, TrainingFrame, TrainingProgress, TrainingStarted,
};

use super::TrainingRef;
use super::findings::TrainingFindings;
use super::numbers::{ProgressSteps, dollars, percent, progress_line, progress_note};
use crate::commands::checkpoint::{epoch_of, score_of};
use crate::output::{CommandError, Output, compact, complain, say};
use crate::terminal::{Paint, Underway, harmless};

/// Minimum time between redraws of the progress line: thousands of cases may end per second.
const REDRAW_PAUSE: Duration = Duration::from_millis(50);

/// Displays events and collects their findings.
pub(super) struct TrainingDisplay {
    output: Output,
    at: TrainingRef,
    paint: Paint,
    underway: Underway,
    steps: ProgressSteps,
    clock: SystemClock,
    /// Time of the last redraw.
    drawn: Option<Duration>,
    findings: TrainingFindings,
}

impl TrainingDisplay {
    pub(super) fn new(output: Output, at: &TrainingRef) -> Self {
        Self {
            output,
            at: at.clone(),
            paint: Paint::stderr(),
            underway: Underway::new(),
            steps: ProgressSteps::default(),
            clock: SystemClock::new(),
            drawn: None,
            findings: TrainingFindings::default(),
        }
    }

    /// Displays an event.
    pub(super) fn take(&mut self, frame: &TrainingFrame) -> Result<(), CommandError> {
        self.findings.take(&frame.happened);
        match self.output {
            Output::Json => say(compact(frame)?),
            Output::Human => {
                self.show(&frame.happened);
                Ok(())
            }
        }
    }

    /// Removes the progress line; returns the findings.
    pub(super) fn finish(self) -> TrainingFindings {
        let Self { mut underway, findings, .. } = self;
        underway.clear();
        findings
    }

    /// Prints the CLI's own message, for people only.
    pub(super) fn note(&mut self, text: &str) {
        if self.output == Output::Human {
            self.line(self.paint.dim(harmless(text)));
        }
    }

    /// Prints the CLI's own message, for programs too.
    pub(super) fn tell(&mut self, text: &str) {
        self.line(harmless(text));
    }

    fn show(&mut self, event: &TrainingEvent) {
        match event {
            TrainingEvent::TrainingStarted(started) => self.note(&started_line(started)),
            TrainingEvent::TrainingProgress(case) | TrainingEvent::EvaluationProgress(case) => {
                self.show_progress(&case.progress);
            }
            TrainingEvent::TrainingEpochComplete(epoch) => self.tell(&epoch_line(epoch)),
            TrainingEvent::TrainingCheckpoint(checkpoint) => self.tell(&checkpoint_line(checkpoint)),
            TrainingEvent::TrainingPaused { reason } => {
                let line = paused_line(reason, &self.at);
                self.note(&line);
            }
            TrainingEvent::TrainingResumed { reason } => self.note(&format!("Resumed ({reason}).")),
            TrainingEvent::TrainingWarning { code, message } => {
                let mark = self.paint.warning("warning:");
                let (code, message) =
                    (self.paint.dim(format_args!("({})", harmless(code))), harmless(message));
                self.line(format_args!("{mark} {message} {code}"));
            }
            TrainingEvent::RunStarted { .. }
            | TrainingEvent::TrainingCandidate(_)
            | TrainingEvent::TrainingResult(_)
            | TrainingEvent::EvaluationResult(_)
            | TrainingEvent::RunCompleted { .. }
            | TrainingEvent::RunFailed { .. }
            | TrainingEvent::RunCancelled { .. } => {}
        }
    }

    fn show_progress(&mut self, progress: &TrainingProgress) {
        if !self.underway.is_seen() {
            if self.steps.reaches_next(progress) {
                complain(progress_note(progress));
            }
            return;
        }
        let now = self.clock.monotonic();
        if self.drawn.is_none_or(|drawn| now.saturating_sub(drawn) >= REDRAW_PAUSE) {
            self.drawn = Some(now);
            self.underway.show(&progress_line(progress));
        }
    }

    fn line(&mut self, line: impl Display) {
        self.underway.clear();
        // Draw the next progress immediately, because the line has just been removed.
        self.drawn = None;
        complain(line);
    }
}

fn started_line(started: &TrainingStarted) -> String {
    let optimizer = started.optimizer.get("name").and_then(Value::as_str).unwrap_or("an optimizer");
    let splits = &started.splits;
    format!(
        "Training {} with {optimizer}; cases: {} train, {} val, {} test.",
        started.trainable_prompts.join(", "),
        splits.train.len(),
        splits.val.len(),
        splits.test.len()
    )
}

fn epoch_line(epoch: &EpochComplete) -> String {
    format!(
        "Epoch {}: score {:.3}, best {:.3}, {} passed, {} calls, {}",
        epoch.epoch,
        epoch.score,
        epoch.best_score,
        percent(epoch.pass_rate),
        epoch.usage.llm_calls,
        dollars(epoch.usage.cost_usd)
    )
}

fn checkpoint_line(checkpoint: &CheckpointRecord) -> String {
    let mut line = format!("Checkpoint {}", checkpoint.config_version);
    let epoch = epoch_of(checkpoint).map(|epoch| format!("epoch {epoch}"));
    let score = score_of(checkpoint).map(|score| format!("score {score:.3}"));
    let best = checkpoint.is_best.then(|| "new best".to_owned());
    let parts: Vec<String> = epoch.into_iter().chain(score).chain(best).collect();
    if !parts.is_empty() {
        line.push_str(": ");
        line.push_str(&parts.join(", "));
    }
    line
}

fn paused_line(reason: &str, at: &TrainingRef) -> String {
    let attach = at.attach_command();
    match reason {
        "shutdown" => "Paused: the service is shutting down; it resumes automatically.".to_owned(),
        "rate_limited" => format!("Paused: the model endpoint limits the rate. To resume: {attach}"),
        "client" => format!("Paused. To resume: {attach}"),
        other => format!("Paused ({other}). To resume: {attach}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::trainings::findings::tests::checkpoint;

    fn event(event: Value) -> TrainingEvent {
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_checkpoint_is_a_line() {
        let TrainingEvent::TrainingCheckpoint(mut record) = event(checkpoint(7, "New.")) else { panic!() };
        assert_eq!(checkpoint_line(&record), "Checkpoint 7: epoch 2, score 0.700, new best");
        record.metadata.clear();
        record.is_best = false;
        assert_eq!(checkpoint_line(&record), "Checkpoint 7");
    }

    #[test]
    fn the_start_and_an_epoch_are_lines() {
        let started = event(json!({"type": "training_started", "payload": {
            "optimizer": {"name": "gepa"}, "dataset_fingerprint": "f", "trainable_prompts": ["answer", "tone"],
            "splits": {"train": [0, 1], "val": [2], "test": [], "test_estimate": null},
            "pins": [], "version": 3, "estimate": {}
        }}));
        let TrainingEvent::TrainingStarted(started) = started else { panic!() };
        assert_eq!(started_line(&started), "Training answer, tone with gepa; cases: 2 train, 1 val, 0 test.");
        let epoch = EpochComplete {
            epoch: 2,
            summary: serde_json::Map::new(),
            score: 0.65,
            best_score: 0.7,
            pass_rate: 0.62,
            usage: wire::CallUsage { llm_calls: 40, cost_usd: 0.1, ..wire::CallUsage::default() },
            wall_s: 1.0,
        };
        assert_eq!(epoch_line(&epoch), "Epoch 2: score 0.650, best 0.700, 62 % passed, 40 calls, $0.10");
    }

    #[test]
    fn a_pause_line_shows_how_to_resume_unless_the_service_resumes_it() {
        let at = TrainingRef { workflow: "support".into(), run: "r1".into() };
        assert_eq!(paused_line("client", &at), "Paused. To resume: callboard train support --attach r1");
        assert!(!paused_line("shutdown", &at).contains("--attach"));
        assert!(paused_line("other", &at).starts_with("Paused (other)."));
    }
}
