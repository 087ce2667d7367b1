//! Publishes the search's candidates, epochs, checkpoints and warnings, each once across all lives of a run.

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use store::batch::TrainingCandidateRow;
use store::{NewCheckpoint, StoredCheckpoint};
use training::optimize::{Candidate, Decision, SearchEvent, Stop};
use training::report::line_diff;
use training::{Demo, Summary, TrainablePrompt};
use wire::{CandidateRecord, ChangedPrompt, CheckpointRecord, EpochComplete, TrainingEvent, TrainingResult};

use super::events::TrainingEvents;
use super::lab::ActorLab;
use super::records::checkpoint_record;
use crate::lanes::WriteError;
use crate::text::{json as text_of, timestamp};

impl ActorLab<'_> {
    /// Hands over the additions by `change`, and waits for the commit.
    pub(super) async fn commit(&self, change: impl FnOnce(&mut TrainingEvents)) -> Result<(), Stop> {
        self.session.writer.commit_with(change).await.map_err(|error| self.lose(error))
    }

    fn lose(&self, error: WriteError) -> Stop {
        *self.lost.lock() = Some(error);
        Stop::Lost
    }

    /// The same, unless an earlier life has done it.
    pub(super) async fn once(
        &self,
        mark: String,
        change: impl FnOnce(&mut TrainingEvents),
    ) -> Result<(), Stop> {
        if !self.marks.lock().insert(mark.clone()) {
            return Ok(());
        }
        self.commit(|events| {
            change(events);
            events.mark(mark);
        })
        .await
    }

    /// Warns the author, once per code.
    pub(super) async fn warn(&self, code: &'static str, message: &str) -> Result<(), Stop> {
        let event = TrainingEvent::TrainingWarning { code: code.to_owned(), message: message.to_owned() };
        self.once_reported(format!("warning {code}"), event, |_| {}).await
    }

    /// Publishes an event that the report needs, unless an earlier life has published it.
    async fn once_reported(
        &self,
        mark: String,
        event: TrainingEvent,
        change: impl FnOnce(&mut TrainingEvents),
    ) -> Result<(), Stop> {
        if !self.marks.lock().insert(mark.clone()) {
            return Ok(());
        }
        self.commit(|events| {
            events.reported(mark, event);
            change(events);
        })
        .await
    }

    pub(super) async fn publish_event(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        match event {
            SearchEvent::Candidate { candidate, changed, decision, reason, rationale, comparison } => {
                let record = CandidateRecord {
                    candidate_id: candidate.number,
                    parents: candidate.parents.clone(),
                    epoch: comparison_epoch(self),
                    prompts_changed: self.changed(candidate, changed),
                    rationale: rationale.map(str::to_owned),
                    decision: match decision {
                        Decision::Accepted => "accepted".to_owned(),
                        Decision::Rejected => "rejected".to_owned(),
                    },
                    reason,
                    n: u64::try_from(comparison.n).unwrap_or(u64::MAX),
                    mean_diff: comparison.mean_diff,
                    created_at: timestamp(self.session.ports.clock.now()),
                };
                self.candidate(record, candidate).await
            }
            SearchEvent::Epoch { epoch, best, summary, score } => {
                self.epoch(epoch, best, summary, score).await
            }
            SearchEvent::Checkpoint { epoch, candidate, summary } => {
                self.checkpoint(epoch, candidate, summary).await
            }
            SearchEvent::Warning(warning) => {
                let (code, message) = (warning.code.to_owned(), warning.message.clone());
                // Hashed, because messages may quote prompts of any length.
                let mark = format!("warning {code} {}", hex::encode(digest(&SHA256, message.as_bytes())));
                let event = TrainingEvent::TrainingWarning { code, message };
                self.once_reported(mark, event, |_| {}).await
            }
        }
    }

    async fn candidate(&self, record: CandidateRecord, candidate: &Candidate) -> Result<(), Stop> {
        let row = TrainingCandidateRow {
            run_id: self.session.run,
            number: i32::try_from(candidate.number).unwrap_or(i32::MAX),
            record: text_of(&record),
        };
        let mark = format!("candidate {}", candidate.number);
        let event = TrainingEvent::TrainingCandidate(Box::new(record));
        self.candidates.lock().insert(candidate.number, candidate.clone());
        self.once(mark, |events| {
            events.candidate(row);
            events.event(event);
        })
        .await
    }

    /// A candidate's prompts that differ from those of its first parent.
    fn changed(&self, candidate: &Candidate, changed: &[String]) -> Vec<ChangedPrompt> {
        let candidates = self.candidates.lock();
        let parent = candidate.parents.first().and_then(|parent| candidates.get(parent));
        let seed =
            |name: &str| self.session.prompts.iter().find(|prompt: &&TrainablePrompt| prompt.name == name);
        let before = |name: &String| match parent {
            Some(parent) => Some((parent.prompts.get(name)?.clone(), parent.demos.get(name).cloned())),
            None => seed(name).map(|prompt| (prompt.seed.clone(), Some(prompt.demos.clone()))),
        };
        let change = |name: &String| {
            let text = candidate.prompts.get(name)?.clone();
            let (old_text, old_demos) = before(name).unwrap_or_default();
            let old_demos = old_demos.unwrap_or_default();
            let demos = candidate.demos.get(name).filter(|demos| **demos != old_demos);
            let diff = match demos {
                Some(demos) => line_diff(&written(&old_text, &old_demos), &written(&text, demos)),
                None => line_diff(&old_text, &text),
            };
            let demos = demos.map(|demos| demos.iter().map(|demo| json!(demo)).collect());
            Some(ChangedPrompt { name: name.clone(), text, demos, diff })
        };
        changed.iter().filter_map(change).collect()
    }

    async fn epoch(&self, epoch: u32, best: &Candidate, summary: &Summary, score: f64) -> Result<(), Stop> {
        let session = self.session;
        let usage = session.usage();
        let now = self.now();
        let (best_score, wall_s, state) = {
            let mut progress = self.progress.lock();
            progress.best(score);
            let (left, seconds) = (session.calls.budget_left(), session.settings.max_active);
            let shown = progress.shown(now, &usage, left, seconds);
            let state = progress.state(now, session.ports.writer, shown, usage.clone());
            (progress.best_score().unwrap_or(score), progress.active(now).as_secs_f64(), state)
        };
        let complete = EpochComplete {
            epoch,
            summary: means(summary),
            score,
            best_score,
            pass_rate: summary.pass_rate,
            usage: usage.clone(),
            wall_s: (wall_s * 1_000.0).round() / 1_000.0,
        };
        let so_far = self.so_far(best, summary);
        let event = TrainingEvent::TrainingEpochComplete(complete);
        self.once_reported(format!("epoch {epoch}"), event, |events| events.state(text_of(&state))).await?;
        session.writer.with(|events| events.so_far(so_far));
        Ok(())
    }

    /// The result if the run were cut off now.
    fn so_far(&self, best: &Candidate, summary: &Summary) -> TrainingResult {
        TrainingResult {
            summary: means(summary),
            checkpoints: Vec::new(),
            best_checkpoint: None,
            prompts: prompts_of(best),
            demos: demos_of(best),
            stop_reason: "cancelled".to_owned(),
            outcome: "no_significant_gain".to_owned(),
            seed_vs_best: None,
            usage: self.session.usage(),
        }
    }

    async fn checkpoint(&self, epoch: u32, candidate: &Candidate, summary: &Summary) -> Result<(), Stop> {
        let session = self.session;
        let mark = format!("checkpoint {} {epoch}", candidate.number);
        if self.marks.lock().contains(&mark) {
            return Ok(());
        }
        let Ok(id) = session.ports.ids.uuid() else { return Err(Stop::Lost) };
        let split = if session.split_of.contains(&"val") { "val" } else { "train" };
        // A score from fewer cases is not comparable, and never the best.
        let scoring = session.decided.splits.as_ref().map_or(0, |splits| splits.val.len());
        let is_partial = summary.n_cases < scoring;
        let metadata = json!({
            "epoch": epoch,
            "summary": means(summary),
            "score": summary.score,
            "pass_rate": summary.pass_rate,
            "run_id": session.run.to_string(),
            "candidate_id": candidate.number,
            "split": split,
            "n_cases": summary.n_cases,
            "dataset_fingerprint": hex::encode(&session.training.fingerprint),
            "version_id": session.version.id.to_string(),
        });
        let new = NewCheckpoint {
            id,
            workspace_id: session.workspace,
            workflow_id: session.workflow,
            run_id: session.run,
            candidate: i32::try_from(candidate.number).unwrap_or(i32::MAX),
            epoch: i32::try_from(epoch).unwrap_or(i32::MAX),
            runnable_config: text_of(&kept(session.config_of(candidate))),
            metrics: text_of(&means(summary)),
            metadata: metadata.to_string(),
            score: summary.score,
            fingerprint: session.training.fingerprint.clone(),
            judges: if is_partial { Vec::new() } else { session.training.judges.clone() },
        };
        let (store, writer) = (&session.ports.store, session.ports.writer);
        // The run's earlier writes are committed before its checkpoint.
        let write = || store.write_checkpoint(writer, &new);
        let written: Option<StoredCheckpoint> = session.writer.ask("writing a checkpoint", write).await;
        let Some(written) = written else { return Err(self.lose(WriteError::Fenced)) };
        let record: CheckpointRecord = checkpoint_record(written);
        self.progress.lock().best(summary.score);
        let event = TrainingEvent::TrainingCheckpoint(Box::new(record));
        self.once(mark, |events| events.event(event)).await
    }
}

/// The current epoch.
fn comparison_epoch(lab: &ActorLab<'_>) -> u32 {
    lab.epoch.load(std::sync::atomic::Ordering::Relaxed)
}

/// The evaluators' means.
pub(super) fn means(summary: &Summary) -> Map<String, Value> {
    summary.summary.iter().map(|(id, mean)| (id.clone(), json!(mean))).collect()
}

/// The texts of a candidate's prompts.
pub(super) fn prompts_of(candidate: &Candidate) -> Map<String, Value> {
    candidate.prompts.iter().map(|(name, text)| (name.clone(), json!(text))).collect()
}

/// The demos of a candidate's prompts, including empty ones.
pub(super) fn demos_of(candidate: &Candidate) -> Map<String, Value> {
    candidate.demos.iter().map(|(name, demos)| (name.clone(), json!(demos))).collect()
}

/// A prompt in diff format: its text, and a line for each demo.
fn written(text: &str, demos: &[Demo]) -> String {
    let lines = demos.iter().map(|demo| json!(demo).to_string());
    std::iter::once(text.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// A config without members that belong to a single run.
fn kept(mut config: Map<String, Value>) -> Map<String, Value> {
    let configurable = config.get_mut("configurable").and_then(Value::as_object_mut);
    if let Some(configurable) = configurable {
        configurable.shift_remove("thread_id");
        if configurable.is_empty() {
            config.shift_remove("configurable");
        }
    }
    config
}
