//! A training's work: a search, or an evaluation's cases, on separate threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use engine::RunError;
use kernel::Clock;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use training::calls::Endpoints;
use training::optimize::{Problem, Stop, StopReason, search};
use training::{Evaluated, evaluate};
use wire::{ErrorCode, TrainingEvent};

use super::events::TrainingEvents;
use super::gate::settle;
use super::halt::{Halt, Interruption, Pauses};
use super::lab::ActorLab;
use super::reserve::Reservations;
use super::result::{of_evaluation, of_training, output};
use super::session::{SessionContext, Stored, StoredStart, TrainingSession, Unreadable};
use super::state::StoredProgress;
use crate::lanes::WriteError;
use crate::run::{Executing, Ran, RunWriter, Work, whole};
use crate::runtime::ChildExit;
use crate::text::json as text_of;

/// Delay before a run is retried whose endpoint rejects all requests.
const RETRY_AFTER: TimeDelta = TimeDelta::minutes(10);
/// Time after which such a run is paused.
const GIVEN_UP_AFTER: TimeDelta = TimeDelta::hours(24);
/// Maximum time for a run to end after a stop request; then it is cut off.
const STOPPING: Duration = Duration::from_millis(1_500);

/// Data that is read before a run executes.
pub(crate) struct TrainingWork {
    pub(super) stored: StoredStart,
    pub(super) marks: BTreeSet<String>,
    pub(super) inputs: Value,
    /// The request's config.
    pub(super) config: Map<String, Value>,
    pub(super) accepted_at: DateTime<Utc>,
    pub(super) endpoints: Endpoints,
    pub(super) pauses: Pauses,
}

/// The result of a life.
enum LifeOutcome {
    Succeeded(Value),
    Stopped,
    Interrupted(Interruption),
    /// Its endpoint rejects all requests; the time of the retry.
    Refused(Option<DateTime<Utc>>),
    Lost(WriteError),
    Failed(RunError),
}

impl Work<TrainingEvents> for TrainingWork {
    async fn stopped(stop: &CancellationToken, clock: &dyn Clock) {
        stop.cancelled().await;
        clock.sleep(STOPPING).await;
    }

    async fn execute(self, run: Executing<'_, TrainingEvents>) -> Ran {
        let Executing { version, reach, ports, writer, stop, children, draining, .. } = run;
        let id = reach.run;
        // Notifies readers now that the run executes; the first case may take long.
        writer.change_and_flush(|_| {});
        let pause = self.pauses.token(id);
        let _forgotten = Forgotten { pauses: self.pauses.clone(), run: id };
        if self.stored.training.pause_requested_at.is_some() {
            pause.cancel();
        }
        // Without a slot it must not even read its cases.
        if pause.is_cancelled() && !stop.is_cancelled() {
            let state = StoredProgress { refused_since: None, ..self.stored.state };
            return match commit_pause(writer, Interruption::Pause, &state).await {
                Ok(()) => Ran::Paused(None),
                Err(error) => Ran::Lost(error),
            };
        }
        let context = SessionContext {
            run: id,
            workspace: reach.workspace,
            workflow: reach.workflow,
            version: Arc::clone(version),
            inputs: self.inputs,
            config: self.config,
            accepted_at: self.accepted_at,
            endpoints: self.endpoints,
            ports: ports.clone(),
            writer: writer.clone(),
        };
        let halt = Halt { stop: stop.clone(), pause, draining: draining.clone() };
        // Dropped with this future, after which nothing is executed or written.
        let cut = CancellationToken::new();
        let _cut = cut.clone().drop_guard();
        let (start, marks) = (self.stored, self.marks);
        let task = async move {
            tokio::select! {
                biased;
                () = cut.cancelled() => LifeOutcome::Lost(WriteError::Closed),
                ended = async {
                    match session(context, start).await {
                        Ok(session) => carry_out(session, marks, halt).await,
                        Err(error) => {
                            kernel::warn_once_a_minute!("training.not_executed", run = %id, %error, cause = error.error.message, "failed to execute a training");
                            LifeOutcome::Failed(error.error)
                        }
                    }
                } => ended,
            }
        };
        match children.spawn(None, task).await {
            ChildExit::Done(outcome) => outcome.into(),
            ChildExit::Panicked(text) => {
                kernel::warn_once_a_minute!("training.panicked", run = %id, panic = text, "training panicked");
                Ran::Failed(whole(ErrorCode::Internal))
            }
            ChildExit::TimedOut | ChildExit::Cut => Ran::Lost(WriteError::Closed),
        }
    }
}

impl From<LifeOutcome> for Ran {
    fn from(outcome: LifeOutcome) -> Self {
        match outcome {
            LifeOutcome::Succeeded(output) => Self::Succeeded(output.into()),
            LifeOutcome::Stopped => Self::Stopped,
            LifeOutcome::Refused(due) => Self::Paused(due),
            // The next owner continues it. Nothing more is written, and shutdown does not wait for it.
            LifeOutcome::Interrupted(Interruption::Shutdown) => Self::Lost(WriteError::Closed),
            LifeOutcome::Interrupted(_) => Self::Paused(None),
            LifeOutcome::Lost(error) => Self::Lost(error),
            LifeOutcome::Failed(error) => Self::Failed(error),
        }
    }
}

/// Drops the pause token when a run no longer executes here.
struct Forgotten {
    pauses: Pauses,
    run: uuid::Uuid,
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        self.pauses.forget(self.run);
    }
}

/// Builds the session from the run's stored data.
async fn session(context: SessionContext, start: StoredStart) -> Result<TrainingSession, Unreadable> {
    let read = || Stored::read(&start.training, &context.ports);
    let stored = context.writer.ask("the stored training", read).await?;
    TrainingSession::new(context, start, stored)
}

async fn carry_out(session: TrainingSession, marks: BTreeSet<String>, halt: Halt) -> LifeOutcome {
    let problem = session
        .optimizer
        .as_ref()
        .map(|optimizer| Problem::new(&session.cases, &session.prompts, &session.evaluators, optimizer));
    let kept = problem.as_ref().map_or(Reservations::default(), |problem| {
        let calls_of_case = session.decided.calls_of_case.max(1);
        let for_final = problem.kept_thousandths(calls_of_case, session.settings.limits.max_llm_calls);
        Reservations { for_final, for_demos: problem.kept_for_demos() }
    });
    let lab = ActorLab::new(&session, marks, &halt, kept);
    let ended = match &problem {
        Some(problem) => match search(problem, &lab).await {
            Ok(finding) => {
                let read = || of_training(&session, &finding);
                let result = session.writer.ask("checkpoints", read).await;
                let result_output = output(&result);
                let event = TrainingEvent::TrainingResult(Box::new(result));
                Ok((event, result_output, finding.stop_reason == StopReason::Cancelled))
            }
            Err(stop) => Err(stop),
        },
        None => match evaluate(&session.cases, &session.evaluators, &lab).await {
            Ok(evaluated) => {
                let result = of_evaluation(&session, &evaluated);
                let is_cancelled = evaluated.stop_reason == Some(StopReason::Cancelled);
                settle(&session, &evaluated).await;
                let Evaluated { summary, .. } = evaluated;
                if summary.n_cases > 0 {
                    lab.progress.lock().best(summary.score);
                }
                let result_output = output(&result);
                Ok((TrainingEvent::EvaluationResult(result), result_output, is_cancelled))
            }
            Err(stop) => Err(stop),
        },
    };
    match ended {
        Ok((event, output, is_cancelled)) => {
            let state = text_of(&state_of(&session, &lab));
            session.writer.with(|events| {
                events.result(event);
                events.state(state);
            });
            if is_cancelled { LifeOutcome::Stopped } else { LifeOutcome::Succeeded(output) }
        }
        Err(Stop::Lost) => interrupted(&session, &lab).await,
        // A search ends with a result, whatever else stops it.
        Err(Stop::Budget | Stop::MaxSeconds | Stop::Cancelled) => {
            LifeOutcome::Failed(whole(ErrorCode::Internal))
        }
    }
}

/// Handles a life that ended without a result.
async fn interrupted(session: &TrainingSession, lab: &ActorLab<'_>) -> LifeOutcome {
    if let Some(error) = lab.lost.lock().take() {
        return LifeOutcome::Lost(error);
    }
    if let Some(error) = lab.failed.lock().take() {
        return LifeOutcome::Failed(error);
    }
    let Some(interruption) = lab.interruption() else {
        return LifeOutcome::Failed(whole(ErrorCode::Internal));
    };
    let mut state = state_of(session, lab);
    let now = session.ports.clock.now();
    let mut due = None;
    let before = session.before.refused_since.filter(|_| !lab.is_answered());
    if interruption == Interruption::Shutdown {
        state.refused_since = before;
    }
    if interruption == Interruption::RateLimited {
        let since = *state.refused_since.insert(before.unwrap_or(now));
        if now - since < GIVEN_UP_AFTER {
            due = Some(now + RETRY_AFTER);
        } else {
            session.writer.ask("a pause", || session.ports.store.request_pause(session.run)).await;
            state.refused_since = None;
        }
    }
    match commit_pause(&session.writer, interruption, &state).await {
        Ok(()) if interruption == Interruption::RateLimited => LifeOutcome::Refused(due),
        Ok(()) => LifeOutcome::Interrupted(interruption),
        Err(error) => LifeOutcome::Lost(error),
    }
}

/// Notifies readers of a pause, and stores the run's progress.
async fn commit_pause(
    writer: &RunWriter<TrainingEvents>,
    interruption: Interruption,
    state: &StoredProgress,
) -> Result<(), WriteError> {
    let paused = TrainingEvent::TrainingPaused { reason: interruption.as_str().to_owned() };
    let state = text_of(state);
    let told = writer.commit_with(|events| {
        events.event(paused);
        events.state(state);
    });
    told.await
}

/// The run's progress for its row.
fn state_of(session: &TrainingSession, lab: &ActorLab<'_>) -> StoredProgress {
    let (usage, now) = (session.usage(), lab.now());
    let (left, seconds) = (session.calls.budget_left(), session.settings.max_active);
    let progress = lab.progress.lock();
    let shown = progress.shown(now, &usage, left, seconds);
    progress.state(now, session.ports.writer, shown, usage)
}
