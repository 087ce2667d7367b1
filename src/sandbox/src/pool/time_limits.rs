//! Work with a time limit: work in this process, and checks of code that is being saved.

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock as _;

use super::Sandbox;
use crate::call::{Language, Limits, Modules, SandboxError, Source, Surveyed, SyntaxProblem};
use crate::frame::{Task, WorkerAnswer};
use crate::places::WorkerSlot;

/// Maximum time for loading code that is being saved.
const SURVEY: Duration = Duration::from_secs(3);

impl Sandbox {
    /// Runs work on a blocking thread in this process when the workspace has a slot. Returns `None` if the work panics.
    /// If this future is dropped, the work must stop by itself.
    pub async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let slot = self.shared.pool.computing.wait(self.owner).await.ok()?;
        on_thread(slot, work).await.ok()
    }

    /// Like [`Self::compute`], but ends after `limit`, which includes the wait for a slot. The work receives the time
    /// that is left, and must stop by itself after it.
    ///
    /// # Errors
    /// [`SandboxError::Busy`] if no slot became free in time, [`SandboxError::Timeout`] if the work took too long, and
    /// [`SandboxError::Crashed`] if it panicked.
    pub async fn compute_within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(Duration) -> T + Send + 'static,
    ) -> Result<T, SandboxError> {
        let pool = &self.shared.pool;
        let end = pool.clock.monotonic() + limit;
        let slot = self.slot_within(&pool.computing, limit).await?;
        let left = end.saturating_sub(pool.clock.monotonic());
        let done = kernel::timeout(&pool.clock, left, on_thread(slot, move || work(left))).await;
        done.unwrap_or(Err(SandboxError::Timeout(limit)))
    }

    /// Checks code without calling it; a JavaScript module is loaded because its imports must resolve.
    ///
    /// # Errors
    /// [`SandboxError`] if the check cannot finish, for example because a module exceeds its time or memory limit.
    pub async fn survey(
        &self,
        language: Language,
        modules: Arc<Modules>,
        source: Source,
    ) -> Result<Result<Surveyed, SyntaxProblem>, SandboxError> {
        let limits = Limits { time: SURVEY, ..Limits::default() };
        let slot = self.slot(&self.shared.pool.surveys, limits).await?;
        self.surveyed(slot, Task::Survey { language, source }, modules, limits).await
    }

    /// Like [`Self::survey`], but ends after `limit`, which includes the wait for a worker.
    ///
    /// # Errors
    /// As for [`Self::survey`].
    pub async fn survey_within(
        &self,
        limit: Duration,
        language: Language,
        modules: Arc<Modules>,
        source: Source,
    ) -> Result<Result<Surveyed, SyntaxProblem>, SandboxError> {
        let pool = &self.shared.pool;
        let end = pool.clock.monotonic() + limit;
        let slot = self.slot_within(&pool.surveys, limit).await?;
        let left = end.saturating_sub(pool.clock.monotonic());
        let limits = Limits { time: SURVEY.min(left), ..Limits::default() };
        let surveyed = self.surveyed(slot, Task::Survey { language, source }, modules, limits);
        // The limits do not include the start of a worker.
        let surveyed = kernel::timeout(&pool.clock, left, surveyed).await;
        surveyed.unwrap_or(Err(SandboxError::Timeout(limit)))
    }

    async fn surveyed(
        &self,
        slot: WorkerSlot,
        task: Task,
        modules: Arc<Modules>,
        limits: Limits,
    ) -> Result<Result<Surveyed, SyntaxProblem>, SandboxError> {
        match self.ask(slot, task, modules, limits).await? {
            WorkerAnswer::Surveyed(surveyed) => Ok(Ok(surveyed)),
            WorkerAnswer::Unsound(problem) => Ok(Err(problem)),
            other => Err(self.error(other, limits)),
        }
    }
}

/// Runs work on a blocking thread. The slot is held until the work ends.
async fn on_thread<T: Send + 'static>(
    slot: WorkerSlot,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(slot);
        done
    });
    done.await.map_err(|_| SandboxError::Crashed)
}
