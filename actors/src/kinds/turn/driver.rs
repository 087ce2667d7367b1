//! Drives one turn to its end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::{Activity, RecordedStep, RunError};
use kernel::ItemKey;
use serde_json::Value;
use store::batch::QueueRow;
use store::{OpenQuestion, RunStatus, StoreError, TurnStart};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;
use wire::chat::{ChatEvent, IncompleteReason, NoticeLevel, StreamErrorCode, ThreadItem};

use super::events::ChatEvents;
use super::input::{self, Cut};
use super::resume::{Resumed, fold};
use super::{Progress, Turn, TurnPorts};
use crate::lanes::{Key, WriteError};
use crate::run::waiting::only_waits;
use crate::run::{self, Driven, End, EventWriter, Ran, RunPorts, RunWriter};
use crate::text::{json as to_json, timestamp};

/// Stored commits read at once when a turn is resumed.
const ROWS: i64 = 1_000;
/// How often a turn polls whether it may start, while other instances have turns of its thread.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum grace of a turn that was recovered.
const RECONNECT: Duration = Duration::from_secs(10);
/// How often a turn without readers here polls for readers on other instances.
const PRESENCE_PAUSE: Duration = Duration::from_secs(1);
/// The hidden note for the model about a turn that the user stopped.
const STOPPED_NOTE: &str = "The user stopped the previous answer before it was complete.";
/// The note for the model about a turn whose workflow failed.
const FAILED_NOTE: &str = "The previous answer ended with an error before it was complete.";

/// Runs a turn to its end, until it only waits, or until `stop` is cancelled.
pub(crate) async fn drive(turn: Turn, ports: TurnPorts, stop: CancellationToken) -> Driven {
    // What happens rarely is boxed: this future lives as long as its turn, and there may be thousands.
    let Some(version) = turn.version.clone() else {
        return Box::pin(fail(turn, ports, ErrorCode::Internal)).await;
    };
    let grace = ports.grace.of(turn.dialect);
    let run_ports = &ports.run;
    let topic = run_ports.topics.produce(turn.stream);
    let (resumed, recorded) = match earlier(&turn, run_ports).await {
        Ok(earlier) => earlier,
        Err(error) => return Driven::Unreadable(error.to_string()),
    };
    match in_order(&turn, run_ports, &stop).await {
        Ok(true) => {}
        Ok(false) => return Driven::Lost(WriteError::Fenced),
        Err(error) => return Driven::Unreadable(error.to_string()),
    }
    let input = match input::read(&turn, &version, run_ports, resumed.user_item).await {
        Ok(input) => input,
        Err(error) => return Driven::Unreadable(error.to_string()),
    };
    let writer = writer(&turn, run_ports, resumed);
    let Some(input) = input else {
        // A retry has taken its message out meanwhile, or the thread is deleted.
        let end = stopped(&turn, run_ports, &writer, IncompleteReason::Stopped);
        return ended(&writer, end, turn, ports).await;
    };
    // A retry that is stopped before it has begun takes nothing more out.
    if let Some(cut) = input.cut.filter(|_| !stop.is_cancelled()) {
        take_out(&turn, run_ports, &writer, cut);
    }
    writer.started();
    let activity = Activity::default();
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => stopped(&turn, run_ports, &writer, IncompleteReason::Stopped),
        () = abandoned(topic.readers(), grace, &turn, run_ports) => {
            stopped(&turn, run_ports, &writer, IncompleteReason::Abandoned)
        }
        ran = run::execute(&version, turn.workspace, input.run, recorded, run_ports, &writer, &activity) => match ran {
            Ran::Succeeded(output) => succeeded(&turn, run_ports, &writer, &output),
            Ran::Failed(error) => failed(&turn, run_ports, &writer, &error),
            Ran::Lost(error) => return Driven::Lost(error),
        },
        due_at = only_waits(&activity, None, &*run_ports.clock) => {
            return Box::pin(park(&writer, due_at, turn, ports)).await;
        }
    };
    ended(&writer, end, turn, ports).await
}

/// Stores a turn's end.
async fn ended(writer: &RunWriter<ChatEvents>, end: End, turn: Turn, ports: TurnPorts) -> Driven {
    let written = writer.end(end, false).await;
    settled(written, Driven::Ended, turn, ports).await
}

/// Gives a turn that only waits to the queue. Its readers are told why nothing follows.
async fn park(
    writer: &RunWriter<ChatEvents>,
    due_at: Option<DateTime<Utc>>,
    turn: Turn,
    ports: TurnPorts,
) -> Driven {
    let run = &ports.run;
    // It serves the text alone; the commit below has retries of its own.
    let questions = run.store.open_questions(turn.run).await.unwrap_or_default();
    let text = waits_for(questions, due_at);
    writer.with(|events| events.event(ChatEvent::ProgressUpdate { text, icon: Some("clock".to_owned()) }));
    let row = QueueRow { run_id: turn.run, workflow_id: turn.workflow, turn: false, due_at };
    let parked = writer.park(row, turn.parked.saturating_add(1), false).await;
    run.topics.abandon(turn.stream);
    run.wakeups.parked(turn.run, due_at);
    settled(parked, Driven::Parked, turn, ports).await
}

/// What a parked turn waits for, for its readers.
fn waits_for(questions: Vec<OpenQuestion>, due_at: Option<DateTime<Utc>>) -> String {
    let asks = !questions.is_empty();
    let message = questions.into_iter().find_map(|question| question.message);
    match (message.filter(|message| !message.trim().is_empty()), due_at) {
        (Some(message), _) => message,
        (None, Some(due_at)) if !asks => format!("Waiting until {} …", due_at.format("%Y-%m-%d %H:%M UTC")),
        (None, _) => "Waiting for an answer …".to_owned(),
    }
}

async fn settled(written: Result<(), WriteError>, done: Driven, turn: Turn, ports: TurnPorts) -> Driven {
    match written {
        Ok(()) => done,
        Err(WriteError::Poisoned(_)) => {
            // Nothing of this key is taken any more; what was committed before stands.
            ports.run.db.forgive(turn.run);
            Box::pin(fail(turn, ports, ErrorCode::Internal)).await
        }
        Err(error) => Driven::Lost(error),
    }
}

/// Ends a turn that cannot be driven: its readers get a terminal error event behind what is stored.
pub(crate) async fn fail(turn: Turn, ports: TurnPorts, code: ErrorCode) -> Driven {
    let _topic = ports.run.topics.produce(turn.stream);
    let turn = Turn { progress: Progress::Recovered { cut_off: false }, ..turn };
    let resumed = match earlier(&turn, &ports.run).await {
        Ok((resumed, _)) => resumed,
        Err(error) => return Driven::Unreadable(error.to_string()),
    };
    let writer = writer(&turn, &ports.run, resumed);
    let end = failed(&turn, &ports.run, &writer, &run::whole(code));
    match writer.end(end, false).await {
        Ok(()) => Driven::Ended,
        Err(error) => Driven::Lost(error),
    }
}

/// What turns before this one have said since it was asked for stands behind the message too. Readers are told.
fn take_out(turn: &Turn, ports: &RunPorts, writer: &RunWriter<ChatEvents>, cut: Cut) {
    match ports.ids.item() {
        Ok(now) => {
            writer.cut(cut.again.cut(turn.thread, now, cut.kept));
            writer.with(|events| {
                cut.items.into_iter().for_each(|item_id| events.event(ChatEvent::ItemRemoved { item_id }));
            });
        }
        Err(error) => tracing::error!(%error, "what came before a retry is not taken out"),
    }
}

fn writer(turn: &Turn, ports: &RunPorts, resumed: Resumed) -> RunWriter<ChatEvents> {
    let Resumed { next_seq, completed, message, user_item } = resumed;
    let (ids, clock) = (ports.ids.clone(), ports.clock.clone());
    let events = ChatEvents::new((turn.thread, user_item), turn.dialect, ids, clock, completed, message);
    let key = Key { id: turn.run, workspace: turn.workspace };
    RunWriter::new(key, turn.stream, ports.clone(), next_seq, events)
}

/// What an earlier life had stored.
async fn earlier(turn: &Turn, ports: &RunPorts) -> Result<(Resumed, Vec<RecordedStep>), StoreError> {
    match turn.progress {
        Progress::New { next_seq, user_item, .. } => {
            Ok((Resumed { next_seq, completed: 0, message: None, user_item: Some(user_item) }, Vec::new()))
        }
        Progress::Recovered { .. } => Box::pin(recovered(turn, ports)).await,
    }
}

async fn recovered(turn: &Turn, ports: &RunPorts) -> Result<(Resumed, Vec<RecordedStep>), StoreError> {
    let _turn = ports.recovering.acquire().await;
    let mut stored = Vec::new();
    loop {
        let seen = stored.last().map_or(0, |row: &store::StoredFrames| row.last_seq);
        let rows = ports.store.frames_after(turn.stream, seen, ROWS).await?;
        if rows.is_empty() {
            break;
        }
        stored.extend(rows);
    }
    let recorded = run::read_journal(&ports.store, turn.run).await?;
    if turn.progress == (Progress::Recovered { cut_off: true }) {
        run::keep_interrupted(turn.run, None, &recorded, ports).await;
    }
    let resumed = fold(&stored, turn.thread, turn.dialect);
    // A message that is answered again is not in the stream.
    let user_item = turn.again.map(|again| again.item).or(resumed.user_item);
    Ok((Resumed { user_item, ..resumed }, recorded))
}

/// Waits until no other instance executes a turn of the thread or has one before this one. Of a dead instance, this one takes
/// its turns over meanwhile; they follow. Returns whether the turn is still this instance's.
async fn in_order(turn: &Turn, ports: &RunPorts, stop: &CancellationToken) -> Result<bool, StoreError> {
    let RunPorts { store, clock, others, writer, .. } = ports;
    while others.load(Ordering::Relaxed) && !stop.is_cancelled() {
        match store.start_turn(turn.thread, (turn.order, turn.run), *writer).await? {
            TurnStart::Started => break,
            TurnStart::NotOurs => return Ok(false),
            TurnStart::Waits => clock.sleep(POLL_INTERVAL).await,
        }
    }
    Ok(true)
}

/// Ends when the stream has had no reader on any instance for the whole grace. The countdown pauses while the database
/// cannot say whether another instance has a reader. A turn that resumed from the queue continues without readers until it
/// has had one.
async fn abandoned(
    mut readers: watch::Receiver<usize>,
    grace: Option<Duration>,
    turn: &Turn,
    ports: &RunPorts,
) {
    let Some(grace) = grace else { return std::future::pending().await };
    // The crash has cut off its readers, who need a moment to come back.
    let is_new = matches!(turn.progress, Progress::New { .. });
    let grace = if is_new { grace } else { grace.max(RECONNECT) };
    let (clock, stream) = (&*ports.clock, turn.stream);
    if turn.parked > 0 && !has_reader(&mut readers, stream, ports).await {
        return std::future::pending().await;
    }
    loop {
        if readers.wait_for(|readers| *readers == 0).await.is_err() {
            return std::future::pending().await;
        }
        let mut left = grace;
        loop {
            let pause = left.min(PRESENCE_PAUSE);
            let began = clock.monotonic();
            if kernel::timeout(clock, pause, readers.wait_for(|readers| *readers > 0)).await.is_some() {
                break;
            }
            // Boxed: rarely used, and large compared with the rest of a turn.
            match Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await {
                Ok(true) => {
                    left = grace;
                    // With a grace of 0 the loop would have no pause.
                    clock.sleep(PRESENCE_PAUSE.saturating_sub(grace)).await;
                    continue;
                }
                Ok(false) => left = left.saturating_sub(clock.monotonic().saturating_sub(began).max(pause)),
                Err(error) => {
                    tracing::warn!(%error, "failed to poll readers on other instances; retrying");
                    clock.sleep(PRESENCE_PAUSE).await;
                    continue;
                }
            }
            // A reader may have come during the query.
            if left.is_zero() && *readers.borrow() == 0 {
                return;
            }
        }
    }
}

/// Waits for the first reader, on whichever instance. Returns `false` if none can come any more.
async fn has_reader(readers: &mut watch::Receiver<usize>, stream: Uuid, ports: &RunPorts) -> bool {
    loop {
        let here = readers.wait_for(|readers| *readers > 0);
        if let Some(here) = kernel::timeout(&*ports.clock, PRESENCE_PAUSE, here).await {
            return here.is_ok();
        }
        // A database that does not answer is asked again.
        if ports.others.load(Ordering::Relaxed)
            && Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await.unwrap_or(false)
        {
            return true;
        }
    }
}

fn succeeded(turn: &Turn, ports: &RunPorts, writer: &RunWriter<ChatEvents>, output: &Value) -> End {
    let spoken = writer.with(|events| {
        if !events.has_spoken()
            && let Some(text) = output.get("reply").unwrap_or(output).as_str()
            && !text.trim().is_empty()
        {
            events.text("output", text);
        }
        events.has_spoken()
    });
    if !spoken {
        return failed(turn, ports, writer, &run::whole(ErrorCode::ChatNoReply));
    }
    writer.with(ChatEvents::complete);
    End { status: RunStatus::Succeeded, output: Some(output.to_string()), error: None }
}

/// The partial text is kept, and says that it is partial.
fn failed(turn: &Turn, ports: &RunPorts, writer: &RunWriter<ChatEvents>, error: &RunError) -> End {
    let event = match error.code {
        // Nothing inner reaches a client; the widget shows its own text.
        ErrorCode::Internal => ChatEvent::Error {
            code: StreamErrorCode::Stream,
            message: None,
            allow_retry: true,
            error_code: Some(error.code.as_str().to_owned()),
        },
        // Where a node says that it would fail again, the workflow has to be changed first.
        code => ChatEvent::failure(code, error.node.is_none() || error.retryable),
    };
    let note = note(turn, ports, FAILED_NOTE);
    writer.with(|events| {
        leave(events, IncompleteReason::Failed, note);
        events.event(event);
    });
    End { status: RunStatus::Failed, output: None, error: Some(run::error_json(error).to_string()) }
}

/// The partial text is kept, and the model will be told that it is partial.
fn stopped(turn: &Turn, ports: &RunPorts, writer: &RunWriter<ChatEvents>, reason: IncompleteReason) -> End {
    let note = note(turn, ports, STOPPED_NOTE);
    let notice = ChatEvent::Notice {
        level: NoticeLevel::Info,
        message: "The answer was stopped.".to_owned(),
        title: None,
    };
    writer.with(|events| {
        if !leave(events, reason, note) {
            events.event(notice);
        }
    });
    let code = match reason {
        IncompleteReason::Abandoned => ErrorCode::RunAbandoned,
        IncompleteReason::Stopped | IncompleteReason::Failed => ErrorCode::RunCancelled,
    };
    End {
        status: RunStatus::Cancelled,
        output: None,
        error: Some(run::error_json(&run::whole(code)).to_string()),
    }
}

/// Ends the message with the text that readers have received; returns whether it has any.
fn leave(events: &mut ChatEvents, reason: IncompleteReason, note: Option<(ItemKey, String)>) -> bool {
    events.keep_what_was_told();
    let has_words = events.has_words();
    if has_words {
        events.leave_incomplete(reason);
        note.into_iter().for_each(|(id, content)| events.hidden(id, content));
    } else {
        events.take_back();
    }
    has_words
}

/// An item for the model alone.
fn note(turn: &Turn, ports: &RunPorts, content: &str) -> Option<(ItemKey, String)> {
    let key = ports.ids.item().ok()?;
    let item = ThreadItem::SdkHiddenContext {
        id: key.wire("shcx"),
        thread_id: turn.thread.to_string(),
        created_at: timestamp(ports.clock.now()),
        content: content.to_owned(),
    };
    Some((key, to_json(&item)))
}
