//! The runs that a socket reads, each by a task of its own.

use std::collections::HashSet;

use actors::streams::{Reader, ReaderError, Readout};
use store::StoreError;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use uuid::Uuid;
use wire::ErrorCode;

use super::messages;
use crate::http::error::{ApiError, ApiResult};
use crate::ws::Say;

/// Runs that a socket may read at a time.
const MOST: usize = 64;
/// Controls of runs that may be at work at a time.
const MOST_BESIDE: usize = 16;

/// What became of a task.
pub(super) struct Done {
    /// The run that is not read any more.
    pub(super) run: Option<Uuid>,
    pub(super) error: Option<ApiError>,
    pub(super) request_id: Option<String>,
}

/// All of them end with this.
#[derive(Default)]
pub(super) struct Subscriptions {
    runs: HashSet<Uuid>,
    tasks: JoinSet<Done>,
    /// Tasks that read no run.
    beside: usize,
}

impl Subscriptions {
    /// Whether this one may be added.
    pub(super) fn check(&self, run: Uuid) -> ApiResult<()> {
        if self.runs.contains(&run) {
            return Err(ApiError::new(ErrorCode::SocketSubscribed));
        }
        self.check_room()
    }

    /// Whether one more may be added.
    pub(super) fn check_room(&self) -> ApiResult<()> {
        if self.runs.len() >= MOST {
            return Err(ApiError::new(ErrorCode::SocketTooManyRuns));
        }
        Ok(())
    }

    /// Sends a run's events until the last one.
    pub(super) fn add(&mut self, run: Uuid, reader: Reader, say: Sender<Say>, request_id: Option<String>) {
        self.runs.insert(run);
        self.tasks.spawn_local(async move {
            let error = send(reader, &say, request_id.as_deref()).await.err();
            Done { run: Some(run), error: error.map(|error| StoreError::from(error).into()), request_id }
        });
    }

    /// Whether one more control may be at work.
    pub(super) fn check_beside(&self) -> ApiResult<()> {
        if self.beside >= MOST_BESIDE {
            return Err(ApiError::new(ErrorCode::Overloaded));
        }
        Ok(())
    }

    /// Does something beside the conversation that may take a moment.
    pub(super) fn beside(
        &mut self,
        work: impl Future<Output = ApiResult<()>> + 'static,
        request_id: Option<String>,
    ) {
        self.beside += 1;
        self.tasks.spawn_local(async move { Done { run: None, error: work.await.err(), request_id } });
    }

    /// The next that has come to its end; waits for ever when there is none. May be dropped while it waits.
    pub(super) async fn done(&mut self) -> Done {
        let ended = match self.tasks.join_next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        };
        let done = ended.unwrap_or_else(|panic| {
            let error = Some(ApiError::new(ErrorCode::Internal).with_cause(panic));
            Done { run: None, error, request_id: None }
        });
        match &done.run {
            Some(run) => _ = self.runs.remove(run),
            None => self.beside = self.beside.saturating_sub(1),
        }
        done
    }
}

/// The socket's bound holds each of them back when the client reads slowly; what is not sent waits in the database.
async fn send(mut reader: Reader, say: &Sender<Say>, request_id: Option<&str>) -> Result<(), ReaderError> {
    while let Readout::Frames(frames) = reader.next().await? {
        // What is stored is text.
        let Ok(frames) = std::str::from_utf8(&frames) else { continue };
        for event in wire::sse::data(frames) {
            if say.send(Say::Text(messages::event(event, request_id))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
