//! Actions that only change their widget: each executes the live version outside the order of its thread's turns, and
//! its only output is the widget's last state.

mod events;
mod kind;
mod start;

use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use uuid::Uuid;
use wire::chat::ThreadItem;
use wire::sse;

use crate::kinds::turn::chat::{IdempotencyKey, RunStartError};
use crate::run::RunPorts;
use crate::run::actor::RunActors;
use crate::run::kind::Accepted;
use crate::run::start::{Claimed, RunIds, Starts};
use crate::streams::Readout;
pub(crate) use kind::ActionRuns;
pub use start::NewAction;

use events::ActionEnd;

/// Maximum duration of an action.
const MAX_RUN_TIME: Duration = Duration::from_secs(30);
/// Maximum wait for an action's end. Longer than [`MAX_RUN_TIME`]: another instance may have to adopt the run.
const MAX_WAIT: Duration = Duration::from_secs(45);

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Acted {
    /// The widget's new state; `None` if the action did not change it.
    Done(Option<Box<ThreadItem>>),
    /// Its run failed, was stopped, or would have waited.
    Failed,
    /// It took too long.
    TooLate,
}

/// Executes actions. Cheap to clone.
#[derive(Clone)]
pub struct Actions {
    pub(crate) ports: RunPorts,
    pub(crate) actors: RunActors<ActionRuns>,
    pub(crate) starts: Starts,
}

impl Actions {
    /// Executes an action and waits for its end. A request with a known key returns the earlier request's outcome.
    ///
    /// # Errors
    /// [`RunStartError`] if it was not started.
    pub async fn act(&self, new: NewAction, key: Option<IdempotencyKey>) -> Result<Acted, RunStartError> {
        let token = self.starts.admit::<RunIds>(new.workspace, key.as_ref()).await?;
        let ids = RunIds { run: token.run() };
        let run = match self.starts.claim(key.as_ref(), ids, token).await? {
            Claimed::Started(ids) => ids.run,
            Claimed::Start(ids, claim) => {
                let (rows, run) = start::rows(new, ids.run, self.ports.clock.now());
                let actors = self.actors.clone();
                let accept = move |token| actors.accept(Accepted { run: Arc::new(run), token, stop: false });
                self.starts.commit(claim, rows, accept).await?;
                ids.run
            }
        };
        self.wait(run).await
    }

    /// Returns the outcome of an earlier request with this key, if any.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] if the key was used with another request.
    pub async fn acted(&self, key: &IdempotencyKey) -> Result<Option<Acted>, RunStartError> {
        match self.starts.started::<RunIds>(key).await? {
            Some(ids) => self.wait(ids.run).await.map(Some),
            None => Ok(None),
        }
    }

    async fn wait(&self, run: Uuid) -> Result<Acted, RunStartError> {
        let ended = kernel::timeout(&*self.ports.clock, MAX_WAIT, self.ended(run)).await;
        Ok(ended.transpose()?.unwrap_or(Acted::TooLate))
    }

    /// Waits for the last event in an action's stream.
    async fn ended(&self, run: Uuid) -> Result<Acted, StoreError> {
        let mut reader = self.ports.read(run, 0, false);
        let mut last = Acted::Failed;
        loop {
            let read = reader.next().await;
            match read.map_err(|error| StoreError::Unavailable(error.to_string()))? {
                Readout::Frames(frames) => {
                    let text = String::from_utf8_lossy(&frames);
                    for event in sse::data(&text).filter_map(|event| serde_json::from_str(event).ok()) {
                        last = match event {
                            ActionEnd::Done { item } => Acted::Done(item),
                            ActionEnd::Failed => Acted::Failed,
                            ActionEnd::TooLate => Acted::TooLate,
                        };
                    }
                }
                Readout::Live => {}
                Readout::End => return Ok(last),
            }
        }
    }
}
