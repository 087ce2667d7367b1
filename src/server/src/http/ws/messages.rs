//! Messages that the service sends.

use chrono::{DateTime, Utc};
use uuid::Uuid;
use wire::{SocketFrame, SocketMessage, SocketProblem};

use crate::http::error::ApiError;
use crate::http::time;

/// The response to `ping`.
pub(super) fn pong(now: DateTime<Utc>, request_id: Option<String>) -> String {
    frame(SocketMessage::Pong {}, None, now, request_id)
}

/// A refusal or failure; `run` is the run that the client reads or controls.
pub(super) fn error(
    error: &ApiError,
    run: Option<Uuid>,
    now: DateTime<Utc>,
    request_id: Option<String>,
) -> String {
    let detail = error.body().detail;
    let problem = SocketProblem { message: detail.message, code: detail.code, errors: detail.errors };
    frame(SocketMessage::Error(problem), run, now, request_id)
}

fn frame(
    message: SocketMessage,
    run: Option<Uuid>,
    now: DateTime<Utc>,
    request_id: Option<String>,
) -> String {
    let run_id = run.map(|run| run.to_string());
    let frame = SocketFrame { message, run_id, seq: 0, at: time(now), request_id };
    // The frame contains no maps or numbers that could fail to serialize.
    serde_json::to_string(&frame).unwrap_or_default()
}

/// A stored event with the subscription's `request_id`.
pub(super) fn event(stored: &str, request_id: Option<&str>) -> String {
    match (stored.strip_suffix('}'), request_id) {
        (Some(open), Some(id)) => {
            let id = serde_json::Value::from(id);
            format!("{open},\"request_id\":{id}}}")
        }
        _ => stored.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_id_is_added_to_a_stored_event() {
        assert_eq!(event(r#"{"seq":1}"#, None), r#"{"seq":1}"#);
        assert_eq!(event(r#"{"seq":1}"#, Some("a\"b")), r#"{"seq":1,"request_id":"a\"b"}"#);
    }
}
