//! Drives one turn to its end.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use engine::{NodeError, RecordedStep, RunError, RunInfo, RunInput};
use futures_util::FutureExt;
use kernel::{Clock, ItemKey};
use serde_json::{Value, json};
use store::batch::ItemRow;
use store::{RunStatus, StoreError, StoredStep};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;
use wire::chat::{ChatEvent, NoticeLevel, StreamErrorCode, ThreadItem};

use super::resume::{Resumed, fold};
use super::text::{json as to_json, stored_json, timestamp};
use super::writer::{End, TurnWriter};
use super::{Progress, Turn, TurnPorts};
use crate::db::WriteError;
use crate::plans::LoadedVersion;

/// Stored commits read at once when a turn is resumed.
const ROWS: i64 = 1_000;
/// What the model is told of a turn that the user stopped.
const STOPPED_NOTE: &str = "The user stopped the previous answer before it was complete.";

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// Its end is stored, whatever it was.
    Ended,
    /// This process may not or cannot write any more; whoever owns the run goes on.
    Lost(WriteError),
    /// The database could not be read; try again.
    Unreadable(String),
}

/// Runs a turn to its end, or until `stop` is cancelled.
pub async fn drive(turn: Turn, ports: TurnPorts, stop: CancellationToken) -> TurnEnd {
    let Some(version) = turn.version.clone() else { return fail(turn, ports, ErrorCode::Internal).await };
    let topic = ports.topics.produce(turn.stream);
    let (resumed, recorded) = match earlier(&turn, &ports).await {
        Ok(earlier) => earlier,
        Err(error) => return TurnEnd::Unreadable(error.to_string()),
    };
    let input = match run_input(&turn, &version, &ports, resumed.user_item).await {
        Ok(input) => input,
        Err(error) => return TurnEnd::Unreadable(error.to_string()),
    };
    let writer = TurnWriter::new(turn.clone(), ports.clone(), resumed);
    writer.started();
    let running = engine::execute(&version.plan, input, &recorded, &writer, &writer, &*ports.clock);
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => stopped(&turn, &ports, &writer, ErrorCode::RunCancelled),
        () = abandoned(topic.readers(), ports.grace, &*ports.clock) => {
            stopped(&turn, &ports, &writer, ErrorCode::RunAbandoned)
        }
        ended = AssertUnwindSafe(running).catch_unwind() => match ended {
            Ok(Ok(output)) => succeeded(&writer, &output),
            Ok(Err(error)) => failed(&error),
            Err(panic) => {
                let text = crate::runtime::panic_text(&*panic);
                tracing::error!(run = %turn.run, panic = text, "a step panicked");
                failed(&RunError { code: ErrorCode::Internal, message: "a step panicked".into(), node: None })
            }
        },
        () = writer.keep_flushing() => return TurnEnd::Lost(WriteError::Closed),
    };
    match writer.end(end).await {
        Ok(()) => TurnEnd::Ended,
        Err(WriteError::Poisoned(_)) => {
            // Nothing of this key is taken any more; what was committed before stands.
            ports.db.forgive(turn.run);
            fail(turn, ports, ErrorCode::Internal).await
        }
        Err(error) => TurnEnd::Lost(error),
    }
}

/// Ends a turn that cannot be driven: its readers get a terminal error event behind what is stored.
pub async fn fail(turn: Turn, ports: TurnPorts, code: ErrorCode) -> TurnEnd {
    let _topic = ports.topics.produce(turn.stream);
    let turn = Turn { progress: Progress::Recovered, ..turn };
    let resumed = match earlier(&turn, &ports).await {
        Ok((resumed, _)) => resumed,
        Err(error) => return TurnEnd::Unreadable(error.to_string()),
    };
    let writer = TurnWriter::new(turn, ports, resumed);
    let error = RunError { code, message: code.message().to_owned(), node: None };
    match writer.end(failed(&error)).await {
        Ok(()) => TurnEnd::Ended,
        Err(error) => TurnEnd::Lost(error),
    }
}

/// What an earlier life had stored.
async fn earlier(turn: &Turn, ports: &TurnPorts) -> Result<(Resumed, Vec<RecordedStep>), StoreError> {
    let (next_seq, user_item) = match turn.progress {
        Progress::New { next_seq, user_item } => (next_seq, user_item),
        Progress::Recovered => {
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
            let journal = ports.store.journal(turn.run).await?;
            let recorded = journal.into_iter().filter_map(recorded).collect();
            return Ok((fold(&stored, turn.thread, turn.dialect), recorded));
        }
    };
    Ok((Resumed { next_seq, message: None, user_item: Some(user_item) }, Vec::new()))
}

fn recorded(row: StoredStep) -> Option<RecordedStep> {
    let result = row.result.as_deref().and_then(|text| stored_json(text).ok());
    let error = row.error.as_deref().and_then(node_error);
    let visit = u32::try_from(row.visit).ok()?;
    Some(RecordedStep { node: row.node, visit, result, error, started_at: row.started_at })
}

fn node_error(text: &str) -> Option<NodeError> {
    let stored: Value = serde_json::from_str(text).ok()?;
    let code = stored.get("code").and_then(Value::as_str).and_then(ErrorCode::from_code);
    let message = stored.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(NodeError { code: code.unwrap_or(ErrorCode::NodeFailed), message })
}

async fn run_input(
    turn: &Turn,
    version: &LoadedVersion,
    ports: &TurnPorts,
    user_item: Option<ItemKey>,
) -> Result<RunInput, StoreError> {
    let messages = if version.plan.reads_messages() {
        history(ports.store.thread_items(turn.thread).await?, user_item)
    } else {
        Vec::new()
    };
    Ok(RunInput {
        inputs: (*turn.inputs).clone(),
        messages,
        config: version.config.clone(),
        run: RunInfo {
            id: turn.run.to_string(),
            workflow_id: turn.workflow.to_string(),
            thread_id: Some(turn.thread.to_string()),
            trigger: "chat".to_owned(),
        },
    })
}

/// The thread as a model reads it: this turn's message last, those that wait behind it left out.
fn history(items: Vec<ThreadItem>, user_item: Option<ItemKey>) -> Vec<Value> {
    let own = user_item.map(|key| key.wire("msg"));
    let message = |item: &ThreadItem| {
        let (role, content) = item.as_message();
        json!({"role": role, "content": content})
    };
    let waits = |item: &ThreadItem| {
        matches!(item, ThreadItem::UserMessage { .. }) && own.as_deref().is_some_and(|own| item.id() > own)
    };
    let (mine, others): (Vec<_>, Vec<_>) =
        items.into_iter().filter(|item| !waits(item)).partition(|item| own.as_deref() == Some(item.id()));
    others.iter().chain(&mine).map(message).collect()
}

/// Ends when the stream has had no reader for the whole grace.
async fn abandoned(mut readers: watch::Receiver<usize>, grace: Option<Duration>, clock: &dyn Clock) {
    let Some(grace) = grace else { return std::future::pending().await };
    loop {
        if readers.wait_for(|readers| *readers == 0).await.is_err() {
            return std::future::pending().await;
        }
        let back = readers.wait_for(|readers| *readers > 0);
        if kernel::timeout(clock, grace, back).await.is_none() {
            return;
        }
    }
}

fn succeeded(writer: &TurnWriter, output: &Value) -> End {
    if !writer.has_message() {
        let text = output.get("reply").unwrap_or(output).as_str();
        let said = text.filter(|text| !text.trim().is_empty()).map(|text| writer.say(text));
        if !matches!(said, Some(Ok(()))) {
            let code = ErrorCode::ChatNoReply;
            return failed(&RunError { code, message: code.message().to_owned(), node: None });
        }
    }
    End {
        status: RunStatus::Succeeded,
        with_message: true,
        events: Vec::new(),
        items: Vec::new(),
        output: Some(output.to_string()),
        error: None,
    }
}

fn failed(error: &RunError) -> End {
    let event = match error.code {
        // Nothing inner reaches a client; the widget shows its own text.
        ErrorCode::Internal => ChatEvent::Error {
            code: StreamErrorCode::Stream,
            message: None,
            allow_retry: true,
            error_code: Some(error.code.as_str().to_owned()),
        },
        code => ChatEvent::failure(code, true),
    };
    End {
        status: RunStatus::Failed,
        with_message: false,
        events: vec![event],
        items: Vec::new(),
        output: None,
        error: Some(error_json(error.code, &error.message, error.node.as_deref())),
    }
}

/// The partial text is kept, and the model will be told that it is partial.
fn stopped(turn: &Turn, ports: &TurnPorts, writer: &TurnWriter, code: ErrorCode) -> End {
    writer.keep_what_was_told();
    let partial = writer.text().is_some_and(|text| !text.trim().is_empty());
    let note = partial.then(|| ports.ids.item().ok()).flatten().map(|key| ItemRow {
        thread_id: turn.thread,
        id: key,
        content: to_json(&ThreadItem::SdkHiddenContext {
            id: key.wire("shcx"),
            thread_id: turn.thread.to_string(),
            created_at: timestamp(ports.clock.now()),
            content: STOPPED_NOTE.to_owned(),
        }),
    });
    let notice = ChatEvent::Notice {
        level: NoticeLevel::Info,
        message: "The answer was stopped.".to_owned(),
        title: None,
    };
    End {
        status: RunStatus::Cancelled,
        with_message: partial,
        events: if partial { Vec::new() } else { vec![notice] },
        items: note.into_iter().collect(),
        output: None,
        error: Some(error_json(code, code.message(), None)),
    }
}

fn error_json(code: ErrorCode, message: &str, node: Option<&str>) -> String {
    json!({"code": code.as_str(), "message": message, "node": node}).to_string()
}
