//! Drives one run to its end.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::{Activity, Life, Patch, RunError, RunInfo, RunInput};
use serde_json::{Map, Value};
use store::batch::QueueRow;
use store::{RunStatus, StoreError, StoredRun};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::{ErrorCode, RunEvent, RunProblem};

use super::events::RunEvents;
use super::start::RunOptions;
use crate::lanes::{Key, WriteError};
use crate::plans::LoadedVersion;
use crate::run::waiting::only_waits;
use crate::run::{self, Driven, End, Ran, RunPorts, RunWriter, life};

/// A run that was accepted.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) id: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    /// The version it runs; `None` when it cannot be read any more, and the run can only be ended.
    pub(crate) version: Option<Arc<LoadedVersion>>,
    pub(crate) inputs: Arc<Value>,
    pub(crate) options: Arc<RunOptions>,
    pub(crate) trigger: String,
    /// Whether it holds a place among the runs of its workflow.
    pub(crate) placed: bool,
    /// How often it has gone into the queue.
    pub(crate) parked: i32,
    pub(crate) progress: Progress,
}

impl Run {
    /// A run of before, without a place.
    pub(crate) fn stored(run: &StoredRun, version: Option<Arc<LoadedVersion>>, inputs: Value) -> Self {
        let options: Option<RunOptions> =
            run.options.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self {
            id: run.id,
            workspace: run.workspace_id,
            workflow: run.workflow_id,
            version,
            inputs: Arc::new(inputs),
            options: Arc::new(options.unwrap_or_default()),
            trigger: run.trigger.clone(),
            placed: false,
            parked: run.parked,
            progress: Progress::Recovered {
                started_at: run.started_at,
                cut_off: run.started_at.is_some() && run.status == RunStatus::Running,
            },
        }
    }
}

/// What is stored of a run when it is handed to its actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Only its start.
    New,
    /// An earlier life may have got further; the database knows.
    Recovered {
        /// When it first began, if that is known.
        started_at: Option<DateTime<Utc>>,
        /// Whether that life was cut off, and did not put the run into the queue.
        cut_off: bool,
    },
}

/// Runs it to its end, or until it only waits, or until `stop` is cancelled.
pub(super) async fn drive(run: Run, ports: RunPorts, stop: CancellationToken) -> Driven {
    let Some(version) = run.version.clone() else {
        return fail(run, ports, ErrorCode::Internal).await;
    };
    let _topic = ports.topics.produce(run.id);
    let (next_seq, recorded) = match earlier(&run, &ports).await {
        Ok(earlier) => earlier,
        Err(error) => return Driven::Unreadable(error.to_string()),
    };
    let writer = writer(&run, &ports, next_seq);
    writer.started();
    writer.with(|events| {
        events.event(RunEvent::RunStarted {
            workflow_id: run.workflow.to_string(),
            version: version.number,
            resumed: matches!(run.progress, Progress::Recovered { started_at: Some(_), .. }),
        });
    });
    let input = run_input(&run, &version, &ports);
    let (activity, deadline) = (Activity::default(), input.deadline);
    let came = tokio::select! {
        biased;
        () = stop.cancelled() => Outcome::Finished(stopped()),
        ran = run::execute(&version, run.workspace, input, recorded, &ports, &writer, &activity) => match ran {
            Ran::Succeeded(output) => Outcome::Finished(succeeded(output)),
            Ran::Failed(error) => Outcome::Finished(failed(&error)),
            Ran::Lost(error) => return Driven::Lost(error),
        },
        due = only_waits(&activity, deadline, &*ports.clock) => Outcome::Parked(due),
    };
    let (written, left) = match came {
        Outcome::Finished((end, event)) => {
            writer.with(|events| events.event(event));
            (writer.end(end, run.placed).await, Driven::Ended)
        }
        Outcome::Parked(due_at) => {
            let row = QueueRow { run_id: run.id, workflow_id: run.workflow, turn: false, due_at };
            let parked = writer.park(row, run.parked.saturating_add(1), run.placed).await;
            ports.topics.abandon(run.id);
            ports.wakeups.parked(run.id, due_at);
            (parked, Driven::Parked)
        }
    };
    if run.placed {
        ports.wakeups.queue();
    }
    match written {
        Ok(()) => left,
        Err(WriteError::Poisoned(_)) => {
            // Nothing of this key is taken any more; what was committed before stands.
            ports.db.forgive(run.id);
            fail(run, ports, ErrorCode::Internal).await
        }
        Err(error) => Driven::Lost(error),
    }
}

/// What a life of a run came to.
enum Outcome {
    Finished((End, RunEvent)),
    /// It only waits, until then at the latest.
    Parked(Option<DateTime<Utc>>),
}

/// Ends a run that cannot be driven: its readers get a terminal event behind what is stored.
pub(crate) async fn fail(run: Run, ports: RunPorts, code: ErrorCode) -> Driven {
    let _topic = ports.topics.produce(run.id);
    let next_seq = match ports.store.last_seq(run.id).await {
        Ok(last) => last + 1,
        Err(error) => return Driven::Unreadable(error.to_string()),
    };
    let writer = writer(&run, &ports, next_seq);
    let (end, event) = failed(&run::whole(code));
    writer.with(|events| events.event(event));
    match writer.end(end, run.placed).await {
        Ok(()) => Driven::Ended,
        Err(error) => Driven::Lost(error),
    }
}

fn writer(run: &Run, ports: &RunPorts, next_seq: u64) -> RunWriter<RunEvents> {
    let events = RunEvents::new(run.id, Arc::clone(&ports.clock));
    let key = Key { id: run.id, workspace: run.workspace };
    RunWriter::new(key, run.id, ports.clone(), next_seq, events)
}

/// Number of the next event, and the journal of an earlier life.
async fn earlier(run: &Run, ports: &RunPorts) -> Result<(u64, Vec<engine::RecordedStep>), StoreError> {
    if run.progress == Progress::New {
        return Ok((1, Vec::new()));
    }
    let turn = ports.recovering.acquire().await;
    let last = ports.store.last_seq(run.id).await?;
    let recorded = run::read_journal(&ports.store, run.id).await?;
    drop(turn);
    if matches!(run.progress, Progress::Recovered { cut_off: true, .. }) {
        run::keep_interrupted(run.id, Some(last), &recorded, ports).await;
    }
    Ok((last + 1, recorded))
}

pub(super) fn run_input(run: &Run, version: &LoadedVersion, ports: &RunPorts) -> RunInput {
    let began = match run.progress {
        Progress::Recovered { started_at: Some(started_at), .. } => started_at,
        _ => ports.clock.now(),
    };
    let limit = run.options.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = limit.and_then(|limit| chrono::Duration::from_std(limit).ok());
    RunInput {
        inputs: (*run.inputs).clone(),
        messages: Vec::new(),
        config: overlaid(&version.config, &run.options.config),
        run: RunInfo {
            id: run.id.to_string(),
            workflow_id: run.workflow.to_string(),
            thread_id: None,
            trigger: run.trigger.clone(),
        },
        lives: lives(run),
        deadline: limit.and_then(|limit| began.checked_add_signed(limit)),
        patch: run
            .options
            .origin
            .as_ref()
            .map(|origin| Patch { step: origin.from_step, state: origin.patch.clone() }),
    }
}

/// The runs whose steps a run has, itself last.
fn lives(run: &Run) -> Vec<Life> {
    let Some(origin) = &run.options.origin else { return vec![life(1, run.id)] };
    let earlier = origin.lives().into_iter().map(|(step, run)| life(step, run));
    earlier.chain([life(origin.from_step, run.id)]).collect()
}

/// A config over another: each member replaces the one below, prompts one by one.
fn overlaid(below: &Map<String, Value>, above: &Map<String, Value>) -> Map<String, Value> {
    let mut config = below.clone();
    for (name, value) in above {
        match (config.get_mut(name), value) {
            (Some(Value::Object(prompts)), Value::Object(more)) if name == "prompts" => {
                prompts.extend(more.iter().map(|(name, prompt)| (name.clone(), prompt.clone())));
            }
            _ => _ = config.insert(name.clone(), value.clone()),
        }
    }
    config
}

fn succeeded(output: Value) -> (End, RunEvent) {
    let end = End { status: RunStatus::Succeeded, output: Some(output.to_string()), error: None };
    (end, RunEvent::RunCompleted { output })
}

fn failed(error: &RunError) -> (End, RunEvent) {
    let stored = Some(run::error_json(error).to_string());
    (
        End { status: RunStatus::Failed, output: None, error: stored },
        RunEvent::RunFailed { error: problem(error) },
    )
}

fn stopped() -> (End, RunEvent) {
    let error = run::whole(ErrorCode::RunCancelled);
    let stored = Some(run::error_json(&error).to_string());
    (
        End { status: RunStatus::Cancelled, output: None, error: stored },
        RunEvent::RunCancelled { error: problem(&error) },
    )
}

fn problem(error: &RunError) -> RunProblem {
    RunProblem {
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
        node: error.node.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_config_is_laid_over_member_by_member_and_prompt_by_prompt() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let below =
            map(json!({"model": "a", "prompts": {"x": {"text": "1", "type": "t"}, "y": {"text": "2"}}}));
        let above = map(json!({"seed": 1, "prompts": {"x": {"text": "3"}}}));
        let expected = json!({"model": "a", "seed": 1, "prompts": {"x": {"text": "3"}, "y": {"text": "2"}}});
        assert_eq!(overlaid(&below, &above), map(expected));
        assert_eq!(overlaid(&Map::new(), &above), above);
        assert_eq!(overlaid(&below, &Map::new()), below);
    }
}
