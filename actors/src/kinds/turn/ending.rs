//! The end of a turn: the last events and items. Pure except for ids and time.

use engine::{Completed, RunError};
use serde_json::Value;
use store::RunState;
use wire::ErrorCode;
use wire::chat::{ChatEvent, IncompleteReason, NoticeLevel, StreamErrorCode};

use super::events::ChatEvents;
use crate::run::drive::{ended_with, succeeded};
use crate::run::kind::RunOutcome;
use crate::run::{End, whole};

/// The hidden note to the model about a turn that the user stopped.
const STOPPED_NOTE: &str = "The user stopped the previous answer before it was complete.";
/// The hidden note to the model about a turn whose workflow failed.
const FAILED_NOTE: &str = "The previous answer ended with an error before it was complete.";

/// Writes a turn's last events.
pub(super) fn ended(events: &mut ChatEvents, outcome: RunOutcome) -> End {
    let end = match outcome {
        // The answer was already taken, or came too late.
        RunOutcome::Stopped if events.is_over() => {
            events.notify_no_effect();
            succeeded(&Value::Null.into())
        }
        RunOutcome::Succeeded(completed) => complete(events, &completed),
        RunOutcome::Failed(error) => failed(events, &error),
        RunOutcome::Stopped => stopped(events, IncompleteReason::Stopped, ErrorCode::RunCancelled),
        RunOutcome::Abandoned => stopped(events, IncompleteReason::Abandoned, ErrorCode::RunAbandoned),
    };
    events.close_questions();
    events.end_changes();
    end
}

/// Completes the turn; a workflow without text answers with its output.
fn complete(events: &mut ChatEvents, completed: &Completed) -> End {
    let output = &completed.output;
    events.settle();
    if !events.has_spoken()
        && let Some(text) = output.get("reply").unwrap_or(output).as_str()
        && !text.trim().is_empty()
    {
        events.whole_text(text);
    }
    if !events.has_spoken() && events.needs_reply() {
        return failed(events, &whole(ErrorCode::ChatNoReply));
    }
    events.complete();
    succeeded(completed)
}

/// Keeps the partial text, with the reason why it is partial.
fn failed(events: &mut ChatEvents, error: &RunError) -> End {
    let event = match error.code {
        // Clients receive no internal details; the widget shows a generic text.
        ErrorCode::Internal => ChatEvent::Error {
            code: StreamErrorCode::Stream,
            message: None,
            allow_retry: true,
            error_code: Some(error.code.as_str().to_owned()),
        },
        // If a node's error is not retryable, the workflow must be changed first.
        code => ChatEvent::failure(code, error.node.is_none() || error.retryable),
    };
    leave(events, IncompleteReason::Failed, FAILED_NOTE);
    events.complete_open_items();
    events.event(event);
    ended_with(RunState::Failed, error)
}

/// Keeps the partial text, and tells the model in a hidden note that it is partial.
fn stopped(events: &mut ChatEvents, reason: IncompleteReason, code: ErrorCode) -> End {
    events.remove_open_items();
    if !leave(events, reason, STOPPED_NOTE) {
        events.event(ChatEvent::Notice {
            level: NoticeLevel::Info,
            message: "The answer was stopped.".to_owned(),
            title: None,
        });
    }
    ended_with(RunState::Cancelled, &whole(code))
}

/// Ends the message with the text that readers received; returns whether it has any.
fn leave(events: &mut ChatEvents, reason: IncompleteReason, note: &str) -> bool {
    events.keep_what_was_told();
    let has_words = events.has_words();
    if has_words {
        events.leave_incomplete(reason);
        events.note(note);
    } else {
        events.take_back();
    }
    has_words
}
