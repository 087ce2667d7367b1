//! The work that a run executes: its graph, or the alternative for its kind.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use engine::{Activity, RecordedStep, RunInput};
use kernel::{Clock, ThreadId};
use tokio_util::sync::CancellationToken;

use super::{EventWriter, Ran, Reach, RunPorts, RunWriter, execute};
use crate::plans::LoadedVersion;
use crate::runtime::Children;

/// The work that a run executes.
pub(crate) trait Work<T: EventWriter>: Send + 'static {
    /// The time at which the run fails, whatever it executes.
    fn deadline(&self) -> Option<DateTime<Utc>> {
        None
    }

    /// The thread whose data it may access.
    fn thread(&self) -> Option<ThreadId> {
        None
    }

    /// Ends when a stop request ends the run from outside.
    async fn stopped(stop: &CancellationToken, _clock: &dyn Clock) {
        stop.cancelled().await;
    }

    /// Executes the work. Dropping the future stops the run.
    async fn execute(self, run: Executing<'_, T>) -> Ran;
}

/// The execution context of a run's work.
pub(crate) struct Executing<'a, T: EventWriter> {
    pub(crate) version: &'a Arc<LoadedVersion>,
    pub(crate) reach: Reach,
    pub(crate) recorded: Vec<RecordedStep>,
    pub(crate) ports: &'a RunPorts,
    pub(crate) writer: &'a RunWriter<T>,
    pub(crate) activity: &'a Activity,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) children: &'a Children,
    /// Cancelled when shutdown begins.
    pub(crate) draining: &'a CancellationToken,
}

impl<T: EventWriter> Work<T> for RunInput {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        self.deadline
    }

    fn thread(&self) -> Option<ThreadId> {
        self.run.thread_id.as_deref().and_then(|thread| ThreadId::parse(thread).ok())
    }

    async fn execute(self, run: Executing<'_, T>) -> Ran {
        let Executing { version, reach, recorded, ports, writer, activity, .. } = run;
        execute(version, reach, self, recorded, ports, writer, activity).await
    }
}
