//! The runs that a socket reads, one task per run.

use std::collections::HashSet;

use actors::streams::{Reader, ReaderError, Readout};
use store::StoreError;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use uuid::Uuid;
use wire::ErrorCode;

use super::messages;
use crate::http::edge::STATEMENT_LIMIT;
use crate::http::error::{ApiError, ApiResult};
use crate::http::thread_ids::ThreadIds;
use crate::ws::Say;

/// Maximum runs per socket.
const MOST: usize = 64;
/// Maximum concurrent controls per socket.
const MOST_CONTROLS: usize = 64;

/// The result of a task.
pub(super) struct Done {
    /// The task's run, unless it panicked.
    pub(super) run: Option<Uuid>,
    /// Whether the task read the run's events.
    read: bool,
    pub(super) error: Option<ApiError>,
    pub(super) request_id: Option<String>,
}

/// The recipient of a run's events.
pub(super) struct ReplyTo {
    pub(super) say: Sender<Say>,
    pub(super) ids: ThreadIds,
    /// Repeated in every message.
    pub(super) request_id: Option<String>,
}

/// All subscriptions and controls of a socket. They are cancelled on drop.
#[derive(Default)]
pub(super) struct Subscriptions {
    runs: HashSet<Uuid>,
    tasks: JoinSet<Done>,
    /// Controls in progress.
    controls: usize,
}

impl Subscriptions {
    /// Checks that a subscription to this run can be added.
    pub(super) fn check(&self, run: Uuid) -> ApiResult<()> {
        if self.runs.contains(&run) {
            return Err(ApiError::new(ErrorCode::SocketSubscribed));
        }
        self.check_room()
    }

    /// Checks that one more subscription can be added.
    pub(super) fn check_room(&self) -> ApiResult<()> {
        if self.runs.len() >= MOST {
            return Err(ApiError::new(ErrorCode::SocketTooManyRuns));
        }
        Ok(())
    }

    /// Forwards a run's events until the last one.
    pub(super) fn add(&mut self, run: Uuid, reader: Reader, reply_to: ReplyTo) {
        let ReplyTo { say, ids, request_id } = reply_to;
        self.runs.insert(run);
        self.tasks.spawn_local(async move {
            let error = send(reader, &say, ids, request_id.as_deref()).await.err();
            let error = error.map(|error| StoreError::from(error).into());
            Done { run: Some(run), read: true, error, request_id }
        });
    }

    /// Checks that one more control can start.
    pub(super) fn check_control(&self) -> ApiResult<()> {
        if self.controls >= MOST_CONTROLS {
            return Err(ApiError::new(ErrorCode::Overloaded));
        }
        Ok(())
    }

    /// Runs a control while the conversation continues.
    pub(super) fn control(
        &mut self,
        run: Uuid,
        work: impl Future<Output = ApiResult<()>> + 'static,
        request_id: Option<String>,
    ) {
        self.controls += 1;
        let work = store::with_statement_limit(STATEMENT_LIMIT, work);
        self.tasks.spawn_local(async move {
            Done { run: Some(run), read: false, error: work.await.err(), request_id }
        });
    }

    /// Returns the next finished task, or waits forever if none is running. Cancel-safe.
    pub(super) async fn done(&mut self) -> Done {
        let ended = match self.tasks.join_next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        };
        let done = ended.unwrap_or_else(|panic| {
            let error = Some(ApiError::new(ErrorCode::Internal).with_cause(panic));
            Done { run: None, read: false, error, request_id: None }
        });
        match &done.run {
            Some(run) if done.read => _ = self.runs.remove(run),
            _ => self.controls = self.controls.saturating_sub(1),
        }
        done
    }
}

/// Forwards events. If the client reads slowly, the socket's limit blocks this task, and unsent events wait in the
/// database.
async fn send(
    mut reader: Reader,
    say: &Sender<Say>,
    ids: ThreadIds,
    request_id: Option<&str>,
) -> Result<(), ReaderError> {
    while let Readout::Frames(frames) = reader.next().await? {
        // Stored frames are always UTF-8.
        let Ok(frames) = std::str::from_utf8(&frames) else { continue };
        for event in wire::sse::data(frames) {
            if say.send(Say::Text(messages::event(&ids.text(event), request_id))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
