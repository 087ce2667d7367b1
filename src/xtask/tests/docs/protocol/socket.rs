//! Examples for the workflow websocket.

use anyhow::Result;
use serde_json::{Map, Value, json};
use wire::{FieldError, SocketFrame, SocketMessage, SocketProblem, SocketRequest};

const RUN: &str = "0198c0de-…";
const AT: &str = "2026-11-14T09:30:00.000000Z";

/// One message per line.
fn lines(messages: &[impl serde::Serialize]) -> Result<String> {
    let lines: Vec<String> = messages.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    Ok(format!("```json\n{}\n```", lines.join("\n")))
}

pub(super) fn requests() -> Result<String> {
    let request_id = Some("a7".to_owned());
    lines(&[
        SocketRequest::Ping { request_id: request_id.clone() },
        SocketRequest::RunWorkflow {
            graph_config: None,
            inputs: Some(json!({"message": "Where is order 7?"})),
            config: None,
            request_id: request_id.clone(),
        },
        SocketRequest::TrainWorkflow {
            graph_config: None,
            inputs: None,
            runnable_config: None,
            training: training(),
            run_id: None,
            request_id: None,
        },
        SocketRequest::Pause { run_id: RUN.into(), request_id: None },
        SocketRequest::Subscribe { run_id: RUN.into(), after_seq: Some(4), request_id },
        SocketRequest::Cancel { run_id: RUN.into(), request_id: None },
    ])
}

/// The smallest training.
fn training() -> Map<String, Value> {
    let training = json!({
        "dataset": {"cases": [{"inputs": {"message": "Where is my parcel?"}, "expected_output": "shipping"}]},
        "evaluators": [{"id": "label", "entrypoint": "builtin:exact_match"}],
        "optimizer": {"epochs": 3},
    });
    training.as_object().cloned().unwrap_or_default()
}

pub(super) fn answers() -> Result<String> {
    let frame = |message, request_id: Option<&str>| SocketFrame {
        message,
        run_id: None,
        seq: 0,
        at: AT.into(),
        request_id: request_id.map(str::to_owned),
    };
    let code = wire::ErrorCode::InvalidRequest;
    let problem = SocketProblem {
        message: code.message().into(),
        code: code.as_str().into(),
        errors: vec![FieldError::new("/run_id", "required", "is required")],
    };
    lines(&[frame(SocketMessage::Pong {}, Some("a7")), frame(SocketMessage::Error(problem), None)])
}
