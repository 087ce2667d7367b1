//! Handles one open WebSocket from the first message to its close.

use std::sync::Arc;
use std::time::Duration;

use actors::plans::LoadedVersion;
use bytes::Bytes;
use kernel::Clock;
use store::{StoredRun, StoredWorkflow, WorkflowRef};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::{CreateRun, ErrorCode, TrainingKind};

use super::requests::{self, RunWanted, SocketCommand};
use super::subscriptions::{Done, ReplyTo, Subscriptions};
use super::{closings, messages};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::SocketCaller;
use crate::http::runs::{check_config, new_run, new_run_of};
use crate::http::thread_ids::ThreadIds;
use crate::http::trainings::{Control, TrainingRequest, control, start_training};
use crate::http::workflows::draft_of_graph;
use crate::ws::{Closing, Heard, Say, Socket};

/// The interval between pings.
const PING: Duration = Duration::from_secs(20);
/// Maximum time without incoming data or reading by the client before the socket is closed.
const IDLE: Duration = Duration::from_secs(60);
/// The precision of arrival times.
const ROUNDING: Duration = Duration::from_millis(1);

/// The reason for the end, used to close the socket; `None` if the client left.
type SessionEnd = Option<Closing>;

/// A caller's WebSocket session with a workflow.
pub(super) struct Conversation {
    caller: SocketCaller,
    workflow: StoredWorkflow,
    socket: Socket,
    say: Sender<Say>,
    subscriptions: Subscriptions,
    clock: Arc<dyn Clock>,
    closing: CancellationToken,
    /// Pings since the last incoming data.
    unanswered: u32,
    /// The time of the last ping.
    pinged: Duration,
}

impl Conversation {
    pub(super) fn new(caller: SocketCaller, workflow: StoredWorkflow, socket: Socket) -> Self {
        let (clock, closing) = (Arc::clone(caller.app().clock()), caller.app().streams_closing().clone());
        let (say, subscriptions) = (socket.speaker(), Subscriptions::default());
        let (pinged, unanswered) = (clock.monotonic(), 0);
        Self { caller, workflow, socket, say, subscriptions, clock, closing, unanswered, pinged }
    }

    /// Runs until the client leaves or is disconnected.
    pub(super) async fn run(mut self) {
        let over = self.talk().await;
        let closing = over.err().flatten();
        // Dropping these also drops their senders, so that the socket can close.
        let Self { socket, say, subscriptions, .. } = self;
        drop((say, subscriptions));
        if let Some(closing) = closing {
            tracing::debug!(code = closing.code, reason = closing.reason, "websocket closed");
            socket.close(closing);
        }
    }

    async fn talk(&mut self) -> Result<(), SessionEnd> {
        let closing = self.closing.clone();
        let mut tick = self.clock.sleep(PING);
        let mut judge = self.clock.sleep(self.caller.judged_for());
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return Err(Some(closings::SHUTDOWN)),
                () = &mut tick => {
                    self.look_around().await?;
                    tick = self.clock.sleep(PING);
                }
                () = &mut judge => {
                    self.judge_again().await?;
                    judge = self.clock.sleep(self.caller.judged_for());
                }
                done = self.subscriptions.done() => self.tell_end(done).await?,
                heard = self.socket.hear() => match heard {
                    Some(Heard::Text(text)) => self.answer(&text).await?,
                    Some(Heard::Binary) => {
                        self.refuse(&ApiError::new(ErrorCode::SocketBinary), None, None).await?;
                    }
                    Some(Heard::Fault(fault)) => return Err(Some(closings::of_fault(fault))),
                    None => return Err(None),
                },
            }
        }
    }

    /// Re-checks the caller's access.
    async fn judge_again(&mut self) -> Result<(), SessionEnd> {
        let Err(refused) = self.caller.check_again(self.workflow.workspace_id).await else { return Ok(()) };
        match closings::of_refusal(refused.code()) {
            Some(closing) => Err(Some(closing)),
            None => {
                // The check is repeated later, when the database may respond again.
                tracing::warn!(code = refused.code().as_str(), "failed to check a caller's access again");
                Ok(())
            }
        }
    }

    /// Checks that the client is alive, and pings it.
    async fn look_around(&mut self) -> Result<(), SessionEnd> {
        let (silence, now) = (self.socket.silence(), self.clock.monotonic());
        if silence <= now.saturating_sub(self.pinged) + ROUNDING {
            self.unanswered = 0;
        }
        self.pinged = now;
        // A stalled process has sent no pings, so it waits for an answer first.
        if silence >= IDLE && self.unanswered > 0 {
            return Err(Some(closings::IDLE));
        }
        self.unanswered = self.unanswered.saturating_add(1);
        self.say(Say::Ping).await
    }

    /// Sends a message as soon as the client has read enough earlier ones.
    async fn say(&self, say: Say) -> Result<(), SessionEnd> {
        tokio::select! {
            biased;
            said = self.say.send(say) => said.map_err(|_| None),
            () = self.closing.cancelled() => Err(Some(closings::SHUTDOWN)),
            () = self.clock.sleep(IDLE) => Err(Some(closings::IDLE)),
        }
    }

    async fn refuse(
        &self,
        error: &ApiError,
        run: Option<Uuid>,
        request_id: Option<String>,
    ) -> Result<(), SessionEnd> {
        self.say(Say::Text(messages::error(error, run, self.clock.now(), request_id))).await
    }

    /// Handles the end of a subscription; only failures are reported.
    async fn tell_end(&mut self, done: Done) -> Result<(), SessionEnd> {
        match done.error {
            Some(error) => self.refuse(&error, done.run, done.request_id).await,
            None => Ok(()),
        }
    }

    async fn answer(&mut self, text: &Bytes) -> Result<(), SessionEnd> {
        let (request, request_id) = requests::read(text);
        let mut controlled = None;
        let done = match request {
            Ok(SocketCommand::Ping) => {
                return self.say(Say::Text(messages::pong(self.clock.now(), request_id))).await;
            }
            Ok(SocketCommand::Run(wanted)) => self.begin(*wanted, request_id.clone()).await,
            Ok(SocketCommand::Subscribe { run, after }) => {
                self.subscribe(run, after, request_id.clone()).await
            }
            Ok(SocketCommand::Train(wanted)) => self.train(*wanted, request_id.clone()).await,
            Ok(SocketCommand::Control { run, wanted }) => {
                controlled = Some(run);
                self.control(run, wanted, request_id.clone()).await
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.refuse(&error, controlled, request_id).await,
        }
    }

    /// Starts a run and subscribes to its events.
    async fn begin(&mut self, wanted: RunWanted, request_id: Option<String>) -> ApiResult<()> {
        self.subscriptions.check_room()?;
        let RunWanted { graph, inputs, config } = wanted;
        let wanted = CreateRun { inputs, config, ..CreateRun::default() };
        let app = self.caller.app().clone();
        // Reloaded, because the socket may have been open for days.
        let found =
            app.store().workflow(&WorkflowRef::Id(self.workflow.id), self.workflow.workspace_id).await?;
        let workflow = found.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
        check_config(&self.caller, &workflow, &wanted).await?;
        let new = match graph {
            Some(graph) => {
                let draft = self.drafted(&workflow, graph).await?;
                new_run_of(&workflow, draft, wanted, "websocket", None)?
            }
            None => new_run(&app, &workflow, wanted, "websocket", None).await?,
        };
        let begun = app.runs().start(new).await?;
        let reader = app.runs().read(begun.run, 0);
        self.subscriptions.add(begun.run, reader, self.reply_to(request_id));
        Ok(())
    }

    /// Stores a graph as a draft, or finds the identical version.
    async fn drafted(
        &self,
        workflow: &StoredWorkflow,
        graph: serde_json::Value,
    ) -> ApiResult<Arc<LoadedVersion>> {
        self.caller.check_writes_workflows(workflow.workspace_id).await?;
        let new = draft_of_graph(&self.caller, workflow, graph).await?;
        let app = self.caller.app();
        let draft = app.store().change(async |changes| changes.save_draft(new).await).await?;
        Ok(app.runs().version_by_id(draft.id).await?)
    }

    async fn subscribe(&mut self, run: Uuid, after: u64, request_id: Option<String>) -> ApiResult<()> {
        self.caller.check_reads().await?;
        let found = self.found(run).await?;
        self.subscriptions.check(run)?;
        let no_stream = || ApiError::new(ErrorCode::StreamNotFound);
        let stream = found.stream_id.ok_or_else(no_stream)?;
        if found.thread_id.is_some() {
            let message = match self.thread_ids() {
                ThreadIds::Shown => {
                    format!("The run is a chat turn; GET /api/chat/streams/{stream} has its events.")
                }
                ThreadIds::Hidden => {
                    format!("The run is a chat turn; GET /api/runs/{run}/events has its events.")
                }
            };
            return Err(no_stream().with_message(message));
        }
        let app = self.caller.app();
        app.chat().stream(stream).await?.ok_or_else(no_stream)?;
        let reader = app.runs().read(stream, after);
        self.subscriptions.add(run, reader, self.reply_to(request_id));
        Ok(())
    }

    /// Starts a training or evaluation, or finds the one with its id, and subscribes to its events.
    async fn train(&mut self, wanted: TrainingRequest, request_id: Option<String>) -> ApiResult<()> {
        self.subscriptions.check_room()?;
        let started = start_training(&self.caller, &self.workflow, wanted, None).await?;
        if started.replayed {
            self.caller.check_reads().await?;
        }
        self.subscriptions.check(started.run)?;
        let reader = self.caller.app().runs().read(started.run, 0);
        self.subscriptions.add(started.run, reader, self.reply_to(request_id));
        Ok(())
    }

    /// Controls a run. A cancellation is stored before anything can refuse it; the run's own event reports the effect.
    async fn control(&mut self, run: Uuid, wanted: Control, request_id: Option<String>) -> ApiResult<()> {
        let found = self.found(run).await?;
        if found.status.is_terminal() {
            return Err(ApiError::new(ErrorCode::RunNotActive));
        }
        let app = self.caller.app().clone();
        if wanted == Control::Cancel {
            let requested = app.runs().request_stop(run).await?;
            if let Some(requested) = requested.filter(|_| self.subscriptions.check_control().is_ok()) {
                let work = async move { Ok(app.runs().await_stop(requested).await?) };
                self.subscriptions.control(run, work, request_id);
            }
            return Ok(());
        }
        self.subscriptions.check_control()?;
        if TrainingKind::from_name(&found.trigger).is_none() {
            let message = "Only trainings and evaluations can be paused and resumed.";
            return Err(ApiError::new(ErrorCode::RunNotActive).with_message(message));
        }
        let work = async move { control(&app.trainings(), &found, wanted).await };
        self.subscriptions.control(run, work, request_id);
        Ok(())
    }

    fn thread_ids(&self) -> ThreadIds {
        ThreadIds::for_caller(&self.caller, self.workflow.workspace_id)
    }

    fn reply_to(&self, request_id: Option<String>) -> ReplyTo {
        ReplyTo { say: self.say.clone(), ids: self.thread_ids(), request_id }
    }

    /// Finds a run of this workflow.
    async fn found(&self, run: Uuid) -> ApiResult<StoredRun> {
        let found = self.caller.app().runs().run(run).await?.map(|(run, _)| run);
        let found = found.filter(|run| run.workflow_id == self.workflow.id);
        found.ok_or_else(|| ApiError::new(ErrorCode::RunNotFound))
    }
}
