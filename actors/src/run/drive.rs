//! Drives a run until it ends or parks.

use std::convert::Infallible;
use std::sync::Arc;

use engine::{Activity, Completed, RecordedStep};
use store::batch::QueueRow;
use store::{RunState, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::crashes::{self, Alone, Clearance};
use super::interrupted;
use super::journal::read_journal;
use super::kind::{Kind, Parking, Run, RunOutcome, RunProgress};
use super::waiting::{Waits, only_waits, waits_too_long};
use super::writer::{End, RunWriter, WriterIdentity};
use super::{Executing, Ran, Reach, RunPorts, Work, error_json, whole};
use crate::lanes::{WriteError, WriterKey};
use crate::plans::LoadedVersion;
use crate::runtime::Children;
use crate::text::json;

/// The result of driving a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Driven {
    /// The run's end is stored, whatever its outcome.
    Ended,
    /// The run only waits; it stays in the queue until it is due or answered.
    Parked,
    /// This process cannot write any more, or must not; the run's owner resumes it.
    Lost(WriteError),
    /// The database could not be read; retry.
    Unreadable(String),
}

/// A run, its kind and its ports.
pub(crate) struct Driver<K: Kind> {
    pub(crate) kind: Arc<K>,
    pub(crate) run: Arc<Run<K>>,
    pub(crate) ports: RunPorts,
}

/// A run that is ready to execute.
struct OpenedRun<K: Kind> {
    writer: RunWriter<K::Events>,
    /// `None` if nothing remains to execute.
    work: Option<K::Work>,
    /// The journal from earlier lives.
    recorded: Vec<RecordedStep>,
}

impl<K: Kind> Driver<K> {
    /// Executes the run until it ends, only waits, or `stop` is cancelled. `children`: the actor's child tasks;
    /// `draining`: cancelled when shutdown begins.
    pub(crate) async fn drive(
        self,
        stop: CancellationToken,
        children: Children,
        draining: CancellationToken,
    ) -> Driven {
        // Rare branches are boxed: this future lives as long as its run, and there may be thousands.
        let Some(version) = &self.run.version else {
            let crashed = crashes::has_crashed(self.run.progress);
            let code = if crashed { ErrorCode::RunCrashed } else { ErrorCode::Internal };
            return Box::pin(self.fail(code)).await;
        };
        let topic = self.ports.topics.produce(self.run.stream);
        let alone = match self.admit(&stop, &draining).await {
            Ok(alone) => alone,
            Err(driven) => return driven,
        };
        let OpenedRun { writer, work, recorded } = match self.open(version, &stop).await {
            Ok(opened) => opened,
            Err(error) => return Driven::Unreadable(error.to_string()),
        };
        let Some(work) = work else {
            return self.end(&writer, RunOutcome::Stopped).await;
        };
        let executing = Executing {
            version,
            reach: self.reach(&work, &writer),
            recorded,
            ports: &self.ports,
            writer: &writer,
            activity: &Activity::default(),
            stop: &stop,
            children: &children,
            draining: &draining,
        };
        match self.execute(work, executing, alone, topic.readers()).await {
            Ok(outcome) => self.end(&writer, outcome).await,
            Err(driven) => driven,
        }
    }

    /// Waits until the run may execute. Returns the permit of a suspected crash cause; `None` for other runs. `Err`: the
    /// run does not execute in this life.
    async fn admit(
        &self,
        stop: &CancellationToken,
        draining: &CancellationToken,
    ) -> Result<Option<Alone>, Driven> {
        let Self { kind, run, ports } = self;
        // Other instances cannot know a run that is not stored.
        if run.early.lock().is_none() {
            match kind.may_start(run, ports, stop).await {
                // It waited until shutdown began; the next process starts it.
                Ok(true) if K::ROW.drain.is_some() && draining.is_cancelled() => {
                    return Err(Driven::Lost(WriteError::Closed));
                }
                Ok(true) => {}
                Ok(false) => return Err(Driven::Lost(WriteError::Fenced)),
                Err(error) => return Err(Driven::Unreadable(error.to_string())),
            }
        }
        match crashes::clearance(run.id, run.progress, ports, stop, draining).await {
            Ok(Clearance::Granted(alone)) => Ok(alone),
            Ok(Clearance::Stopped) => Err(Box::pin(self.end_unexecuted(RunOutcome::Stopped)).await),
            Ok(Clearance::Draining) => Err(Driven::Lost(WriteError::Closed)),
            Err(error) => Err(Driven::Unreadable(error.to_string())),
        }
    }

    /// Reads the run's progress and input, and writes its first events. A run without input has no work.
    async fn open(
        &self,
        version: &LoadedVersion,
        stop: &CancellationToken,
    ) -> Result<OpenedRun<K>, StoreError> {
        let Self { kind, run, ports } = self;
        // Read only now: a continuing turn reads the data that the previous turn left.
        let (next_seq, told, recorded) = self.earlier(stop.is_cancelled()).await?;
        let input = kind.input(run, version, &told, ports).await?;
        let writer = self.writer(next_seq, told);
        let work = input.map(|(work, opening)| {
            kind.open(run, version, opening, stop.is_cancelled(), &writer, ports);
            writer.started();
            work
        });
        Ok(OpenedRun { writer, work, recorded })
    }

    fn reach(&self, work: &K::Work, writer: &RunWriter<K::Events>) -> Reach {
        let Self { kind, run, .. } = self;
        Reach {
            run: run.id,
            workspace: run.workspace,
            workflow: run.workflow,
            thread: work.thread(),
            app: kind.app(run),
            account: writer.account(),
            shows_items: K::ROW.shows_items,
        }
    }

    /// Executes the work. Returns its outcome; for a run that was parked or lost, the result of driving it.
    async fn execute(
        &self,
        work: K::Work,
        executing: Executing<'_, K::Events>,
        alone: Option<Alone>,
        readers: watch::Receiver<usize>,
    ) -> Result<RunOutcome, Driven> {
        let Self { kind, run, ports } = self;
        let Executing { writer, activity, stop, .. } = executing;
        let deadline = work.deadline();
        let outcome = tokio::select! {
            biased;
            () = K::Work::stopped(stop, &*ports.clock) => RunOutcome::Stopped,
            outcome = self.unread(writer, readers) => outcome,
            ran = work.execute(executing) => match ran {
                Ran::Succeeded(completed) => RunOutcome::Succeeded(completed),
                Ran::Failed(error) => RunOutcome::Failed(error),
                Ran::Stopped => RunOutcome::Stopped,
                Ran::Paused(due) => {
                    return Err(Box::pin(self.park(writer, Waits { due, ..Waits::default() })).await);
                }
                Ran::Lost(error) => return Err(Driven::Lost(error)),
            },
            never = after(kind.alongside(run, writer, ports)) => match never {},
            never = after(crashes::give_back(alone, run.id, ports)) => match never {},
            waits = only_waits(activity, deadline, &*ports.clock), if K::ROW.parks => {
                return Err(Box::pin(self.park(writer, waits)).await);
            }
            () = waits_too_long(activity, deadline, &*ports.clock), if !K::ROW.parks => {
                RunOutcome::Failed(whole(ErrorCode::ChatActionFailed))
            }
        };
        Ok(outcome)
    }

    /// Ends after too long without readers, or when the database refuses the start. Readers count only after the start
    /// is stored: until then they wait for the acknowledgement.
    async fn unread(&self, writer: &RunWriter<K::Events>, readers: watch::Receiver<usize>) -> RunOutcome {
        if writer.start_was_refused().await {
            return RunOutcome::Stopped;
        }
        self.kind.abandoned(&self.run, readers, &self.ports).await;
        RunOutcome::Abandoned
    }

    /// Stores the run's end.
    async fn end(&self, writer: &RunWriter<K::Events>, outcome: RunOutcome) -> Driven {
        let end = writer.with(|events| K::ended(events, outcome));
        self.store_end(writer, end).await
    }

    async fn store_end(&self, writer: &RunWriter<K::Events>, end: End) -> Driven {
        let written = writer.end(end, self.run.placed).await;
        if written.is_ok() {
            self.kind.stored_end(&self.run, &self.ports);
        }
        self.settled(writer, written, Driven::Ended).await
    }

    /// Parks a run that only waits.
    async fn park(&self, writer: &RunWriter<K::Events>, waits: Waits) -> Driven {
        let Self { kind, run, ports } = self;
        let due_at = waits.due;
        match kind.parks(run, waits, writer, ports).await {
            Parking::Queue => {}
            Parking::End(end) => {
                return self.store_end(writer, end).await;
            }
        }
        let row = QueueRow { run_id: run.id, workflow_id: run.workflow, turn: false, due_at };
        let parked = writer.park(row, run.parked.saturating_add(1), run.placed).await;
        ports.topics.abandon(run.stream);
        ports.wakeups.parked(run.id, due_at);
        if parked.is_ok() {
            kind.parked(run, ports).await;
        }
        self.settled(writer, parked, Driven::Parked).await
    }

    async fn settled(
        &self,
        writer: &RunWriter<K::Events>,
        written: Result<(), WriteError>,
        done: Driven,
    ) -> Driven {
        if self.run.placed {
            self.ports.wakeups.queue();
        }
        match written {
            Ok(()) => done,
            Err(WriteError::Poisoned(_)) => {
                // The lanes accept no further writes under this key; earlier commits remain.
                let refused = writer.start_was_refused().await;
                self.ports.db.forgive(self.run.id);
                if refused {
                    return Driven::Ended;
                }
                Box::pin(self.fail(ErrorCode::Internal)).await
            }
            Err(error) => Driven::Lost(error),
        }
    }

    /// Ends a run that cannot be driven.
    pub(crate) async fn fail(&self, code: ErrorCode) -> Driven {
        self.end_unexecuted(RunOutcome::Failed(whole(code))).await
    }

    /// Ends a run that does not execute in this life: its readers receive a final event after the stored ones.
    async fn end_unexecuted(&self, outcome: RunOutcome) -> Driven {
        let Self { kind, run, ports } = self;
        let _topic = ports.topics.produce(run.stream);
        let permit = ports.recovering.acquire().await;
        let (last_seq, told) = match kind.told(run, true, ports).await {
            Ok(told) => told,
            Err(error) => return Driven::Unreadable(error.to_string()),
        };
        drop(permit);
        let writer = self.writer(last_seq + 1, told);
        let end = writer.with(|events| K::ended(events, outcome));
        match writer.end(end, run.placed).await {
            Ok(()) => {
                kind.stored_end(run, ports);
                Driven::Ended
            }
            Err(error) => Driven::Lost(error),
        }
    }

    fn writer(&self, next_seq: u64, told: K::ReaderState) -> RunWriter<K::Events> {
        let Self { kind, run, ports } = self;
        let identity = WriterIdentity {
            key: WriterKey { id: run.id, workspace: run.workspace },
            account: kind.account(run),
            keeps_events: K::ROW.keeps_events,
        };
        let early = run.early.lock().take();
        RunWriter::new(identity, run.stream, ports.clone(), next_seq, kind.events(run, told, ports), early)
    }

    /// Returns the next event's number, the state that readers have received, and the journal from earlier lives.
    /// `stopping`: the stop was requested before.
    async fn earlier(&self, stopping: bool) -> Result<(u64, K::ReaderState, Vec<RecordedStep>), StoreError> {
        match self.run.progress {
            RunProgress::New { next_seq } => Ok((next_seq, self.kind.fresh(&self.run), Vec::new())),
            RunProgress::Recovered { interrupted, .. } => {
                Box::pin(self.recovered(interrupted, stopping)).await
            }
        }
    }

    async fn recovered(
        &self,
        interrupted: bool,
        stopping: bool,
    ) -> Result<(u64, K::ReaderState, Vec<RecordedStep>), StoreError> {
        let Self { kind, run, ports } = self;
        let permit = ports.recovering.acquire().await;
        let (last_seq, told) = kind.told(run, stopping, ports).await?;
        let recorded = read_journal(&ports.store, run.id).await?;
        drop(permit);
        if interrupted {
            let events = K::ROW.tells_attempts.then_some(last_seq);
            interrupted::keep(run.id, events, &recorded, ports).await;
        }
        Ok((last_seq + 1, told, recorded))
    }
}

/// Polls the future, and never completes.
async fn after(work: impl Future<Output = ()>) -> Infallible {
    work.await;
    std::future::pending().await
}

/// The end of a run with an output.
pub(crate) fn succeeded(completed: &Completed) -> End {
    let warning = completed.warning.as_ref().map(|warning| error_json(warning).to_string());
    End { status: RunState::Succeeded, output: Some(json(&completed.output)), error: warning }
}

/// The end of a run with an error.
pub(crate) fn ended_with(status: RunState, error: &engine::RunError) -> End {
    End { status, output: None, error: Some(error_json(error).to_string()) }
}
